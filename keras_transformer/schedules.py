"""Learning-rate schedules (section 5.3 of "Attention Is All You Need")."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer._checks import check_above_zero, check_positive


@keras.saving.register_keras_serializable(package="keras_transformer")
class InverseSquareRootSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a chosen peak, then decay with the inverse square root of the step.

        rate = peak_learning_rate * min(step / warmup_steps, sqrt(warmup_steps / step))

    `step` counts weight updates from 1: the first update has `peak_learning_rate / warmup_steps`, not 0.

    Args:
        peak_learning_rate: Rate at the update `warmup_steps`.
        warmup_steps: Updates that the rise takes.
        gradient_accumulation_steps: The optimizer's argument of that name. Keras counts batches where it asks a
            schedule for a rate; with this the schedule counts weight updates.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        ```python
        import keras
        from keras_transformer.schedules import InverseSquareRootSchedule

        optimizer = keras.optimizers.Adam(InverseSquareRootSchedule(5e-3, warmup_steps=2000), beta_2=0.98)
        print(round(float(optimizer.learning_rate) * 2000, 6))
        #> 0.005
        ```
    """

    def __init__(self, peak_learning_rate: float, warmup_steps: int = 4000, gradient_accumulation_steps: int = 1):
        super().__init__()
        self.peak_learning_rate = check_above_zero("peak_learning_rate", peak_learning_rate)
        self.warmup_steps = check_positive("warmup_steps", warmup_steps)
        self.gradient_accumulation_steps = check_positive("gradient_accumulation_steps", gradient_accumulation_steps)

    def __call__(self, step):
        # `step` is what the optimizer has counted before this batch.
        updates = ops.floor_divide(ops.cast(step, "int32"), self.gradient_accumulation_steps) + 1
        ratio = ops.cast(updates, "float32") / self.warmup_steps
        return self.peak_learning_rate * ops.minimum(ratio, ops.rsqrt(ratio))

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "warmup_steps": self.warmup_steps,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class NoamSchedule(InverseSquareRootSchedule):
    """The paper's schedule (section 5.3, formula 3), times a factor.

        rate = scale * model_dim^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    It is the inverse square root schedule with the peak `scale * (model_dim * warmup_steps)^-0.5`.

    Args:
        model_dim: Width of the model, D.
        warmup_steps: Updates that the rise takes.
        scale: Factor; 1 is the paper's.
        gradient_accumulation_steps: As in `InverseSquareRootSchedule`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        ```python
        from keras_transformer.schedules import NoamSchedule

        schedule = NoamSchedule(model_dim=512, warmup_steps=4000)
        print(round(float(schedule(3999)), 6))  # The 4,000th update, where the rate is highest.
        #> 0.000699
        ```
    """

    def __init__(
        self, model_dim: int, warmup_steps: int = 4000, scale: float = 1.0, gradient_accumulation_steps: int = 1
    ):
        self.model_dim = check_positive("model_dim", model_dim)
        self.scale = check_above_zero("scale", scale)
        peak = self.scale * (self.model_dim * check_positive("warmup_steps", warmup_steps)) ** -0.5
        super().__init__(peak, warmup_steps, gradient_accumulation_steps)

    def get_config(self):
        return {
            "model_dim": self.model_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class CooldownSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Another schedule, whose rate falls in a straight line to 0 at the end (Zhai et al., 2022, section 3.5).

        rate = schedule(step) * min(1, (total_steps + 1 - step) / cooldown_steps)

    `step` counts updates from 1: the first `total_steps - cooldown_steps + 1` have the schedule's rate, and the last
    a `cooldown_steps`-th of it.

    Args:
        schedule: A `keras.optimizers.schedules.LearningRateSchedule`.
        total_steps: Updates of the whole training; later ones have the rate 0.
        cooldown_steps: How many of them the fall takes.
        gradient_accumulation_steps: As in `InverseSquareRootSchedule`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        ```python
        from keras_transformer.schedules import CooldownSchedule, InverseSquareRootSchedule

        schedule = CooldownSchedule(InverseSquareRootSchedule(4e-3, 100), total_steps=400, cooldown_steps=100)
        print([round(float(schedule(step)), 5) for step in (99, 299, 349, 399)])
        #> [0.004, 0.00231, 0.00109, 2e-05]
        ```
    """

    def __init__(self, schedule, total_steps: int, cooldown_steps: int, gradient_accumulation_steps: int = 1):
        super().__init__()
        if not isinstance(schedule, keras.optimizers.schedules.LearningRateSchedule):
            raise ValueError(f"`schedule` must be a learning-rate schedule of Keras. Received: schedule={schedule!r}")
        self.schedule = schedule
        self.total_steps = check_positive("total_steps", total_steps)
        self.cooldown_steps = check_positive("cooldown_steps", cooldown_steps)
        self.gradient_accumulation_steps = check_positive("gradient_accumulation_steps", gradient_accumulation_steps)
        if self.cooldown_steps > self.total_steps:
            raise ValueError(
                f"`cooldown_steps` must be at most `total_steps`. Received: {cooldown_steps=}, {total_steps=}"
            )

    def __call__(self, step):
        done = ops.floor_divide(ops.cast(step, "int32"), self.gradient_accumulation_steps)
        left = ops.cast(self.total_steps - done, "float32") / self.cooldown_steps
        return self.schedule(step) * ops.clip(left, 0.0, 1.0)

    def get_config(self):
        return {
            "schedule": keras.optimizers.schedules.serialize(self.schedule),
            "total_steps": self.total_steps,
            "cooldown_steps": self.cooldown_steps,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "schedule": keras.optimizers.schedules.deserialize(config["schedule"])})

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

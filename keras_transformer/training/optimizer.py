"""The optimizer that a recipe describes."""

from __future__ import annotations

import keras

from keras_transformer.schedules import InverseSquareRootSchedule, NoamSchedule
from keras_transformer.training.recipe import Optimizer


def make_optimizer(options: Optimizer, model_dim: int, updates: int) -> keras.optimizers.Optimizer:
    """Builds a Keras optimizer with its schedule.

    Args:
        options: The recipe's section `optimizer`.
        model_dim: Width of the model, D, which the schedule `noam` depends on.
        updates: Updates of the whole training, at the end of which the schedule `cosine` reaches 0.
    """
    arguments = options.model_dump(include={"epsilon", "global_clipnorm"})
    if options.ema_momentum:
        arguments.update(use_ema=True, ema_momentum=options.ema_momentum)
    rate = _schedule(options, model_dim, updates)
    if options.name == "muon":
        # Embeddings, biases and norms go by Adam with the same rate: Muon's steps have the size of Adam's (`rms_rate`).
        return keras.optimizers.Muon(
            rate,
            adam_beta_1=options.beta_1,
            adam_beta_2=options.beta_2,
            weight_decay=None,
            adam_weight_decay=None,
            **arguments,
        )
    return keras.optimizers.Adam(rate, beta_1=options.beta_1, beta_2=options.beta_2, **arguments)


def _schedule(options, model_dim, updates):
    warmup_steps = options.warmup_steps
    if options.schedule == "noam":
        return NoamSchedule(model_dim, warmup_steps, options.scale)
    if options.schedule == "inverse_square_root":
        return InverseSquareRootSchedule(options.peak_learning_rate, warmup_steps)
    return keras.optimizers.schedules.CosineDecay(
        0.0, max(updates - warmup_steps, 1), warmup_target=options.peak_learning_rate, warmup_steps=warmup_steps
    )

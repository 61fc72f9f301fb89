"""The optimizer that a recipe describes."""

from __future__ import annotations

import keras

from keras_transformer.schedules import CooldownSchedule, InverseSquareRootSchedule, NoamSchedule
from keras_transformer.training.recipe import Optimizer


def make_optimizer(options: Optimizer, model_dim: int, updates: int) -> keras.optimizers.Optimizer:
    """Builds Adam with its schedule.

    Args:
        options: The recipe's section `optimizer`.
        model_dim: Width of the model, D, which the schedule `noam` depends on.
        updates: Updates of the whole training, at the end of which the cooldown reaches 0.
    """
    arguments = options.model_dump(include={"beta_1", "beta_2", "epsilon", "global_clipnorm"})
    if options.ema_momentum:
        arguments.update(use_ema=True, ema_momentum=options.ema_momentum)
    return keras.optimizers.Adam(_schedule(options, model_dim, updates), **arguments)


def _schedule(options, model_dim, updates):
    if options.schedule == "noam":
        schedule = NoamSchedule(model_dim, options.warmup_steps, options.scale)
    else:
        schedule = InverseSquareRootSchedule(options.peak_learning_rate, options.warmup_steps)
    cooldown_steps = round(options.cooldown * updates)
    return CooldownSchedule(schedule, updates, cooldown_steps) if cooldown_steps else schedule

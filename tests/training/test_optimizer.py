"""The optimizers of recipes."""

import keras
import numpy as np
import pytest

from keras_transformer.training.optimizer import make_optimizer
from keras_transformer.training.recipe import Optimizer


def rates(optimizer, updates):
    """The learning rate of each update."""
    values = []
    for update in range(updates):
        optimizer.iterations.assign(update)
        values.append(float(optimizer.learning_rate))
    return np.array(values)


def test_adam_and_its_options_are_those_of_the_recipe():
    options = Optimizer(beta_1=0.8, beta_2=0.97, epsilon=1e-8, global_clipnorm=2.0, ema_momentum=0.99)
    optimizer = make_optimizer(options, 128, 100)
    assert type(optimizer) is keras.optimizers.Adam
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.8, 0.97, 1e-8)
    assert (optimizer.global_clipnorm, optimizer.use_ema, optimizer.ema_momentum) == (2.0, True, 0.99)


@pytest.mark.parametrize("schedule", ["inverse_square_root", "noam"])
def test_cooldown_ends_the_schedule_at_zero(schedule):
    options = {"schedule": schedule, "peak_learning_rate": 0.01, "warmup_steps": 40}
    plain = rates(make_optimizer(Optimizer(**options), 128, updates=200), 201)
    values = rates(make_optimizer(Optimizer(**options, cooldown=0.25), 128, updates=200), 201)
    np.testing.assert_allclose(values, plain * np.minimum(1, (200 - np.arange(201)) / 50), rtol=1e-5, atol=1e-9)


def test_cooldown_of_less_than_an_update_is_none():
    optimizer = make_optimizer(Optimizer(cooldown=0.001), 128, updates=100)
    np.testing.assert_allclose(rates(optimizer, 100), rates(make_optimizer(Optimizer(), 128, 100), 100))


def test_schedules_have_their_peak_after_the_warm_up():
    for options, peak in (
        (Optimizer(peak_learning_rate=0.01, warmup_steps=40), 0.01),
        (Optimizer(schedule="noam", scale=2.0, warmup_steps=40), 2 * (128 * 40) ** -0.5),
    ):
        values = rates(make_optimizer(options, 128, updates=100), 100)
        assert values.argmax() == 39
        np.testing.assert_allclose(values.max(), peak, rtol=1e-5)

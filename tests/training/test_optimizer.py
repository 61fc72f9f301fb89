"""The optimizers of recipes."""

import keras
import numpy as np
import pytest

from keras_transformer.models import TransformerConfig, transformer
from keras_transformer.training.optimizer import make_optimizer
from keras_transformer.training.recipe import Optimizer
from tests.decoding.models import randomize

CONFIG = TransformerConfig.from_preset("tiny", 50, encoder_layers=1, decoder_layers=1)


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


def test_muon_steps_matrices_and_leaves_the_rest_to_adam():
    """Its steps of a matrix have singular values of one size, unlike those of Adam."""
    model = transformer(CONFIG)
    randomize(model, 1)
    model.compile(make_optimizer(Optimizer(name="muon", warmup_steps=1), 128, 100), "sparse_categorical_crossentropy")
    before = {variable.path: variable.numpy() for variable in model.trainable_variables}
    ids = np.random.default_rng(1).integers(1, 50, (8, 16))
    model.train_on_batch({"source_ids": ids, "target_ids": ids}, ids)
    spreads = {}
    for variable in model.trainable_variables:
        assert np.abs(variable.numpy() - before[variable.path]).max() > 0, variable.path
        if variable.ndim == 2:
            values = np.linalg.svd(variable.numpy() - before[variable.path], compute_uv=False)
            spreads[variable.path] = values.max() / np.median(values)
    embeddings = [path for path in spreads if "embedding" in path]
    assert len(embeddings) == 1 and spreads.pop(embeddings[0]) > 3
    assert len(spreads) == 11 and max(spreads.values()) < 3, spreads


def test_muon_decays_no_weight():
    """Keras' default would."""
    optimizer = make_optimizer(Optimizer(name="muon"), 128, 100)
    assert optimizer.weight_decay is None and optimizer.adam_weight_decay is None


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_cosine_rises_to_the_peak_and_ends_at_zero(name):
    options = Optimizer(name=name, schedule="cosine", peak_learning_rate=0.01, warmup_steps=40)
    values = rates(make_optimizer(options, 128, updates=200), 201)
    np.testing.assert_allclose(values[:41], 0.01 * np.arange(41) / 40, atol=1e-8)
    np.testing.assert_allclose(values[40:], 0.005 * (1 + np.cos(np.pi * np.arange(161) / 160)), atol=1e-8)


def test_cosine_works_where_training_ends_within_the_warm_up():
    values = rates(make_optimizer(Optimizer(schedule="cosine", warmup_steps=40), 128, updates=30), 30)
    assert np.isfinite(values).all() and (np.diff(values) > 0).all()


def test_other_schedules_have_their_peak_after_the_warm_up():
    for options, peak in (
        (Optimizer(peak_learning_rate=0.01, warmup_steps=40), 0.01),
        (Optimizer(schedule="noam", scale=2.0, warmup_steps=40), 2 * (128 * 40) ** -0.5),
    ):
        values = rates(make_optimizer(options, 128, updates=100), 100)
        assert values.argmax() == 39
        np.testing.assert_allclose(values.max(), peak, rtol=1e-5)

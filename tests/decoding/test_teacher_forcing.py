import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.step import Ensemble
from keras_transformer.decoding.teacher_forcing import memory_attention_weights, token_log_probabilities
from tests.decoding.models import padded, random_model

SOURCES = padded([[4, 5, 6, 8, 3], [7, 3], [6, 6, 4, 3]])
TARGETS = padded([[5, 3], [6, 4, 8, 3], [7, 7, 3]])
SHIFTED = padded([[2, 5], [2, 6, 4, 8], [2, 7, 7]])


def log_softmax(model):
    logits = np.asarray(model({"source_ids": SOURCES, "target_ids": SHIFTED}), "float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def gathered(logs):
    return np.where(TARGETS > 0, np.take_along_axis(logs, TARGETS[..., None], -1)[..., 0], 0)


def test_log_probabilities_are_those_of_the_tokens_and_0_at_padding():
    model = random_model(9)
    result = token_log_probabilities(Ensemble([model]), tf.constant(SOURCES), tf.constant(TARGETS)).numpy()
    np.testing.assert_allclose(result, gathered(log_softmax(model)), atol=1e-5)
    assert ((result < 0) == (TARGETS > 0)).all()


def test_log_probabilities_of_an_ensemble_are_the_mean():
    models = [random_model(9, 1, decoder_layers=1), random_model(9, 2, decoder_layers=1, normalize_first=True)]
    result = token_log_probabilities(Ensemble(models), tf.constant(SOURCES), tf.constant(TARGETS))
    np.testing.assert_allclose(result, np.mean([gathered(log_softmax(model)) for model in models], 0), atol=1e-5)


def test_row_does_not_depend_on_its_company_or_padding():
    ensemble = Ensemble([random_model(9)])
    together = token_log_probabilities(ensemble, tf.constant(SOURCES), tf.constant(TARGETS))
    alone = token_log_probabilities(ensemble, tf.constant([[7, 3]]), tf.constant([[6, 4, 8, 3]]))
    np.testing.assert_allclose(together[1:2], alone, atol=1e-5)


@pytest.mark.parametrize("normalize_first", [False, True])
def test_attention_weights_are_those_of_the_blocks_run_on_the_whole_target(normalize_first):
    """[B,N,H,T,S]: each row of a real token sums to 1 over the real source tokens."""
    model = random_model(9, normalize_first=normalize_first)
    encoder, mask = model.encoder(), SOURCES != 0
    weights = memory_attention_weights(Ensemble([model]), tf.constant(SOURCES), tf.constant(TARGETS)).numpy()
    x, memory, expected = model.target_embedding(SHIFTED), encoder(SOURCES), []
    for block in model.decoder_blocks:
        x, _, layer = block(x, memory, memory_mask=mask, return_attention_scores=True)
        expected.append(np.asarray(layer))
    assert weights.shape == (3, 2, 2, 4, 5)
    for row, length in enumerate((TARGETS > 0).sum(-1)):
        real = weights[row, :, :, :length]
        np.testing.assert_allclose(real, [layer[row, :, :length] for layer in expected], atol=1e-5)
        np.testing.assert_allclose(real[..., mask[row]].sum(-1), 1, atol=1e-5)
        assert not real[..., ~mask[row]].any() and np.ptp(real[..., 0]) > 1e-3

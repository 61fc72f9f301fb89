import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.step import EncodedSources, Ensemble, reorder
from tests.decoding.models import padded, random_model

SOURCES = [[4, 5, 6, 8, 3], [7, 3], [6, 6, 4, 3]]
KINDS = {
    "post-norm": {},
    "pre-norm": {"normalize_first": True},
    "untied": {"tie_embeddings": "none", "target_vocabulary_size": 11},
    "learned positions": {"positions": "learned", "max_length": 9},
}


def compare_steps(models, rng, length, width=3, steps=4):
    """Random tokens and parents; the expected logits are those of the whole model on all tokens of each hypothesis."""
    sources, rows = EncodedSources(Ensemble(models), padded(SOURCES), width, length), len(SOURCES)
    last, caches, past = np.full((rows, width), 2), sources.caches, np.zeros((rows, width, 0), "int32")
    for index in range(steps):
        past = np.concatenate([past, last[..., None]], axis=-1)
        logits, caches = sources.step(tf.constant(last, tf.int32), caches, tf.constant(index))
        ids = {"source_ids": padded(SOURCES).repeat(width, 0), "target_ids": past.reshape(rows * width, -1)}
        expected = [model(ids)[:, -1] for model in models]
        if len(models) > 1:
            expected = np.mean([tf.nn.log_softmax(one) for one in expected], axis=0)
        np.testing.assert_allclose(logits, np.reshape(expected, logits.shape), atol=1e-4)
        parents = rng.integers(0, width, (rows, width))
        caches = reorder(caches, tf.constant(parents, tf.int32))
        past = np.take_along_axis(past, parents[..., None], axis=1)
        last = rng.integers(3, logits.shape[-1], (rows, width))
    return logits, caches


@pytest.mark.parametrize(("kind", "length"), list(zip(KINDS, (0, 9, 0, 9), strict=True)))
def test_step_equals_the_whole_model_for_every_hypothesis_after_reordering(kind, length, rng):
    """From caches that grow and such of fixed length."""
    logits, caches = compare_steps([random_model(9, **KINDS[kind])], rng, length)
    assert np.std(logits) > 0.3
    assert {cache.shape[2] for cache in tf.nest.flatten(caches)} == {length or 4}


def test_ensemble_gives_the_mean_of_log_probabilities(rng):
    models = [random_model(9, 1), random_model(9, 2, decoder_layers=1, model_dim=8, normalize_first=True)]
    logits, _ = compare_steps(models, rng, 0)
    ensemble = Ensemble(models)
    assert not np.any(ensemble.normalizer(logits, logits))
    assert (np.exp(logits).sum(-1) < 1).all()
    np.testing.assert_allclose(
        tf.nn.log_softmax(logits), logits - Ensemble(models[:1]).normalizer(logits, logits), atol=1e-5
    )


def test_memory_of_a_source_is_shared_by_its_hypotheses():
    sources = EncodedSources(Ensemble([random_model(9)]), padded(SOURCES), 4)
    assert {part.shape[0] for part in tf.nest.flatten(sources._memories)} == {3}


def test_models_of_other_vocabularies_and_no_models_are_refused():
    with pytest.raises(ValueError, match=r"one vocabulary. Received: sizes \[\(7, 7\), \(9, 9\)\]"):
        Ensemble([random_model(7), random_model(9)])
    for models in ([], ["a model"]):
        with pytest.raises(ValueError, match="one Transformer or more. Received"):
            Ensemble(models)


def test_shortest_positions_of_an_ensemble_count():
    models = [random_model(9, positions="learned", max_length=length) for length in (12, 9)]
    assert Ensemble([*models, random_model(9)]).max_length == 9
    assert Ensemble([random_model(9)]).max_length is None


def test_ensemble_has_no_more_positions_than_it_is_told():
    models = [random_model(9, positions="learned", max_length=12)]
    assert [Ensemble(models, length).max_length for length in (None, 20, 5)] == [12, 12, 5]
    assert Ensemble([random_model(9)], 5).max_length == 5

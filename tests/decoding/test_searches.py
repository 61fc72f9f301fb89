import os

import numpy as np
import pytest

from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.searches import Searches
from tests.decoding.models import SEED, padded, randomize, rows_of, shared_decoder
from tests.memory import resident_bytes

REQUESTS = int(os.environ.get("KERAS_TRANSFORMER_REQUESTS", "1000"))
BATCHES = (
    ([[4, 5, 6, 3], [5, 3]], [[], []], {"length_penalty": 1.0, "no_repeat_ngram_size": 2}),
    ([[5, 3], [], [6, 6, 4, 4, 5, 3]], [[4], [], [5, 6]], {"early_stopping": True, "length_penalty_form": "power"}),
    ([[4, 3]], [[]], {"max_length": 3, "repetition_penalty": 1.5, "banned_tokens": [5], "min_length": 2}),
)


@pytest.fixture(scope="module")
def searches():
    return Searches(shared_decoder().ensemble)


def run(searches, sources, prefixes, **options):
    options = SearchOptions(**{"max_length": 8, **options})
    return rows_of(searches.begin(options)(padded(sources), options.rows(range(len(sources)), prefixes, 7)))


def test_one_trace_does_for_all_lengths_batch_sizes_and_options(searches):
    for beam_size, name in ((1, "greedy"), (3, "beam, 1 groups"), (4, "beam, 1 groups")):
        for sources, prefixes, options in BATCHES:
            found = run(searches, sources, prefixes, beam_size=beam_size, **options)
            assert [bool(row[0].ids) for row in found] == [bool(source) for source in sources]
        assert searches.functions[name].experimental_get_tracing_count() == 1
    assert set(searches.functions) == {"greedy", "beam, 1 groups"}


def test_searches_follow_the_weights(searches):
    model = shared_decoder().model
    before = run(searches, *BATCHES[0][:2])
    randomize(model, 2)
    after = run(searches, *BATCHES[0][:2])
    randomize(model, SEED)
    assert before != after and run(searches, *BATCHES[0][:2]) == before


def test_forced_decoding_is_traced_once(searches):
    for source, target in (([[4, 5, 3]], [[5, 3]]), ([[5, 3, 0], [6, 4, 3]], [[4, 4, 6, 3], [5, 3, 0, 0]])):
        ids = np.array(source, "int32"), np.array(target, "int32")
        assert searches.token_log_probabilities(*ids).shape == ids[1].shape
        shape = (len(source), 1, 2, len(target[0]), len(source[0]))
        assert searches.memory_attention_weights(*ids).shape == shape
    for name in ("score", "attention"):
        assert searches.functions[name].experimental_get_tracing_count() == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the memory of a process is read from /proc")
def test_memory_is_flat_over_many_varied_requests(searches):
    """The second time: oneDNN, where it is used, keeps what it compiled for a size."""
    sizes = []
    for _ in range(2):
        rng = np.random.default_rng(1)
        sizes.append([])
        for number in range(REQUESTS):
            sources = [rng.integers(4, 7, rng.integers(1, 9)).tolist() for _ in range(rng.integers(1, 9))]
            prefixes = [[]] * len(sources)
            run(searches, sources, prefixes, beam_size=int(rng.integers(1, 5)), max_length=int(rng.integers(1, 6)))
            if number % (REQUESTS // 10) == 0:
                sizes[-1].append(resident_bytes())
    assert max(sizes[1]) - sizes[1][0] < 8e6, sizes

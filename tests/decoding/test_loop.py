"""Sources leave the batch when they are done, and nothing else changes."""

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.loop import run_search


class State(NamedTuple):
    said: Any  # [N,2]
    done: Any  # [N]


class Countdown:
    """A search whose sources, each of `rows` rows, are done after some steps of their own; it notes how many step."""

    def __init__(self, ends, rows=1, length=0):
        self.given, self._rows, self.sizes = tf.constant(np.array(ends, "int32")), rows, []
        self.caches = tf.zeros([len(ends) * rows, 1, length, 1])

    def with_given(self, given):
        other = copy.copy(self)
        other.given = given
        return other

    def start(self):
        ends = tf.repeat(self.given, self._rows)
        return State(tf.zeros([tf.size(ends), 2]), ends == 0)

    def step(self, index, caches, state):
        ends = tf.repeat(self.given, self._rows)
        count = tf.numpy_function(lambda size: self.sizes.append(int(size)) or size, [tf.size(ends)], tf.int32)
        with tf.control_dependencies([count]):
            new = tf.cast(ends, tf.float32)[:, None, None, None]
        if self.caches.shape[2]:
            caches = tf.where(tf.range(self.caches.shape[2])[:, None] == index, new, caches)
        else:
            caches = tf.concat([caches, new], axis=2)
        said = tf.where(state.done[:, None], state.said, tf.reduce_sum(caches, [1, 2, 3])[:, None] + [0.0, 1.0])
        return index + 1, caches, State(said, state.done | (index + 1 >= ends))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("length", [0, 9])
def test_every_source_gets_its_own_result_in_its_own_place(rows, length, rng):
    ends = rng.integers(0, 9, 17)
    index, state = tf.function(lambda: run_search(Countdown(ends, rows, length), fixed=length > 0))()
    expected = np.repeat(ends * ends, rows)[:, None] + np.where(np.repeat(ends, rows)[:, None], [[0, 1]], 0)
    np.testing.assert_array_equal(state.said, expected)
    assert int(index) == ends.max() and state.done.numpy().all()


def test_sources_leave_when_a_quarter_of_the_batch_is_done():
    for length, sizes in ((0, [8, 8, 6, 6, 6, 6]), (6, [8] * 6)):
        search = Countdown([1, 6, 2, 6, 3, 6, 6, 6], length=length)
        tf.function(lambda search=search: run_search(search, fixed=search.caches.shape[2] > 0))()
        assert search.sizes == sizes


@pytest.mark.parametrize("ends", [[], [0], [0, 0], [3], [0, 3]])
def test_no_source_and_one_source_work(ends):
    index, state = tf.function(lambda: run_search(Countdown(ends)))()
    assert int(index) == max(ends, default=0) and state.said.shape == (len(ends), 2)

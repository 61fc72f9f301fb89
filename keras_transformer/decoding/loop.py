"""The loop of a search, which sources leave when they are done."""

from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf


class Search(Protocol):
    """What is searched with, step by step; each tensor has the same number of rows for every source.

    Attributes:
        caches: What the first step starts from, of unknown length, or of fixed length under XLA.
        given: Tensors that a search reads and does not change.
    """

    caches: Any
    given: Any

    def with_given(self, given) -> Search:
        """The same search of other sources."""
        ...

    def start(self) -> Any:
        """The state before the first step: a named tuple of tensors, of which `done` is bool [N]."""
        ...

    def step(self, index, caches, state) -> tuple:
        """The step at position `index`: gives `(index + 1, caches, state)`."""
        ...


def run_search(search: Search, fixed: bool = False):
    """Steps until all sources are done.

    The sources of a batch are done at different times. When a quarter of those that are in the batch is done, the
    others go on without them.

    Args:
        search: A `Search`.
        fixed: Whether no shape may change, as under XLA: then all stay to the end.

    Returns:
        The pair `(index, state)`: how many steps there were, and the state of all sources.
    """
    start, sources = (0, search.caches, search.start()), tf.shape(tf.nest.flatten(search.given)[0])[0]
    if fixed:
        index, _, state = _steps(search, start, sources, 0, fixed)
        return index, state

    def go_on(index, rows, given, caches, state, whole):
        count = tf.size(rows)
        index, caches, state = _steps(search.with_given(given), (index, caches, state), count, count * 3 // 4)
        places = _rows_of(rows, state, count)[:, None]
        whole = tf.nest.map_structure(
            lambda all_rows, part: tf.tensor_scatter_nd_update(all_rows, places, part), whole, state
        )
        left = tf.cast(tf.where(~_all_done(state, count))[:, 0], tf.int32)
        return index, tf.gather(rows, left), *(_take(parts, left, count) for parts in (given, caches, state)), whole

    variables = (start[0], tf.range(sources), search.given, *start[1:], start[2])
    index, *_, state = tf.while_loop(
        lambda index, rows, given, caches, state, whole: ~tf.reduce_all(state.done),
        go_on,
        variables,
        shape_invariants=tf.nest.map_structure(_any_shape, variables),
    )
    return index, state


def _steps(search, variables, sources, few, fixed=False):
    """Steps until no more than `few` of the sources are not done."""
    return tf.while_loop(
        lambda index, caches, state: tf.math.count_nonzero(~_all_done(state, sources), dtype=tf.int32) > few,
        search.step,
        variables,
        shape_invariants=tf.nest.map_structure(lambda part: _any_shape(part, fixed), variables),
    )


def _all_done(state, sources):
    """Whether each source is done with all of its rows."""
    return tf.reduce_all(tf.reshape(state.done, (sources, -1)), axis=-1)


def _rows_of(sources, parts, count):
    """The rows that some of the sources have in tensors of `count` sources, int32 [rows]."""
    times = tf.shape(tf.nest.flatten(parts)[-1])[0] // count
    return tf.reshape(sources[:, None] * times + tf.range(times), [-1])


def _take(parts, left, count):
    """The rows of the sources that are left."""
    rows = _rows_of(left, parts, count)
    return tf.nest.map_structure(lambda part: tf.gather(part, rows), parts)


def _any_shape(part, fixed=False):
    """The shape of a loop variable: numbers of rows and lengths may change, heads and widths of beams do not."""
    shape = tf.convert_to_tensor(part).shape
    length = shape[2] if fixed and shape.rank > 2 else None
    return tf.TensorShape([None, *shape[1:2], length, *shape[3:]][: shape.rank])

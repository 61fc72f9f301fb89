import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.chunks import in_chunks

WIDTH, LENGTH = [1, 4, 1, 2, 4, 1, 1, 2], [3, 5, 40, 7, 1, 3, 2, 7]


def run_all(cells, width=WIDTH, length=LENGTH, most_rows=None):
    """The results, and the rows of each chunk with their width."""
    chunks = []

    def run(rows, width):
        tf.py_function(lambda *parts: chunks.append([part.numpy().tolist() for part in parts]), (rows, width), [])
        wide = tf.repeat(tf.cast(rows, tf.float32)[:, None] + 1, width, axis=1)
        return tf.strings.as_string(rows)[:, None], wide, rows % 2 == 0

    count = len(width)
    outputs = tf.fill([count, 2], "-"), tf.fill([count, 4], -1.0), tf.zeros([count], tf.bool)
    function = tf.function(
        lambda width, length: in_chunks(run, width, length, cells, outputs, most_rows),
        input_signature=[tf.TensorSpec([None], tf.int32)] * 2,
        autograph=False,
    )
    return [part.numpy() for part in function(tf.constant(width, tf.int32), tf.constant(length, tf.int32))], chunks


@pytest.mark.parametrize("cells", [1, 12, 80, 10**6])
def test_every_row_is_computed_once_and_lands_in_its_place(cells):
    (texts, numbers, flags), chunks = run_all(cells)
    assert sorted(row for rows, _ in chunks for row in rows) == list(range(len(WIDTH)))
    # What is narrower than the outputs has False, 0 or "" behind.
    assert texts.tolist() == [[str(row).encode(), b""] for row in range(len(WIDTH))]
    assert numbers.tolist() == [[row + 1.0] * width + [0.0] * (4 - width) for row, width in enumerate(WIDTH)]
    assert flags.tolist() == [row % 2 == 0 for row in range(len(WIDTH))]


@pytest.mark.parametrize("cells", [1, 12, 80, 10**6])
def test_chunk_is_within_the_cells_or_one_row_and_of_one_width(cells):
    _, chunks = run_all(cells)
    costs = []
    for rows, width in chunks:
        assert {WIDTH[row] for row in rows} == {width}
        costs.append(len(rows) * width * max(LENGTH[row] for row in rows))
        assert costs[-1] <= cells or len(rows) == 1
    lengths = [(WIDTH[row], LENGTH[row]) for rows, _ in chunks for row in rows]
    assert lengths == sorted(lengths, reverse=True)


def test_chunk_has_as_many_rows_as_are_allowed_and_no_more():
    results, chunks = run_all(10**6, most_rows=3)
    for got, expected in zip(results, run_all(10**6)[0], strict=True):
        np.testing.assert_array_equal(got, expected)
    assert [(len(rows), width) for rows, width in chunks] == [(2, 4), (2, 2), (3, 1), (1, 1)]


def test_no_rows_are_no_chunks():
    results, chunks = run_all(10, [], [])
    assert chunks == [] and [part.shape for part in results] == [(0, 2), (0, 4), (0,)]
    np.testing.assert_equal(results[2].dtype, bool)

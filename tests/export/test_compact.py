"""The smaller graph computes what the one of TensorFlow does."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.export.compact import compact_saved_model
from keras_transformer.export.inspect import read_meta_graph


class Counter(tf.Module):
    """Operations that look alike and must not be one, among many that may."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, None], name="x")])
    def serve(self, x):
        before = tf.identity(self.count)
        self.count.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
        after = tf.identity(tf.identity(self.count))
        noise = tf.random.uniform([4]), tf.random.uniform([4])
        _, total = tf.while_loop(
            lambda step, _: step < tf.shape(x)[0],
            lambda step, total: (step + 1, total + x[step]),
            (0, tf.zeros_like(x[0])),
        )
        check = tf.debugging.Assert(tf.shape(x)[1] < 5, ["At most 4 columns."])
        with tf.control_dependencies([check]):
            sizes = [tf.identity(tf.shape(x)[axis] + tf.shape(x)[1]) for axis in (0, 1, 0)]
        chosen = tf.cond(sizes[0] > sizes[1], lambda: tf.reduce_sum(x), lambda: -tf.reduce_sum(x))
        return {
            "before": before,
            "after": after,
            "one": noise[0],
            "other": noise[1],
            "total": total,
            "sizes": tf.stack(sizes),
            "chosen": chosen,
            "untouched": x,
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An export that was compacted, and how many operations it had before."""
    folder = tmp_path_factory.mktemp("compact") / "1"
    module = Counter()
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    before = size(folder)
    compact_saved_model(folder)
    return folder, before


def size(folder):
    graph = read_meta_graph(folder).graph_def
    nodes = len(graph.node) + sum(len(function.node_def) for function in graph.library.function)
    return nodes, (folder / "saved_model.pb").stat().st_size


def check_answer(call, count):
    x = np.arange(12, dtype="float32").reshape(4, 3)
    for _ in range(2):
        answer = call(x)
        assert (answer["before"], answer["after"]) == (count, count + 4)
        assert not np.array_equal(answer["one"], answer["other"])
        assert answer["total"].tolist() == x.sum(0).tolist()
        assert answer["sizes"].tolist() == [7, 6, 7] and answer["chosen"] == x.sum()
        assert answer["untouched"].tolist() == x.tolist()
        count += 4


def test_python_gets_the_same_answers(folder):
    loaded = tf.saved_model.load(str(folder[0]))
    check_answer(lambda x: {k: v.numpy() for k, v in loaded.signatures["serving_default"](x=tf.constant(x)).items()}, 0)
    check_answer(lambda x: {k: v.numpy() for k, v in loaded.serve(tf.constant(x)).items()}, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="At most 4 columns"):
        loaded.serve(tf.zeros([2, 5]))


def test_a_session_as_servers_have_it_gets_the_same_answers(folder):
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], str(folder[0]))
        signature = meta_graph.signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        check_answer(lambda x: session.run(outputs, {signature.inputs["x"].name: x}), 0)


def test_it_is_smaller_and_compacting_again_changes_nothing(folder):
    nodes, size_in_bytes = size(folder[0])
    assert nodes < folder[1][0] * 0.85 and size_in_bytes < folder[1][1] * 0.6
    content = (folder[0] / "saved_model.pb").read_bytes()
    compact_saved_model(folder[0])
    assert (folder[0] / "saved_model.pb").read_bytes() == content

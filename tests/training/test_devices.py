"""On what a recipe is computed."""

import os

import pytest
import tensorflow as tf

from keras_transformer.training.devices import parallel_parts_of
from keras_transformer.training.recipe import Training


@pytest.mark.parametrize(
    ("cores", "gpus", "options", "parts", "threads"),
    [
        (2, 0, {}, 2, 1),
        (8, 0, {}, 2, 4),
        (1, 0, {}, 1, None),
        (8, 0, {"parallel_parts": 4}, 4, 2),
        (8, 0, {"parallel_parts": 1}, 1, None),
        (8, 0, {"jit_compile": True}, 1, None),
        (8, 0, {"distribution": "multi_worker"}, 1, None),
        (8, 1, {}, 1, None),
    ],
)
def test_a_cpu_computes_two_halves_at_once_with_half_of_the_cores_each(
    monkeypatch, cores, gpus, options, parts, threads
):
    seen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU"] * gpus)
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", seen.append)
    assert parallel_parts_of(Training(**options)) == parts
    assert seen == ([] if threads is None else [threads])


def test_a_process_that_used_tensorflow_before_keeps_its_threads(monkeypatch):
    def refuse(threads):
        raise RuntimeError("Intra op parallelism cannot be modified after initialization.")

    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", refuse)
    assert parallel_parts_of(Training(parallel_parts=2)) == 2

"""Batches side by side."""

import subprocess
import sys
import threading
import time

import pytest

from keras_transformer.decoding.in_flight import in_flight


def test_results_come_in_the_order_of_the_batches():
    assert list(in_flight(lambda x: time.sleep(0.02 * (5 - x)) or x * x, range(5), workers=3)) == [0, 1, 4, 9, 16]


def test_as_many_as_there_are_workers_are_computed_at_a_time():
    barrier = threading.Barrier(2, timeout=20)
    assert len(list(in_flight(lambda _: barrier.wait(), range(4), workers=2))) == 4


def test_one_worker_is_the_caller_itself():
    assert set(in_flight(lambda _: threading.current_thread(), range(3), workers=1)) == {threading.current_thread()}


def test_an_error_comes_to_the_caller_and_the_rest_is_not_computed():
    begun = []

    def fail(number):
        begun.append(number)
        time.sleep(0.01)
        raise ValueError(f"batch {number}")

    with pytest.raises(ValueError, match="batch 0"):
        list(in_flight(fail, range(50), workers=2))
    assert len(begun) < 10


def test_who_stops_early_stops_the_rest():
    begun = []
    results = in_flight(lambda number: begun.append(number) or time.sleep(0.01), range(50), workers=2)
    next(results)
    results.close()
    assert len(begun) < 10


def test_a_thread_that_outlives_the_main_one_computes_the_batches_itself():
    script = """
import threading, time
from keras_transformer.decoding.in_flight import in_flight
def job():
    threading.main_thread().join()
    time.sleep(0.2)
    print(list(in_flight(lambda x: x + 1, range(4), workers=2)))
threading.Thread(target=job).start()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[1, 2, 3, 4]\n", done.stderr

"""Calls from several threads, and Python's lock."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import warpfold as wf


@pytest.mark.parametrize(
    "call",
    [wf.sum, wf.min, wf.ExactSum, wf.ExactSumOfSquares, wf.exact_sums, wf.matrix_transpose, lambda x: wf.vecdot(x, x)],
    ids=["sum", "min", "ExactSum", "ExactSumOfSquares", "exact_sums", "matrix_transpose", "vecdot"],
)
def test_the_lock_is_released_while_data_are_read(call):
    x = np.ones((1 << 11, 1 << 11))
    ticks = [0]
    is_done = threading.Event()

    def tick():
        while not is_done.is_set():
            ticks[0] += 1
            # Gives the lock back, so that the call's thread can take it.
            time.sleep(0)

    interval = sys.getswitchinterval()
    # No thread is made to give the lock back: another one runs only while a call has released it.
    sys.setswitchinterval(1000)
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        before = after = ticks[0]
        # A busy machine may not run the other thread during a single call.
        for _ in range(500):
            call(x)
            after = ticks[0]
            if after > before:
                break
    finally:
        sys.setswitchinterval(interval)
        is_done.set()
        thread.join()
    assert after > before


def test_calls_of_two_threads_at_once():
    arrays = [np.random.default_rng(seed).standard_normal((300, 400)) for seed in range(4)]
    calls = [
        lambda x: wf.sum(x, axis=0),
        lambda x: wf.argmax(x, axis=1),
        lambda x: wf.vecdot(x, x[::-1]),
        lambda x: wf.prod(x[:4], axis=1),
        lambda x: wf.ExactSum(x).value(),
    ]
    work = [(call, x) for call in calls for x in arrays]
    expected = [np.asarray(call(x)).tobytes() for call, x in work]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            results = pool.map(lambda item: np.asarray(item[0](item[1])).tobytes(), work)
            assert list(results) == expected

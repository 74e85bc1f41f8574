"""The same bits from any number of processes: pools of `multiprocessing`, and workers of Dask."""

import hashlib
import logging
import multiprocessing
import random

import dask.array as da
import numpy as np
import pytest
import tasks
import warpfold as wf
import warpfold.dask
from distributed import Client, LocalCluster

from support import same, sum_of

FLOAT64 = np.dtype("float64")
MOST_WORKERS = 7
PARTS = 40


@pytest.fixture(scope="module")
def x():
    return np.concatenate([tasks.part(number, PARTS) for number in range(PARTS)])


def digest(results):
    return hashlib.sha256(b"".join(np.asarray(result).tobytes() for result in results)).hexdigest()


def test_pools_of_any_size_give_the_sums_of_the_whole(x):
    whole = wf.exact_sums(x, axis=0)
    spawn, shuffled = multiprocessing.get_context("spawn"), random.Random(3)
    work = [(number, PARTS) for number in range(PARTS)]
    digests, orders = set(), set()
    for workers in range(1, MOST_WORKERS + 1):
        total = wf.exact_sums(x[:0], axis=0)
        shuffled.shuffle(work)
        order = []
        with spawn.Pool(workers) as pool:
            for number, data in pool.imap_unordered(tasks.states, work):
                total.merge(wf.ExactSums.from_bytes(data))
                order.append(number)
        assert sorted(order) == list(range(PARTS))
        orders.add(tuple(order))
        assert total == whole
        digests.add(digest([np.frombuffer(bytes(total), np.uint8), total.values()]))
    assert len(orders) == MOST_WORKERS and len(digests) == 1
    assert same(total.values(), np.array([sum_of(column, FLOAT64) for column in x.T]))


def results(x, blocks, split_every=None):
    """What the workers compute of an array in this number of blocks."""
    a = da.from_array(x, chunks=(-(-len(x) // blocks), 3))
    calls = [
        warpfold.dask.sum(a, axis=0, split_every=split_every),
        warpfold.dask.mean(a, split_every=split_every),
        warpfold.dask.norm(a, axis=0, keepdims=True),
        warpfold.dask.sum(a.astype("float32"), axis=1),
    ]
    return da.compute(*calls)


def test_workers_of_dask_give_the_same_bits_also_if_one_is_killed(x, tmp_path):
    expected = wf.sum(x, axis=0), wf.mean(x), wf.vector_norm(x, axis=0, keepdims=True)
    expected = digest([*expected, wf.sum(x.astype("float32"), axis=1)])
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        for workers in range(1, MOST_WORKERS + 1):
            cluster.scale(workers)
            client.wait_for_workers(workers, timeout=300)
            assert digest(results(x, blocks=1 + 9 * workers, split_every=1 + workers)) == expected
        file = tmp_path / "killed"
        a = da.from_array(x, chunks=(100, 5)).map_blocks(tasks.killed_once, str(file), dtype=x.dtype, meta=x[:0])
        found = warpfold.dask.sum(a, axis=0).compute()
        assert file.exists()
        assert same(found, wf.sum(x, axis=0))

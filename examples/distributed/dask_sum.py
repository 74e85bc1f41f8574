# The same sums from any chunks of a Dask array, on any number of workers.
#
#     pip install warpfold-*.whl 'dask[array]' distributed      (docs/python.md says how to make the wheel)
#     python dask_sum.py

import hashlib

import dask.array as da
import numpy as np
import warpfold.dask
from distributed import Client, LocalCluster


def digest(result):
    return hashlib.sha256(result.compute()).hexdigest()[:16]


def main():
    source = np.random.default_rng(0)
    x = source.standard_normal((7_000, 40)) * 2.0 ** source.integers(-40, 40, (7_000, 40))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        for workers in (1, 2, 3):
            cluster.scale(workers)
            client.wait_for_workers(workers)
            for rows in (7_000, 900, 300):
                a = da.from_array(x, chunks=(rows, 16))
                sums, mean, norm = warpfold.dask.sum(a, axis=0), warpfold.dask.mean(a), warpfold.dask.norm(a, axis=0)
                print(
                    f"{workers} workers, {a.npartitions:3} blocks: sums {digest(sums)}, mean {digest(mean)}, "
                    f"norms {digest(norm)}; by Dask alone {digest(a.sum(axis=0))}"
                )


if __name__ == "__main__":
    main()

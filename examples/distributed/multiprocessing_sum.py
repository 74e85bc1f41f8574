# The same sums from any number of processes.
#
#     pip install warpfold-*.whl numpy      (docs/python.md says how to make the wheel)
#     python multiprocessing_sum.py
#
# Each process sums blocks, and sends the states of its sums as bytes, which arrive in any order.

import hashlib
import multiprocessing

import numpy as np
import warpfold as wf

BLOCKS = 24


def block(number):
    """A block of the data: rows of eight columns, with exponents over 2^80."""
    source = np.random.default_rng(number)
    return source.standard_normal((10_000, 8)) * 2.0 ** source.integers(-40, 40, (10_000, 8))


def states(number):
    return bytes(wf.exact_sums(block(number), axis=0))


def main():
    whole = wf.sum(np.concatenate([block(number) for number in range(BLOCKS)]), axis=0)
    print("whole      ", hashlib.sha256(whole).hexdigest()[:16])
    for processes in (1, 2, 3, 5):
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            arrived = pool.imap_unordered(states, range(BLOCKS))
            total = sum(map(wf.ExactSums.from_bytes, arrived)).values()
        print(f"{processes} processes", hashlib.sha256(total).hexdigest()[:16])


if __name__ == "__main__":
    main()

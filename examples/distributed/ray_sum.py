# The same sums from any number of tasks of Ray.
#
#     pip install warpfold-*.whl numpy ray      (docs/python.md says how to make the wheel)
#     python ray_sum.py
#
# Ray sends ExactSums by pickle. Results are merged as they arrive.

import hashlib

import numpy as np
import ray
import warpfold as wf


@ray.remote
def states(x):
    return wf.exact_sums(x, axis=0)


@ray.remote
def merged(*parts):
    return sum(parts)


def main():
    source = np.random.default_rng(0)
    x = source.standard_normal((100_000, 8)) * 2.0 ** source.integers(-40, 40, (100_000, 8))
    print("whole   ", hashlib.sha256(wf.sum(x, axis=0)).hexdigest()[:16])
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    for tasks in (1, 3, 10, 40):
        # A tree: each task merges up to four results, the first four that are ready.
        waiting = [states.remote(part) for part in np.array_split(x, tasks)]
        while len(waiting) > 1:
            ready, waiting = ray.wait(waiting, num_returns=min(4, len(waiting)))
            waiting.append(merged.remote(*ready))
        print(f"{tasks:2} tasks", hashlib.sha256(ray.get(waiting[0]).values()).hexdigest()[:16])
    ray.shutdown()


if __name__ == "__main__":
    main()

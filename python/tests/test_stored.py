"""Bytes and pickles of version 1, which earlier programs have written, stay readable.

`stored_version_1.json` was written once, by `python test_stored.py > stored_version_1.json`. The bytes of single sums
are also those of crates/exact_sum/tests/stored_version_1.txt, which the documented format alone has made.
"""

import base64
import json
import pathlib
import pickle

import ml_dtypes
import numpy as np
import warpfold as wf

FILE = pathlib.Path(__file__).with_name("stored_version_1.json")
DTYPES = ("float16", ml_dtypes.bfloat16, "float32", "float64")


def sums():
    """Sums of each kind and type, by a name."""
    for dtype in map(np.dtype, DTYPES):
        x = np.array([[1.5, -0.25, 3.0], [0.0, -0.0, 2.0**-14], [-7.0, 100.0, 0.1]]).astype(dtype)
        special = x.copy()
        special[1] = [np.inf, np.nan, -np.inf]
        for name, elements in (("finite", x), ("special", special)):
            yield f"ExactSum {dtype} {name}", wf.ExactSum(elements)
            yield f"ExactSumOfSquares {dtype} {name}", wf.ExactSumOfSquares(elements)
            yield f"ExactDot {dtype} {name}", wf.ExactDot(elements, x)
            yield f"ExactSums {dtype} {name}", wf.exact_sums(elements, axis=0)
            yield f"ExactSums of squares {dtype} {name}", wf.exact_sums_of_squares(elements, axis=1, keepdims=True)


def test_stored_sums_are_read():
    stored = json.loads(FILE.read_text())
    assert len(stored) == 40
    for name, expected in sums():
        data = base64.b64decode(stored[name]["bytes"])
        assert data == bytes(expected) == bytes(type(expected).from_bytes(data)), name
        loaded = pickle.loads(base64.b64decode(stored[name]["pickle"]))
        assert type(loaded) is type(expected) and bytes(loaded) == data, name


if __name__ == "__main__":
    encode = lambda data: base64.b64encode(data).decode()  # noqa: E731
    stored = {name: {"bytes": encode(bytes(s)), "pickle": encode(pickle.dumps(s, 4))} for name, s in sums()}
    print(json.dumps(stored, indent=1))

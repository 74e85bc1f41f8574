"""Which arrays are read, how, and which are refused."""

import array
import gc
import itertools
import os
import signal
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import warpfold as wf

from support import BFLOAT16, FLOATS, OldDLPack, OnlyDLPack, least_growth, read_only, unaligned


def total(x):
    return wf.ExactSum(x).value()


class Interface:
    """An object whose `__array_interface__` is the given one."""

    def __init__(self, **changes):
        self.array = np.arange(6.0)
        self.__array_interface__ = self.array.__array_interface__ | changes


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_each_protocol_reads_the_same_elements(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    sources = [x, read_only(x), unaligned(x), x.T, x[::-1], np.asfortranarray(x)]
    if dtype != BFLOAT16:
        sources += [OnlyDLPack(x), OldDLPack(x), OnlyDLPack(x.T), OnlyDLPack(x[:, ::-1]), OnlyDLPack(read_only(x))]
        sources += [memoryview(x), memoryview(x)[::-1], memoryview(x.T)]
    for source in sources:
        assert total(source) == sum(range(24))
    assert total(x[1, :, ::2]) == float(x[1, :, ::2].astype("float64").sum())


def test_buffers_without_numpy_types():
    assert total(array.array("d", [1.5, 2.5])) == 4.0
    assert total(array.array("f", [])) == 0.0
    assert total(memoryview(bytearray(np.arange(4.0).tobytes())).cast("d", (2, 2))) == 6.0
    with pytest.raises(TypeError, match="float64, not uint8"):
        total(bytearray(8))


def test_arrays_without_axes_or_elements():
    assert total(np.array(2.5)) == 2.5
    assert total(OnlyDLPack(np.array(2.5))) == 2.5
    for shape in ((0,), (3, 0), (0, 4, 2)):
        assert wf.ExactSum(np.zeros(shape)).count == 0
        assert wf.ExactSum(OnlyDLPack(np.zeros(shape))).count == 0
    assert wf.ExactSum(np.zeros((1,) * 64)).count == 1
    assert wf.permute_dims(np.zeros((2, 0, 3)), (2, 0, 1)).shape == (3, 2, 0)


class LikePandas:
    """An object with `__array__` alone, as those of pandas and xarray are."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros(3)


REFUSED = {
    "pandas": (LikePandas(), r"numpy.asarray\(x\)"),
    "list": ([1.0], r"numpy.asarray\(x\)"),
    "float": (1.0, r"numpy.asarray\(x\)"),
    "numpy scalar": (np.float64(1), r"numpy.asarray\(x\)"),
    "str": ("text", r"numpy.asarray\(x\)"),
    "None": (object(), r"numpy.asarray\(x\)"),
    "class": (np.ndarray, "__array_interface__"),
    "masked": (np.ma.masked_array([1.0, 2.0], [True, False]), r"x.compressed\(\)"),
    "objects": (np.array([1.0, None]), r"x.astype\('float64'\)"),
    "structures": (np.zeros(2, [("a", "f8")]), r"x\['name'\]"),
    "records": (np.zeros(2, [("a", "f8")]).view(np.recarray), r"x\['name'\]"),
    "void": (np.zeros(2, "V8"), r"x\['name'\]"),
    "big-endian": (np.zeros(2, ">f4"), r"x.astype\('float32'\)"),
    "times": (np.zeros(2, "M8[s]"), r"x.view\('int64'\)"),
    "strings": (np.array(["a"]), r"x.astype\('float64'\)"),
    "long double": (np.zeros(2, np.longdouble), r"x.astype\('float64'\)"),
    "float8": (np.zeros(2, ml_dtypes.float8_e5m2), r"x.astype\("),
    "int4": (np.zeros(2, ml_dtypes.int4), r"x.astype\('float32'\)"),
    "complex": (np.zeros(2, complex), "x.real"),
    "integers": (np.zeros(2, int), r"x.astype\('float64'\)"),
    "bool": (np.zeros(2, bool), r"x.astype\('float64'\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_do(name):
    bad, message = REFUSED[name]
    with pytest.raises(TypeError, match=message):
        wf.ExactSum(bad)


WRONG_INTERFACES = {
    "no dict": (TypeError, None),
    "no type": (TypeError, {"typestr": None}),
    "short type": (TypeError, {"typestr": "<"}),
    "type of another size": (TypeError, {"typestr": "<f3"}),
    "no shape": (TypeError, {"shape": None}),
    "a list as shape": (TypeError, {"shape": [6]}),
    "negative extent": (ValueError, {"shape": (-6,)}),
    "fractional extent": (ValueError, {"shape": (1.5,)}),
    "huge extent": (ValueError, {"shape": (2**64,)}),
    "product of extents overflows": (ValueError, {"shape": (2**32, 2**32)}),
    "product overflows beside none": (ValueError, {"shape": (2**62, 2**62, 0)}),
    "bytes overflow": (ValueError, {"shape": (2**60,)}),
    "strides overflow": (ValueError, {"shape": (3, 2), "strides": (2**62, 8)}),
    "strides overflow downwards": (ValueError, {"shape": (3,), "strides": (-(2**62),)}),
    "a stride beyond 64 bits": (ValueError, {"strides": (2**63,)}),
    "too many strides": (ValueError, {"strides": (8, 8)}),
    "a list as strides": (TypeError, {"strides": [8]}),
    "below the first address": (ValueError, {"data": (16, False), "strides": (-8,)}),
    "above the last address": (ValueError, {"data": (2**64 - 16, False)}),
    "no memory": (ValueError, {"data": (0, False)}),
    "no address": (TypeError, {"data": None}),
    "an address without a flag": (TypeError, {"data": (8,)}),
    "negative address": (TypeError, {"data": (-8, False)}),
    "a buffer as data": (TypeError, {"data": b"12345678"}),
    "a mask": (TypeError, {"mask": np.zeros(6, bool)}),
    "too many axes": (ValueError, {"shape": (1,) * 65}),
}


@pytest.mark.parametrize("name", WRONG_INTERFACES)
def test_a_wrong_interface_is_an_error(name):
    error, changes = WRONG_INTERFACES[name]
    bad = Interface(**(changes or {}))
    if changes is None:
        bad.__array_interface__ = "text"
    with pytest.raises(error):
        wf.ExactSum(bad)


def test_a_right_interface_of_another_class_is_read():
    assert total(Interface()) == 15.0
    assert total(Interface(strides=(0,))) == 0.0
    assert total(Interface(shape=(3,), strides=(16,))) == 6.0
    assert total(Interface(shape=(0,), data=(0, True))) == 0.0


def test_an_array_on_a_gpu_without_a_driver_is_refused_before_it_is_exported():
    script = """
import warpfold as wf
class OnGpu:
    def __dlpack__(self, **arguments):
        raise AssertionError("exported")
    def __dlpack_device__(self):
        return (2, 0)
try:
    wf.ExactSum(OnGpu())
except RuntimeError as error:
    assert "no CUDA driver was found" in str(error), error
else:
    raise AssertionError("no error")
"""
    environment = os.environ | {"WARPFOLD_LIBCUDA": "none"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_errors_of_a_producer_are_passed_on():
    class Refuses:
        def __dlpack__(self, **arguments):
            raise BufferError("it requires a gradient")

    with pytest.raises(BufferError, match="gradient"):
        wf.ExactSum(Refuses())

    class NoCapsule:
        def __dlpack__(self, **arguments):
            return 1

    with pytest.raises(ValueError, match="no capsule"):
        wf.ExactSum(NoCapsule())


def test_a_capsule_is_used_once():
    class Twice:
        def __init__(self):
            self.capsule = np.arange(3.0).__dlpack__()

        def __dlpack__(self, **arguments):
            return self.capsule

    source = Twice()
    assert total(source) == 3.0
    with pytest.raises(ValueError, match="already used"):
        total(source)


def test_calls_leave_memory_as_it_was():
    x = np.arange(1000.0)
    sources = [x, unaligned(x), OnlyDLPack(x), OldDLPack(x), memoryview(x), array.array("d", x)]
    out = np.zeros(())
    bad = [value for value, _ in REFUSED.values()]

    def calls(count):
        for source in itertools.islice(itertools.cycle(sources), count):
            s = wf.ExactSum(source)
            wf.ExactSum.from_bytes(bytes(s)) + s
            wf.permute_dims(source, (0,))
            wf.sum(source)
            wf.max(source, axis=0, keepdims=True)
            wf.sum(source, out=out)
        for source in itertools.islice(itertools.cycle(bad), count // 10):
            with pytest.raises(TypeError):
                wf.ExactSum(source)
            with pytest.raises((TypeError, ValueError)):
                wf.sum(source, axis=7)

    calls(500)
    gc.collect()
    references = [sys.getrefcount(source) for source in (x, out, *sources)]
    assert least_growth(lambda: calls(4000)) < 800, "in KiB; a leak of one state a call would be 1,200"
    gc.collect()
    assert [sys.getrefcount(source) for source in (x, out, *sources)] == references


def test_a_child_of_fork_computes():
    x = np.random.default_rng(3).standard_normal((1 << 11, 1 << 11))
    wf.set_num_threads(4)

    def results():
        # Long enough for several threads; the product runs in the executor.
        parts = [wf.sum(x), wf.sum(x, axis=0), wf.argmax(x), wf.prod(x[0])]
        return bytes(wf.ExactSum(x)) + b"".join(part.tobytes() for part in parts)

    expected = results()
    child = os.fork()
    if child == 0:
        # A child that hangs is ended by the signal.
        signal.alarm(60)
        os._exit(0 if results() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert results() == expected

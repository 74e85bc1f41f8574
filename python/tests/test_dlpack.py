"""Tensors of a producer that is written here, so that each field can be wrong and each deletion is counted."""

import ctypes

import numpy as np
import pytest
import warpfold as wf

from dlpack_structures import DELETER, Legacy, Versioned, new_capsule


class Producer:
    """Exports [0.0, 1.0, ..., 5.0] as a tensor with the given fields, and counts how often it is deleted."""

    def __init__(self, versioned=True, shape=(6,), strides=None, flags=0, major=1, name=None, **fields):
        self.deleted = 0
        self.array = np.arange(6.0)
        self.deleter = DELETER(self.delete)
        self.managed = Versioned() if versioned else Legacy()
        if versioned:
            self.managed.major, self.managed.minor, self.managed.flags = major, 9, flags
        self.managed.deleter = self.deleter
        tensor = self.managed.tensor
        tensor.data, tensor.device, tensor.rank = self.array.ctypes.data, 1, len(shape)
        tensor.code, tensor.bits, tensor.lanes = 2, 64, 1
        tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
        if strides is not None:
            tensor.strides = (ctypes.c_int64 * len(strides))(*strides)
        for field, value in fields.items():
            setattr(tensor, field, value)
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, *, max_version=None):
        assert max_version[0] == 1
        return new_capsule(ctypes.addressof(self.managed), self.name, None)


GOOD = {
    "plain": ({}, 15.0),
    "offset": ({"byte_offset": 8, "shape": (5,)}, 15.0),
    "strides": ({"shape": (3,), "strides": (2,)}, 6.0),
    "backwards": ({"shape": (6,), "strides": (-1,), "byte_offset": 40}, 15.0),
    "repeated": ({"shape": (4, 2), "strides": (0, 1)}, 4.0),
    "pinned": ({"device": 3}, 15.0),
    "no elements": ({"shape": (0,), "data": None}, 0.0),
    "no axes": ({"shape": (), "byte_offset": 16}, 2.0),
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", GOOD)
def test_a_tensor_is_read_and_deleted_once(versioned, name):
    fields, expected = GOOD[name]
    producer = Producer(versioned, **fields)
    assert wf.ExactSum(producer).value() == expected
    assert producer.deleted == 1


def test_a_read_only_tensor_is_read():
    producer = Producer(flags=1)
    assert wf.ExactSum(producer).value() == 15.0
    assert producer.deleted == 1


BAD = {
    "another device": (TypeError, {"device": 2}),
    "several lanes": (TypeError, {"lanes": 2}),
    "half a byte": (TypeError, {"bits": 4}),
    "float of 128 bits": (TypeError, {"bits": 128}),
    "float8": (TypeError, {"code": 10, "bits": 8}),
    "a handle": (TypeError, {"code": 3}),
    "unknown code": (TypeError, {"code": 77}),
    "negative rank": (ValueError, {"rank": -1}),
    "many axes": (ValueError, {"rank": 65}),
    "no extents": (ValueError, {"shape": (), "rank": 1}),
    "negative extent": (ValueError, {"shape": (-1,)}),
    "huge extents": (ValueError, {"shape": (2**40, 2**40)}),
    "huge stride": (ValueError, {"shape": (2,), "strides": (2**62,)}),
    "no memory": (ValueError, {"data": None}),
    "an offset beyond the memory": (ValueError, {"byte_offset": 2**64 - 8}),
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("name", BAD)
def test_a_wrong_tensor_is_an_error_and_deleted_once(versioned, name):
    error, fields = BAD[name]
    producer = Producer(versioned, **fields)
    if name == "no extents":
        producer.managed.tensor.shape = None
    with pytest.raises(error):
        wf.ExactSum(producer)
    assert producer.deleted == 1


def test_another_major_version_is_refused_and_deleted():
    producer = Producer(major=2)
    with pytest.raises(BufferError, match="version 2.9"):
        wf.ExactSum(producer)
    assert producer.deleted == 1


def test_elements_of_less_than_a_byte_are_refused():
    producer = Producer(flags=4)
    with pytest.raises(TypeError):
        wf.ExactSum(producer)
    assert producer.deleted == 1


def test_a_capsule_of_another_kind_is_left_alone():
    producer = Producer(name=b"something")
    with pytest.raises(ValueError, match="another kind"):
        wf.ExactSum(producer)
    assert producer.deleted == 0


def test_a_tensor_without_a_deleter_is_read():
    producer = Producer()
    producer.managed.deleter = DELETER()
    assert wf.ExactSum(producer).value() == 15.0

"""Many DLPack capsules read as one table; NumPy makes them here, over memory of the host."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest

from headrace.errors import DataTypeError, UsageError
from headrace.tensors.gpu.dlpack import consume, consume_all

VERSIONS = [{}, {"max_version": (1, 1)}]
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def rows(dtype=np.float32):
    return [np.full((1 + i % 3, 4), i, dtype) for i in range(8)]


def capsules(arrays, version):
    return [array.__dlpack__(**version) for array in arrays]


@pytest.mark.sweep
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "f4", "i8", "f8"])
def test_as_one_by_one(version, dtype):
    arrays = rows(dtype)
    found = consume_all(capsules(arrays, version))
    each = [consume(capsule) for capsule in capsules(arrays, version)]
    assert found.addresses.tolist() == [one.address for one in each]
    assert [tuple(shape) for shape in found.shapes.tolist()] == [one.shape for one in each]
    assert (found.dtype, found.device) == (each[0].dtype, each[0].device)


@pytest.mark.parametrize("version", VERSIONS)
def test_numbers(version):
    found = consume_all(capsules([np.array(i, np.int32) for i in range(5)], version))
    assert found.shapes.shape == (5, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_memory_is_given_back(version):
    arrays = rows()
    before = [sys.getrefcount(array) for array in arrays]
    given = capsules(arrays, version)
    found = consume_all(given)
    del given
    assert [sys.getrefcount(array) for array in arrays] == [n + 1 for n in before]
    del found
    assert [sys.getrefcount(array) for array in arrays] == before


def _other(arrays, version):
    return {
        "types": capsules([*arrays[:5], arrays[5].astype(np.int32)], version),
        "axes": capsules([*arrays[:5], arrays[5][None]], version),
        "gaps": capsules([*arrays[:5], np.zeros((4, 3), np.float32).T], version),
        "versions": [*capsules(arrays[:5], VERSIONS[0]), *capsules(arrays[5:], VERSIONS[1])],
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", ["types", "axes", "gaps", "versions"])
def test_what_is_not_alike_is_not_taken(version, how):
    arrays = rows()
    before = [sys.getrefcount(array) for array in arrays]
    given = _other(arrays, version)[how]
    assert consume_all(given) is None
    assert len([consume(capsule) for capsule in given]) == len(given)
    del given
    assert [sys.getrefcount(array) for array in arrays] == before


@pytest.mark.parametrize("version", VERSIONS)
def test_axes_that_are_one_long_or_empty_may_have_any_strides(version):
    arrays = [
        np.lib.stride_tricks.as_strided(np.zeros(8, np.int16), (1, 4, 1), (6, 2, 100)),
        np.zeros((3, 0, 5), np.int16).transpose(2, 1, 0),
    ]
    found = consume_all(capsules(arrays, version))
    assert found.shapes.tolist() == [[1, 4, 1], [5, 0, 3]]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_strides(version):
    arrays = rows()
    given = capsules(arrays, version)
    for k, capsule in enumerate(given):
        name = b"dltensor_versioned" if version else b"dltensor"
        tensor = _pointer(capsule, name) + (32 if version else 0)
        ctypes.c_void_p.from_address(tensor + 32).value = None  # DLPack: C order
        ctypes.c_uint64.from_address(tensor + 40).value = 4 * k
    found = consume_all(given)
    expected = [array.ctypes.data + 4 * k for k, array in enumerate(arrays)]
    assert found.addresses.tolist() == expected


def test_errors():
    used = rows()[0].__dlpack__()
    consume(used)
    with pytest.raises(UsageError, match="used before"):
        consume_all([used])
    assert consume_all([rows()[0].__dlpack__(), used]) is None
    with pytest.raises(DataTypeError, match="type code 5"):
        consume_all([np.zeros(3, np.complex64).__dlpack__()])

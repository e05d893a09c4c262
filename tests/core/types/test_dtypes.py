"""Element types and what other libraries call them."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors, types

NUMERIC = list(types.NUMPY_OF)


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_numpy_and_back(dtype):
    numpy_type = types.to_numpy_type(dtype)
    assert types.to_dali_type(numpy_type) == dtype
    assert types.to_dali_type(np.dtype(numpy_type)) == dtype
    assert types.to_dali_type(np.dtype(numpy_type).name) == dtype
    assert types.DALI_OF_NUMPY[np.dtype(numpy_type)] is dtype
    assert types.to_numpy_type(int(dtype)) is numpy_type
    assert types.storage_dtype(dtype) == numpy_type


def test_there_are_twelve():
    assert len(NUMERIC) == len(types.DALI_OF_NUMPY) == 12


@pytest.mark.parametrize("dtype", [types.STRING, types.IMAGE_TYPE, types.NO_TYPE, "x", [], None])
def test_no_numpy_type(dtype):
    with pytest.raises(KeyError, match="no NumPy type") as caught:
        types.to_numpy_type(dtype)
    assert isinstance(caught.value, errors.UnknownNameError)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("double", types.FLOAT64),
        ("half", types.FLOAT16),
        ("long", types.INT64),
        ("byte", types.UINT8),
        (float, types.FLOAT),
        (bool, types.BOOL),
        (np.longlong, None),
        (int, None),
        (np.complex64, None),
        ("nothing", None),
        (types.FLOAT, None),
        (None, None),
    ],
)
def test_names(name, expected):
    if expected is None:
        with pytest.raises(TypeError, match="element type"):
            types.to_dali_type(name)
    else:
        assert types.to_dali_type(name) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (types.FLOAT16, types.FLOAT16),
        (types.IMAGE_TYPE, types.IMAGE_TYPE),
        (9, types.FLOAT),
        (np.float32, types.FLOAT),
        (np.longlong, types.INT64),
        (np.dtype("u2"), types.UINT16),
        ("float32", types.FLOAT),
        ("half", types.FLOAT16),
        (float, types.FLOAT),
        (int, types.INT32),
        (bool, types.BOOL),
        (ndd.uint8, types.UINT8),
        (ndd.bool, types.BOOL),
    ],
    ids=repr,
)
def test_what_stands_for_a_data_type(given, expected):
    assert types.as_data_type(given) is expected


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        (99, ValueError, "99 is not"),
        (True, TypeError, "True is not an element type"),
        ("i8", TypeError, "'i8' is not an element type"),  # of 8 bits here, of 8 bytes in NumPy
        ("float23", TypeError, '(UINT8, .*BOOL).*"float32"'),
        (np.complex64, TypeError, "complex64"),
        (np.dtype(">f4"), TypeError, r"use dtype\('float32'\)"),
        (ndd.bfloat16, TypeError, "bits=16"),
        (str, TypeError, "str"),
        (None, TypeError, "None"),
        ([], TypeError, "not an element type"),
    ],
    ids=repr,
)
def test_what_does_not(given, error, match):
    with pytest.raises(error, match=match) as caught:
        types.as_data_type(given)
    assert isinstance(caught.value, errors.HeadraceError)


def test_data_types_of_frameworks():
    torch = pytest.importorskip("torch")
    assert types.as_data_type(torch.float32) is types.FLOAT
    assert types.as_data_type(torch.int) is types.INT32
    with pytest.raises(TypeError, match="bfloat16"):
        types.as_data_type(torch.bfloat16)
    jax = pytest.importorskip("jax")
    assert types.as_data_type(jax.numpy.uint8) is types.UINT8
    assert types.as_data_type(jax.numpy.bool_) is types.BOOL

    class OfTensorFlow:
        as_numpy_dtype = np.float16

    assert types.as_data_type(OfTensorFlow()) is types.FLOAT16


def test_torch_types():
    torch = pytest.importorskip("torch")
    for name in ("float32", "float16", "float64", "uint8", "int64", "bool", "uint16"):
        expected = types.to_dali_type(name)
        assert types.to_dali_type(getattr(torch, name)) == expected
    with pytest.raises(TypeError, match="bfloat16"):
        types.to_dali_type(torch.bfloat16)


def test_kinds():
    kinds = {
        t.name: (types.is_integer(t), types.is_float(t), types.is_bool(t), types.is_enum_type(t))
        for t in types.DALIDataType
    }
    assert [n for n, k in kinds.items() if k[0]] == [
        "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    ]  # fmt: skip
    assert [n for n, k in kinds.items() if k[1]] == ["FLOAT16", "FLOAT", "FLOAT64"]
    assert [n for n, k in kinds.items() if k[2]] == ["BOOL"]
    assert [n for n, k in kinds.items() if k[3]] == ["IMAGE_TYPE", "DATA_TYPE", "INTERP_TYPE"]
    assert all(sum(k) <= 1 for k in kinds.values())


def test_storage_of_enumerations():
    assert types.storage_dtype(types.IMAGE_TYPE) == np.int32
    with pytest.raises(KeyError):
        types.storage_dtype(types.FEATURE)

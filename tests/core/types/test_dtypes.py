"""Element types and what other libraries call them."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import errors, types

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
        types.storage_dtype(types.STRING)

import copy
import pickle

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import types
from headrace.experimental.dynamic import calling
from headrace.experimental.dynamic.dtypes import MEMBERS


@pytest.mark.parametrize("name", MEMBERS)
def test_members_are_found_by_name_and_by_type_id(name):
    member = getattr(ndd, name)
    assert ndd.dtype(member.name) is member
    assert ndd.dtype(member) is member
    if member.type_id is not None:
        assert ndd.dtype(member.type_id) is member
        assert ndd.type_id(member) is member.type_id
        assert ndd.type_id(member.type_id) is member.type_id


@pytest.mark.parametrize("name", MEMBERS)
def test_members_stay_themselves_when_copied(name):
    member = getattr(ndd, name)
    assert copy.deepcopy(member) is member
    assert pickle.loads(pickle.dumps(member)) is member


def test_types_that_say_the_same_are_equal():
    made = ndd.DType(ndd.DType.Kind.signed, 32)
    assert made == ndd.int32
    assert hash(made) == hash(ndd.int32)
    assert ndd.float16 != ndd.bfloat16
    assert ndd.DataType != ndd.ImageType


def test_a_type_differs_from_what_is_none():
    assert ndd.int32 != 5
    assert ndd.int32 != None  # noqa: E711
    assert (ndd.int32 == "i32") is False


def test_a_type_cannot_be_changed():
    with pytest.raises(AttributeError):
        ndd.int32.bits = 8
    with pytest.raises(AttributeError):
        del ndd.int32.bits


@pytest.mark.parametrize(
    "given", [np.float32, np.dtype("f4"), float, "f32", "float32", types.FLOAT], ids=repr
)
def test_types_of_others(given):
    assert ndd.dtype(given) is ndd.float32


def test_short_names_are_not_numpys():
    assert ndd.dtype("i8") is ndd.int8
    assert ndd.cast(np.ones(1), dtype="i8").dtype is ndd.int8


def test_type_of_pytorch():
    torch = pytest.importorskip("torch")
    assert ndd.dtype(torch.uint8) is ndd.uint8


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("float23", ValueError),
        ("", ValueError),
        ("tf32", KeyError),
        ("f8", KeyError),
        ("i7", KeyError),
        (types.FEATURE, KeyError),
        (str, TypeError),
        (None, TypeError),
        (np.complex64, TypeError),
        (np.dtype(">i4"), TypeError),
    ],
)
def test_what_is_no_type(given, error):
    with pytest.raises(error):
        ndd.dtype(given)


def test_type_id_takes_types_only():
    with pytest.raises(ValueError, match="f32"):
        ndd.type_id("f32")


@pytest.mark.parametrize("given", [ndd.uint8, np.uint8, np.dtype("u1"), "uint8", "torch"], ids=repr)
def test_a_call_is_prepared_once(given, monkeypatch):
    if given == "torch":
        given = pytest.importorskip("torch").uint8
    ndd.cast(np.ones(1), dtype=given)
    monkeypatch.setattr(calling, "made", None)
    assert ndd.cast(np.ones(1), dtype=given).dtype is ndd.uint8

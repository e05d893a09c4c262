"""`headrace.types` beside `nvidia.dali.types`: names, values, conversions, constants."""

from __future__ import annotations

import inspect
import math

import numpy as np
import nvidia.dali
import nvidia.dali.backend
import nvidia.dali.types
import pytest

import headrace
import headrace.backend
import headrace.types
from headrace.types import constant

BOTH = (nvidia.dali.types, headrace.types)
ENUMS = ["DALIDataType", "DALIImageType", "DALIInterpType"]
# What DALI's module imports for its own use.
INTERNAL = {"Enum", "backend_impl", "ctypes", "dali_type_converters", "re", "tfrec", "unique"}


def outcome(function, *args):
    """Result of `function`, or the class of its error."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def is_error(value):
    return isinstance(value, type) and issubclass(value, Exception)


def assert_same(ours, theirs):
    """Check that two outcomes are equal, or that ours is an error of DALI's class too."""
    if is_error(theirs):
        assert is_error(ours), f"DALI raises {theirs}, Headrace gives {ours!r}"
        assert issubclass(ours, theirs)
    else:
        assert ours == theirs


def test_names():
    public = {n for n in dir(nvidia.dali.types) if not n.startswith("_")} - INTERNAL
    assert not [name for name in sorted(public) if not hasattr(headrace.types, name)]


@pytest.mark.parametrize("name", ["Constant", "to_numpy_type", "to_dali_type", "ConstantNode"])
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(lib, name)) for lib in (headrace.types, BOTH[0]))
    assert list(ours.parameters)[:5] == list(theirs.parameters)[:5]
    for parameter in theirs.parameters.values():
        if parameter.name in ours.parameters:
            assert ours.parameters[parameter.name].default == parameter.default


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations(name):
    theirs, ours = (getattr(lib, name) for lib in BOTH)
    assert {k: int(v) for k, v in ours.__members__.items()} == {
        k: int(v) for k, v in theirs.__members__.items()
    }
    for key, member in theirs.__members__.items():
        mine = ours.__members__[key]
        assert mine == int(member)
        assert hash(mine) == hash(member)
        assert bool(mine) is bool(member) is True
        assert (str(mine), repr(mine), f"{mine}") == (str(member), repr(member), f"{member}")
        assert (mine.name, mine.value) == (member.name, member.value)
        assert ours(int(mine)) == mine


def test_device_types():
    theirs, ours = (lib.backend.DLDeviceType for lib in (nvidia.dali, headrace))
    assert {k: int(v) for k, v in ours.__members__.items()} == {
        k: int(v) for k, v in theirs.__members__.items()
    }


@pytest.mark.parametrize("name", ["NHWC", "NCHW", "NFHWC", "NFCHW", "SAME", "CPU_ONLY_DEVICE_ID"])
def test_constants_of_the_module(name):
    assert getattr(headrace.types, name) == getattr(nvidia.dali.types, name)


def test_python_enumerations():
    for name in ("StreamPolicy", "OperatorConcurrency"):
        members = getattr(nvidia.dali, name).__members__
        assert list(getattr(headrace.types, name).__members__) == list(members)
    theirs, ours = (lib.PipelineAPIType for lib in BOTH)
    assert {m.name: m.value for m in ours} == {m.name: m.value for m in theirs}


def test_to_numpy_type():
    for value in range(-1, 28):
        theirs, ours = (outcome(lib.to_numpy_type, lib.DALIDataType(value)) for lib in BOTH)
        assert_same(ours, theirs)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "bool",
            "bool_",
            "boolean",
            "sbyte",
            "byte",
            "ubyte",
            "short",
            "ushort",
            "int32",
            "uint32",
        ),
        *("long", "ulong", "half", "float", "double", "float32", "int", "foo", "torch.float32"),
        *(
            np.uint8,
            np.float16,
            np.bool_,
            np.longlong,
            np.complex64,
            np.dtype("f8"),
            np.dtype(">f4"),
        ),
        *(bool, float, int, str, None, 9),
    ],
    ids=repr,
)
def test_to_dali_type(name):
    theirs, ours = (outcome(lib.to_dali_type, name) for lib in BOTH)
    assert_same(ours, theirs)


SCALARS = {
    "int": lambda t: t.Constant(3),
    "float": lambda t: t.Constant(3.5),
    "bool": lambda t: t.Constant(True),
    "large": lambda t: t.Constant(2**40),
    "numpy double": lambda t: t.Constant(np.float64(3)),
    "numpy uint8": lambda t: t.Constant(np.uint8(3)),
    "numpy 0-d": lambda t: t.Constant(np.array(3)),
    "dtype": lambda t: t.Constant(3.7, dtype=t.UINT8),
    "dtype as number": lambda t: t.Constant(3, dtype=9),
    "shape": lambda t: t.Constant(3, shape=[1]),
    "retyped": lambda t: t.Constant(300).uint8(),
    "float to int": lambda t: t.Constant(3.5).int32(),
    "int to bool": lambda t: t.Constant(2).bool(),
    "text": lambda t: t.Constant("a"),
    "nothing": lambda t: t.Constant(None),
    "string type": lambda t: t.Constant(3, dtype=t.STRING),
    "unknown type": lambda t: t.Constant(3, dtype="float23"),
    "list": lambda t: t.ScalarConstant([3]),
}


@pytest.mark.parametrize("case", SCALARS)
def test_scalar_constants(case):
    theirs, ours = (outcome(SCALARS[case], lib) for lib in BOTH)
    if is_error(theirs):
        assert_same(ours, theirs)
        return
    assert type(ours).__name__ == type(theirs).__name__ == "ScalarConstant"
    assert type(ours.value) is type(theirs.value)
    assert (ours.value, ours.dtype, ours.shape) == (theirs.value, int(theirs.dtype), theirs.shape)
    if case != "dtype as number":  # there DALI keeps, and prints, the number
        assert str(ours) == str(theirs)
    for convert in (int, float, bool, hash):
        assert_same(outcome(convert, ours), outcome(convert, theirs))


def test_scalar_arithmetic():
    for use in (
        lambda a, b: a + b,
        lambda a, b: a * 3,
        lambda a, b: 3 - a,
        lambda a, b: -a,
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a == 3,
    ):
        theirs, ours = (outcome(use, lib.Constant(3), lib.Constant(3)) for lib in BOTH)
        assert_same(ours, theirs)


ARRAYS = {
    "saturated": lambda t: ([300, -1, 1], t.UINT8, None),
    "rounded": lambda t: ([1.5, 2.5, -1.5, -0.5, 0.5, 300.0, -300.0], t.INT8, None),
    "rounded to unsigned": lambda t: ([1.5, 2.5, -1.5, 0.5, 70000.0], t.UINT16, None),
    "too large": lambda t: ([2**40], None, None),
    "64 bits": lambda t: ([2**40], t.INT64, None),
    "uint32": lambda t: ([2**31], t.UINT32, None),
    "int as float": lambda t: ([2**31, 16777217], t.FLOAT, None),
    "infinite": lambda t: ([math.inf, -math.inf], t.INT32, None),
    "not a number": lambda t: ([math.nan], t.INT32, None),
    "nan": lambda t: ([math.nan, math.inf], None, None),
    "float as bool": lambda t: ([0.0, 0.3, 0.5, 2.0, -1.0], t.BOOL, None),
    "int as bool": lambda t: ([0, 3, -1], t.BOOL, None),
    "bools": lambda t: ([True, False], None, None),
    "bools and ints": lambda t: ([True, 2], None, None),
    "bools and floats": lambda t: ([True, 2.5], None, None),
    "half": lambda t: ([1.1, 1e6, -1e6], t.FLOAT16, None),
    "int as half": lambda t: ([70000, 3], t.FLOAT16, None),
    "numpy": lambda t: (np.arange(6).reshape(2, 3), None, None),
    "numpy double": lambda t: (np.array([1.1]), None, None),
    "numpy half": lambda t: (np.array([1.1], np.float16), None, None),
    "numpy bool": lambda t: (np.array([True]), None, None),
    "numpy uint8": lambda t: (np.array([200], np.uint8), None, None),
    "numpy 64 bits": lambda t: (np.array([2**40]), t.INT64, None),
    "numpy narrowed": lambda t: (np.array([2**33]), t.INT32, None),
    "numpy saturated": lambda t: (np.array([-70000]), t.UINT32, None),
    "numpy rounded": lambda t: (np.array([1.5, 2.5, -2.5]), t.INT32, None),
    "numpy reshaped": lambda t: (np.arange(6), None, (3, 2)),
    "numpy 0-d": lambda t: (np.array(3), None, None),
    "numpy empty": lambda t: (np.zeros((0, 3), np.float32), None, None),
    "filled": lambda t: (3, None, (2, 2)),
    "filled by a list": lambda t: ([3], None, (2, 2)),
    "number of elements": lambda t: (3, None, 4),
    "empty": lambda t: ([], None, None),
    "empty ints": lambda t: ([], t.INT32, None),
    "member": lambda t: (t.BGR, t.INT32, None),
    "members": lambda t: ([t.RGB, t.GRAY], t.FLOAT, None),
    "numpy does not fit": lambda t: (np.array([2**40]), None, None),
    "numpy unsigned does not fit": lambda t: (np.array([2**33], np.uint64), None, None),
    "complex": lambda t: (np.array([1j]), None, None),
    "text array": lambda t: (np.array(["a"]), None, None),
    "nested": lambda t: ([[1], [2]], None, None),
    "text": lambda t: ("a", None, None),
    "none": lambda t: (None, None, None),
    "two enumerations": lambda t: ([t.RGB, t.FLOAT], None, None),
    "member and number": lambda t: ([1, t.RGB], None, None),
    "array that does not fit its shape": lambda t: (np.arange(6), None, (2, 4)),
    "list that does not fit its shape": lambda t: ([1, 2], None, (3,)),
    "negative shape": lambda t: (3, None, (-1, 2)),
}


def dali_constant(case):
    pipe = nvidia.dali.Pipeline(1, 1, None)
    with pipe:
        value, dtype, shape = ARRAYS[case](nvidia.dali.types)
        pipe.set_outputs(nvidia.dali.types.Constant(value, dtype, shape, device="cpu"))
    pipe.build()
    return np.array(pipe.run()[0].at(0))


@pytest.mark.parametrize("case", ARRAYS)
def test_constant_arrays(case):
    theirs = outcome(dali_constant, case)
    ours = outcome(headrace.types.constant_array, *ARRAYS[case](headrace.types))
    if is_error(theirs):
        assert_same(ours, theirs)
        return
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("case", [c for c in ARRAYS if not c.startswith("member")])
def test_which_constants_are_nodes(case, monkeypatch):
    monkeypatch.setattr(constant, "node_maker", lambda *args, **kwargs: "node")
    theirs, ours = (outcome(lib.Constant, *ARRAYS[case](lib)) for lib in BOTH)
    assert isinstance(ours, headrace.types.ScalarConstant) == isinstance(
        theirs, nvidia.dali.types.ScalarConstant
    )


def test_type_of_enumeration_constants():
    for name in ("RGB", "FLOAT", "INTERP_NN"):
        pipe = nvidia.dali.Pipeline(1, 1, None)
        with pipe:
            pipe.set_outputs(nvidia.dali.types.Constant(getattr(nvidia.dali.types, name)))
        pipe.build()
        expected = int(pipe.run()[0].dtype)
        assert headrace.types.constant_dtype(getattr(headrace.types, name)) == expected


def test_infos():
    theirs, ours = (lib.SampleInfo(1, 2, 3, 4) for lib in BOTH)
    assert vars(ours) == vars(theirs)
    theirs, ours = (lib.BatchInfo(1, 2) for lib in BOTH)
    assert vars(ours) == vars(theirs)
    theirs, ours = (lib.CUDAStream(5).ptr for lib in BOTH)
    assert ours == theirs

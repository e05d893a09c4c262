"""`TensorCPU` and `TensorListCPU` beside DALI's: shapes, layouts, values, sharing, errors."""

from __future__ import annotations

import ctypes

import numpy as np
import nvidia.dali.backend
import nvidia.dali.tensors
import nvidia.dali.types
import pytest

import headrace.backend
import headrace.tensors
import headrace.types
from headrace.types import NUMPY_OF

torch = pytest.importorskip("torch")


class Library:
    def __init__(self, package):
        self.Tensor = package.tensors.TensorCPU
        self.List = package.tensors.TensorListCPU
        self.types = package.types
        self.backend = package.backend


DALI, OURS = Library(nvidia.dali), Library(headrace)


def plain(value):
    """`value` as data of no library."""
    if isinstance(value, (DALI.Tensor, OURS.Tensor)):
        return ("tensor", value.shape(), value.layout(), int(value.dtype), np.array(value).tolist())
    if isinstance(value, (DALI.List, OURS.List)):
        samples = [np.array(value.at(i)).tolist() for i in range(len(value))]
        return ("list", value.shape(), value.layout(), int(value.dtype), value.ndim(), samples)
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tolist())
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return value


def outcome(use, library):
    """What `use` gives in `library`, or the builtin class of its error."""
    try:
        return plain(use(library))
    except Exception as error:
        return error


def assert_same(use):
    theirs, ours = outcome(use, DALI), outcome(use, OURS)
    if isinstance(theirs, Exception):
        builtin = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        assert isinstance(ours, builtin), f"DALI raises {theirs!r}, Headrace gives {ours!r}"
    else:
        assert ours == theirs


def data(*shape, dtype=np.float32):
    shape = shape or (3, 4)
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


def surface(cls):
    special = {"__len__", "__getitem__", "__dlpack__", "__dlpack_device__", "__array_interface__"}
    return {n for n in dir(cls) if not n.startswith("_") or n in special}


@pytest.mark.parametrize("name", ["Tensor", "List"])
def test_every_method_is_there(name):
    theirs, ours = (getattr(lib, name) for lib in (DALI, OURS))
    assert surface(theirs) - surface(ours) == set()


TENSORS = {
    "array": lambda lib: lib.Tensor(data()),
    "layout": lambda lib: lib.Tensor(data(), "HW"),
    "empty layout": lambda lib: lib.Tensor(data(), ""),
    "scalar": lambda lib: lib.Tensor(np.float32(3)),
    "0-d": lambda lib: lib.Tensor(np.array(3)),
    "no elements": lambda lib: lib.Tensor(data(0, 3), "AB"),
    "bytes": lambda lib: lib.Tensor(b"abc"),
    "bytearray": lambda lib: lib.Tensor(bytearray(b"abc")),
    "memoryview": lambda lib: lib.Tensor(memoryview(b"abc")),
    "ctypes": lambda lib: lib.Tensor((ctypes.c_float * 3)(1, 2, 3)),
    "tensor": lambda lib: lib.Tensor(lib.Tensor(data(), "HW")),
    "tensor with layout": lambda lib: lib.Tensor(lib.Tensor(data()), "AB"),
    "capsule": lambda lib: lib.Tensor(torch.arange(6).reshape(2, 3).__dlpack__(), "HW"),
    "transposed column": lambda lib: lib.Tensor(np.zeros((3, 1)).T),
    "strided": lambda lib: lib.Tensor(data()[:, ::2]),
    "reversed": lambda lib: lib.Tensor(data()[::-1]),
    "fortran": lambda lib: lib.Tensor(np.asfortranarray(data())),
    "strided capsule": lambda lib: lib.Tensor(torch.zeros(2, 3).t().__dlpack__()),
    "list": lambda lib: lib.Tensor([1, 2]),
    "number": lambda lib: lib.Tensor(3.0),
    "none": lambda lib: lib.Tensor(None),
    "text": lambda lib: lib.Tensor(np.array(["a"])),
    "objects": lambda lib: lib.Tensor(np.array([None])),
    "dates": lambda lib: lib.Tensor(np.array(["2020-01-01"], "M8[D]")),
    "long double": lambda lib: lib.Tensor(np.zeros(2, np.longdouble)),
    "long layout": lambda lib: lib.Tensor(data(), "HWC"),
    "layout of a scalar": lambda lib: lib.Tensor(np.float32(3), "A"),
    "pinned": lambda lib: lib.Tensor(data(), "HW", True),
    "no layout": lambda lib: (lib.Tensor(data()).layout(), lib.Tensor(data(), None).layout()),
    "ndim": lambda lib: lib.Tensor(data(1, 2, 3)).ndim(),
    "properties": lambda lib: tuple(
        lib.Tensor(data(), layout).get_property(key)
        for layout in ("HW", None)
        for key in ("layout", "source_info", "unknown")
    ),
    "source info": lambda lib: lib.Tensor(data()).source_info(),
    "device": lambda lib: tuple(int(v) for v in lib.Tensor(data()).__dlpack_device__()),
    "export to a GPU": lambda lib: lib.Tensor(data()).__dlpack__(
        dl_device=(lib.backend.DLDeviceType.kDLCUDA, 0)
    ),
    "length": lambda lib: len(lib.Tensor(data())),
    "index": lambda lib: lib.Tensor(data())[0],
    "truth": lambda lib: bool(lib.Tensor(data(0))),
    "as int": lambda lib: np.asarray(lib.Tensor(data()), np.int64),
    "copy": lambda lib: lib.Tensor(data(), "HW")._make_copy(),
    "copy on a GPU": lambda lib: lib.Tensor(data())._as_gpu(),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensor(case):
    assert_same(TENSORS[case])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", NUMPY_OF.values())
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_types_and_shapes(dtype, shape):
    assert_same(lambda lib: lib.Tensor(data(*shape, dtype=dtype).reshape(shape)))
    if shape:
        assert_same(lambda lib: lib.List(data(*shape, dtype=dtype)))


@pytest.mark.sweep
@pytest.mark.parametrize("dim", [None, 0, 1, 2, -1, -2, -4, 4, -5, "a"])
@pytest.mark.parametrize("layout", ["ABCD", ""])
def test_squeeze(dim, layout):
    def use(lib):
        tensor = lib.Tensor(data(1, 3, 1, 2), layout)
        return (tensor.squeeze(dim), tensor)

    if dim == "a":
        with pytest.raises(TypeError):
            use(OURS)
    else:
        assert_same(use)


@pytest.mark.parametrize("layout", ["HW", "", None, "A", "ABC", 3])
def test_set_layout(layout):
    def use(lib, make):
        target = make(lib)
        target.set_layout(layout)
        return target

    assert_same(lambda lib: use(lib, lambda lib: lib.Tensor(data(), "XY")))
    assert_same(lambda lib: use(lib, lambda lib: lib.List(data(2, 3, 4), "XY")))


@pytest.mark.parametrize("name", ["INT32", "UINT32", "FLOAT64", "UINT8", "STRING", "NO_TYPE"])
def test_reinterpret(name):
    def use(lib, make):
        target = make(lib)
        target.reinterpret(getattr(lib.types, name))
        return target

    assert_same(lambda lib: use(lib, lambda lib: lib.Tensor(data(), "HW")))
    assert_same(lambda lib: use(lib, lambda lib: lib.List(data(2, 3, 4), "HW")))
    assert_same(lambda lib: use(lib, lambda lib: lib.List([data(2), data(3)])))


def test_enumeration_members():
    def make(lib):
        batch = lib.List(np.zeros((2, 3), np.int32))
        batch.reinterpret(lib.types.IMAGE_TYPE)
        return batch

    for use in (
        lambda lib: int(make(lib).dtype),
        lambda lib: int(make(lib)[0].dtype),
        lambda lib: make(lib).at(0),
        lambda lib: make(lib).as_array(),
        lambda lib: np.asarray(make(lib)[0]),
        lambda lib: make(lib)[0].__dlpack__(),
        lambda lib: make(lib)[0].__array_interface__,
    ):
        assert_same(use)


def ragged():
    return [data(n, 2, dtype=np.int64) for n in (2, 5, 0)]


LISTS = {
    "dense": lambda lib: lib.List(data(2, 3, 4), "HW"),
    "gathered": lambda lib: lib.List(list(data(2, 3, 4)), "HW"),
    "separate": lambda lib: lib.List([data(), data()], "HW", False),
    "ragged": lambda lib: lib.List(ragged(), "HW"),
    "ragged and separate": lambda lib: lib.List(ragged(), "HW", False),
    "tensors": lambda lib: lib.List([lib.Tensor(data(), "HW")] * 2),
    "scalars": lambda lib: lib.List(data(3)),
    "no elements": lambda lib: lib.List(data(2, 0, 4), "HW"),
    "no samples": lambda lib: lib.List(data(0, 3, 4), "HW"),
    "nothing": lambda lib: lib.List([]),
    "one": lambda lib: lib.List([data()], "HW", False),
    "repeated": lambda lib: lib.List.broadcast(lib.Tensor(data(), "HW"), 3),
    "repeated once": lambda lib: lib.List.broadcast(lib.Tensor(data(), "HW"), 1),
    "never repeated": lambda lib: lib.List.broadcast(lib.Tensor(data(), "HW"), 0),
    "list": lambda lib: lib.List(lib.List(data(2, 3, 4), "HW")),
    "list with layout": lambda lib: lib.List(lib.List(data(2, 3, 4), "HW"), "AB"),
    "list with empty layout": lambda lib: lib.List(lib.List(data(2, 3, 4), "HW"), ""),
    "capsule": lambda lib: lib.List(torch.zeros(2, 3).__dlpack__(), "A"),
    "tensor": lambda lib: lib.List(lib.Tensor(data(2, 3), "HW")),
    "torch": lambda lib: lib.List.from_dlpack_list([torch.zeros(2, 3), torch.ones(1, 3)], "HW"),
    "from no DLPack": lambda lib: lib.List.from_dlpack_list([]),
    "from tensors by DLPack": lambda lib: lib.List.from_dlpack_list([lib.Tensor(data(), "HW")]),
    "reset": lambda lib: [b := lib.List(data(2, 3), "A"), b.reset()][0],
}
BAD_LISTS = {
    "0-d": lambda lib: lib.List(np.float32(3)),
    "strided": lambda lib: lib.List(data(2, 3, 4)[:, ::2]),
    "mixed types": lambda lib: lib.List([data(2), data(2, dtype=np.int32)]),
    "mixed axes": lambda lib: lib.List([data(2), data(2, 2)]),
    "mixed layouts": lambda lib: lib.List([lib.Tensor(data(), "HW"), lib.Tensor(data(), "AB")]),
    "list of lists": lambda lib: lib.List([[1, 2], [3]]),
    "list of numbers": lambda lib: lib.List([1]),
    "number": lambda lib: lib.List(3),
    "layout": lambda lib: lib.List(data(2, 3), "AB"),
    "pinned": lambda lib: lib.List(data(2, 3), "A", is_pinned=True),
    "from DLPack of mixed types": lambda lib: lib.List.from_dlpack_list(
        [torch.zeros(2), torch.zeros(2, dtype=torch.int32)]
    ),
    "from what is no DLPack": lambda lib: lib.List.from_dlpack_list([[1]]),
    "repeated negatively": lambda lib: lib.List.broadcast(lib.Tensor(data()), -1),
    "sum": lambda lib: lib.List(data(2, 3)) + 1,
    "copy on a GPU": lambda lib: lib.List(data(2, 3))._as_gpu(),
}


@pytest.mark.parametrize("case", LISTS)
def test_list(case):
    make = LISTS[case]
    assert_same(make)
    for use in (
        lambda b: len(b),
        lambda b: b.ndim(),
        lambda b: b.is_dense_tensor(),
        lambda b: type(b.data_ptr()) if b.is_dense_tensor() else None,
        lambda b: b[0],
        lambda b: b[-1],
        lambda b: b[50],
        lambda b: b[-50],
        lambda b: b.at(0),
        lambda b: b.at(-1),
        lambda b: b.at(50),
        lambda b: tuple(b),
        lambda b: b._make_copy(),
        lambda b: b.as_cpu() is b,
        lambda b: bool(b),
        lambda b: copied_out(b),
    ):
        assert_same(lambda lib, use=use: use(make(lib)))


def copied_out(batch):
    out = np.zeros(100, np.int64)
    batch.copy_to_external(ctypes.c_void_p(out.ctypes.data))
    return out


@pytest.mark.parametrize("case", BAD_LISTS)
def test_bad_list(case):
    assert_same(BAD_LISTS[case])
    assert isinstance(outcome(BAD_LISTS[case], OURS), Exception)


DENSE = ["dense", "gathered", "scalars", "no elements", "one", "repeated once", "capsule", "tensor"]


@pytest.mark.parametrize("case", [*DENSE, "ragged", "ragged and separate"])
def test_list_as_one(case):
    make = LISTS[case]
    assert_same(lambda lib: make(lib).as_tensor())
    assert_same(lambda lib: make(lib).as_array())
    assert_same(lambda lib: make(lib).as_tensor().layout())
    volume = sum(int(np.prod(s)) for s in make(OURS).shape())
    for shape in ([volume], (1, volume), [volume + 1], [-1]):
        if case != "ragged and separate":
            assert_same(lambda lib, shape=shape: make(lib).as_reshaped_tensor(shape))


def test_where_dali_has_no_one_tensor_headrace_copies():
    for case in ("separate", "repeated"):
        for method in ("as_tensor", "as_array"):
            assert isinstance(
                outcome(lambda lib, c=case, m=method: getattr(LISTS[c](lib), m)(), DALI),
                RuntimeError,
            )
        batch = LISTS[case](OURS)
        np.testing.assert_array_equal(batch.as_array(), np.stack([batch.at(0)] * len(batch)))


@pytest.mark.parametrize(
    "share",
    [
        lambda lib, x: np.asarray(lib.Tensor(x)),
        lambda lib, x: np.from_dlpack(lib.Tensor(x)),
        lambda lib, x: torch.from_dlpack(lib.Tensor(x)).numpy(),
        lambda lib, x: np.asarray(lib.Tensor(lib.Tensor(x))),
        lambda lib, x: lib.List(x).at(1),
        lambda lib, x: np.asarray(lib.List(x)[1]),
        lambda lib, x: np.asarray(lib.List(x).as_tensor()),
        lambda lib, x: lib.List(x).as_array(),
        lambda lib, x: np.asarray(lib.List(x).as_reshaped_tensor([12])),
        lambda lib, x: lib.List([x], contiguous=False).at(0),
        lambda lib, x: lib.List([x]).at(0),
        lambda lib, x: lib.List.from_dlpack_list([torch.from_numpy(x)]).at(0),
        lambda lib, x: lib.List.broadcast(lib.Tensor(x), 2).at(1),
        lambda lib, x: np.asarray(lib.Tensor(x)._make_copy()),
    ],
    ids=range(14),
)
def test_what_shares_memory(share):
    """Arrays of `at` and `as_array` are copies in DALI; here they are views of the batch."""
    source = data()
    theirs, ours = (np.shares_memory(share(lib, source), source) for lib in (DALI, OURS))
    assert ours >= theirs


@pytest.mark.parametrize(
    "make",
    [
        lambda lib, x: lib.Tensor(x),
        lambda lib, x: lib.List(x)[0],
        lambda lib, x: lib.List(x).as_tensor(),
    ],
    ids=["tensor", "sample", "whole"],
)
def test_writing_reaches_the_source(make):
    for lib in (DALI, OURS):
        source = data()
        torch.from_dlpack(make(lib, source)).fill_(7)
        assert (source[0] == 7).all()
        np.asarray(make(lib, source))[...] = 8
        assert (source[0] == 8).all()
        assert make(lib, source).data_ptr() == source.ctypes.data

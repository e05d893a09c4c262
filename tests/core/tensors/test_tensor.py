"""One tensor: what it is made of, what it shares, how it is changed in place and exported."""

from __future__ import annotations

import array
import copy
import ctypes
import pickle
import weakref

import numpy as np
import pytest

from headrace import errors, types
from headrace.tensors import TensorCPU, TensorGPU
from headrace.tensors.device import DLDeviceType
from headrace.tensors.pool import HOST_POOL

DTYPES = [types.NUMPY_OF[t] for t in types.NUMPY_OF]


@pytest.fixture
def data():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (2, 1, 3, 1)])
def test_made_of_an_array(shape, dtype):
    source = np.ones(shape, dtype)
    tensor = TensorCPU(source)
    assert tensor.shape() == list(shape)
    assert tensor.ndim() == len(shape)
    assert types.to_numpy_type(tensor.dtype) is dtype
    assert tensor.layout() == ""
    result = np.asarray(tensor)
    assert result.dtype == dtype
    assert result.shape == shape
    assert not source.size or np.shares_memory(result, source)
    assert result.flags.writeable


def torch_tensor():
    return pytest.importorskip("torch").zeros(2, 3)


def torch_capsule():
    return torch_tensor().__dlpack__()


class OnlyDLPack:
    def __init__(self):
        self.array = np.zeros((2, 3), np.float32)

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OldDLPack(OnlyDLPack):
    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class OnlyArrayInterface:
    def __init__(self):
        self.array = np.zeros((2, 3), np.float32)
        self.__array_interface__ = self.array.__array_interface__


class OnlyArray:
    def __init__(self):
        self.array = np.zeros((2, 3), np.float32)

    def __array__(self, dtype=None, copy=None):
        return self.array


def zeros():
    return np.zeros((2, 3), np.float32)


WITH_MEMORY = {
    "array": zeros,
    "masked array": lambda: np.ma.array(zeros()),
    "capsule": lambda: zeros().__dlpack__(),
    "versioned capsule": lambda: zeros().__dlpack__(max_version=(1, 0)),
    "memoryview": lambda: memoryview(zeros()),
    "ctypes": ((ctypes.c_float * 3) * 2),
    "tensor": lambda: TensorCPU(zeros()),
    "__dlpack__": OnlyDLPack,
    "__dlpack__ without versions": OldDLPack,
    "__array_interface__": OnlyArrayInterface,
    "__array__": OnlyArray,
    "torch": torch_tensor,
    "torch capsule": torch_capsule,
}


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_made_of_anything_with_memory(kind):
    tensor = TensorCPU(WITH_MEMORY[kind](), "AB")
    assert tensor.shape() == [2, 3]
    assert tensor.dtype == types.FLOAT
    assert tensor.layout() == "AB"
    assert type(tensor._array) is np.ndarray
    assert np.asarray(tensor).flags.writeable
    np.testing.assert_array_equal(tensor, np.zeros((2, 3)))


def test_made_of_bytes():
    for source in (b"\x01\x02\x03", bytearray(b"\x01\x02\x03"), array.array("B", [1, 2, 3])):
        tensor = TensorCPU(source)
        assert tensor.dtype == types.UINT8
        assert np.asarray(tensor).tolist() == [1, 2, 3]
        assert np.asarray(tensor).flags.writeable == (not isinstance(source, bytes))


def test_made_of_a_numpy_scalar():
    tensor = TensorCPU(np.float16(1.5))
    assert (tensor.shape(), tensor.dtype) == ([], types.FLOAT16)


def test_memory_is_shared_both_ways(data):
    tensor = TensorCPU(data)
    np.asarray(tensor)[0, 0] = 50
    data[0, 1] = 60
    assert data[0, 0] == 50
    assert np.asarray(tensor)[0, 1] == 60
    assert tensor.data_ptr() == data.ctypes.data


@pytest.mark.parametrize("export", [np.asarray, np.from_dlpack, TensorCPU.__dlpack__])
def test_memory_lives_as_long_as_its_users(export):
    class Source:
        def __init__(self):
            self.array = np.arange(3)
            self.__array_interface__ = self.array.__array_interface__

    source = Source()
    gone = weakref.ref(source)
    tensor = TensorCPU(source)
    del source
    exported = export(tensor)
    del tensor
    assert gone() is not None
    assert np.asarray(TensorCPU(exported)).tolist() == [0, 1, 2]
    del exported
    assert gone() is None


@pytest.mark.parametrize("export", ["asarray", "from_dlpack", "capsule", "torch"])
def test_pooled_memory_returns_after_the_last_export(export):
    tensor = TensorCPU(HOST_POOL.empty((10, 10), np.float32))
    in_use = HOST_POOL.stats().buffers_in_use
    if export == "asarray":
        user = np.asarray(tensor)[1:]
    elif export == "from_dlpack":
        user = np.from_dlpack(tensor)
    elif export == "capsule":
        user = tensor.__dlpack__(max_version=(1, 0))
    else:
        user = pytest.importorskip("torch").from_dlpack(tensor)[2]
    del tensor
    assert HOST_POOL.stats().buffers_in_use == in_use
    del user
    assert HOST_POOL.stats().buffers_in_use == in_use - 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_takes_and_gives_every_type(dtype):
    torch = pytest.importorskip("torch")
    source = np.ones((2, 3), dtype)
    for tensor in (torch.from_dlpack(TensorCPU(source)), torch.as_tensor(TensorCPU(source))):
        assert tensor.data_ptr() == source.ctypes.data
        assert tuple(tensor.shape) == (2, 3)
    back = TensorCPU(torch.from_dlpack(TensorCPU(source)))
    assert back.dtype == TensorCPU(source).dtype
    assert back.data_ptr() == source.ctypes.data


def test_torch_that_needs_gradients_says_so():
    torch = pytest.importorskip("torch")
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        TensorCPU(torch.zeros(3, requires_grad=True))


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1)])
def test_dlpack_versions(data, version):
    capsule = TensorCPU(data).__dlpack__(max_version=version)
    name = "dltensor_versioned" if version and version[0] >= 1 else "dltensor"
    assert f'"{name}"' in repr(capsule)
    assert TensorCPU(capsule).data_ptr() == data.ctypes.data


def test_dlpack_arguments(data):
    tensor = TensorCPU(data)
    assert tensor.__dlpack_device__() == (DLDeviceType.kDLCPU, 0) == (1, 0)
    assert TensorCPU(tensor.__dlpack__(stream=3, copy=False)).data_ptr() == data.ctypes.data
    assert TensorCPU(tensor.__dlpack__(copy=True)).data_ptr() != data.ctypes.data
    device = (DLDeviceType.kDLCPU, 0)
    assert TensorCPU(tensor.__dlpack__(dl_device=device)).data_ptr() == data.ctypes.data
    with pytest.raises(errors.ExportError, match=r"kDLCUDA:0 without a copy"):
        tensor.__dlpack__(dl_device=(DLDeviceType.kDLCUDA, 0), copy=False)
    with pytest.raises(BufferError, match="kDLMetal"):
        tensor.__dlpack__(dl_device=(DLDeviceType.kDLMetal, 0))


def test_read_only_memory_stays_read_only():
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    tensor = TensorCPU(frozen)
    assert not np.asarray(tensor).flags.writeable
    assert not np.asarray(TensorCPU(tensor.__dlpack__(max_version=(1, 0)))).flags.writeable
    with pytest.raises(BufferError):
        tensor.__dlpack__()  # this version cannot say that it is read-only


def test_capsule_serves_once(data):
    capsule = data.__dlpack__()
    TensorCPU(capsule)
    with pytest.raises(errors.UsageError, match="used before"):
        TensorCPU(capsule)


@pytest.mark.parametrize("value", [[1, 2], 3.0, None, "text", {}, object()], ids=type)
def test_no_memory_to_share(value):
    with pytest.raises(errors.ArgumentTypeError, match=type(value).__name__):
        TensorCPU(value)


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (np.array(["a"]), "not supported"),
        (np.array([None]), "not supported"),
        (np.zeros(2, np.complex64), "view"),
        (np.zeros(2, ">f4"), "byte order"),
        (np.zeros(2, [("a", "f4")]), "not supported"),
        (np.zeros(2, np.longdouble), "not supported"),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_types_that_dali_has_not(value, way_out):
    with pytest.raises(errors.DataTypeError, match=way_out) as caught:
        TensorCPU(value)
    assert isinstance(caught.value, RuntimeError)


def test_dates():
    with pytest.raises(ValueError, match="int64"):
        TensorCPU(np.array(["2020-01-01"], "M8[D]"))


@pytest.mark.parametrize(
    "strided", [np.s_[:, ::2], np.s_[::-1], np.s_[:, :3], np.s_[..., ::-1]], ids=str
)
def test_strided_data(data, strided):
    with pytest.raises(errors.ShapeError, match="ascontiguousarray"):
        TensorCPU(np.asfortranarray(data))
    with pytest.raises(errors.ShapeError, match="ascontiguousarray"):
        TensorCPU(np.broadcast_to(data[0], (5, 4)))
    with pytest.raises(errors.ShapeError, match="ascontiguousarray") as caught:
        TensorCPU(data[strided])
    assert isinstance(caught.value, RuntimeError)


def test_strides_of_single_rows_do_not_matter(data):
    assert TensorCPU(np.zeros((3, 1)).T).shape() == [1, 3]
    assert TensorCPU(data[1:2, :]).shape() == [1, 4]


@pytest.mark.parametrize("layout", ["H", "HWC", "HWHWHW"])
def test_layout_of_another_length(data, layout):
    with pytest.raises(errors.LayoutError, match=layout):
        TensorCPU(data, layout)
    tensor = TensorCPU(data, "HW")
    with pytest.raises(errors.LayoutError, match=layout):
        tensor.set_layout(layout)
    assert tensor.layout() == "HW"


def test_layout(data):
    tensor = TensorCPU(data, "HW")
    assert tensor.layout() == tensor.get_property("layout") == "HW"
    for nothing in (None, ""):
        tensor.set_layout("AB")
        tensor.set_layout(nothing)
        assert tensor.layout() == ""
        assert tensor.get_property("layout") is None
    with pytest.raises(errors.ArgumentTypeError, match="int"):
        tensor.set_layout(3)
    assert TensorCPU(tensor).layout() == ""
    assert TensorCPU(TensorCPU(data, "HW")).layout() == ""


def test_source_info(data):
    tensor = TensorCPU._wrap(data, "HW", types.FLOAT, "a.jpg")
    assert tensor.source_info() == tensor.get_property("source_info") == "a.jpg"
    plain = TensorCPU(data)
    assert plain.source_info() == ""
    assert plain.get_property("source_info") is None
    assert plain.get_property("unknown") is None


@pytest.mark.parametrize(
    ("shape", "layout", "dim", "changed", "expected"),
    [
        ((1, 3, 1, 2), "ABCD", None, True, ([3, 2], "BD")),
        ((1, 3, 1, 2), "ABCD", 0, True, ([3, 1, 2], "BCD")),
        ((1, 3, 1, 2), "ABCD", -2, True, ([1, 3, 2], "ABD")),
        ((1, 3, 1, 2), "ABCD", 1, False, ([1, 3, 1, 2], "ABCD")),
        ((1, 3, 1, 2), "", None, True, ([3, 2], "")),
        ((2, 3), "AB", None, False, ([2, 3], "AB")),
        ((1, 1), "AB", None, True, ([], "")),
        ((), "", None, False, ([], "")),
        ((1, 0), "AB", None, True, ([0], "B")),
    ],
)
def test_squeeze(shape, layout, dim, changed, expected):
    tensor = TensorCPU(np.zeros(shape), layout)
    assert tensor.squeeze(dim) is changed
    assert (tensor.shape(), tensor.layout()) == expected


@pytest.mark.parametrize("dim", [2, -3, 100])
def test_squeeze_of_no_axis(data, dim):
    with pytest.raises(RuntimeError, match=str(dim)):
        TensorCPU(data).squeeze(dim)
    with pytest.raises(TypeError, match="dim"):
        TensorCPU(data).squeeze("a")


def test_reinterpret(data):
    tensor = TensorCPU(data, "HW")
    tensor.reinterpret(types.INT32)
    assert tensor.dtype == types.INT32
    assert tensor.layout() == "HW"
    np.testing.assert_array_equal(tensor, data.view(np.int32))
    for wrong in (types.UINT8, types.FLOAT64, types.STRING, types.NO_TYPE):
        with pytest.raises(RuntimeError, match=wrong.name):
            tensor.reinterpret(wrong)
    with pytest.raises(TypeError, match="float23"):
        tensor.reinterpret("float23")


def test_enumeration_members():
    tensor = TensorCPU(np.array([0, 1, 99], np.int32))
    tensor.reinterpret(types.IMAGE_TYPE)
    assert "RGB, BGR, 99" in str(tensor)
    for export in (np.asarray, lambda t: t.__dlpack__(), lambda t: t.__array_interface__):
        with pytest.raises(TypeError, match=r"fn\.cast"):
            export(tensor)


def test_copy_to_external(data):
    tensor = TensorCPU(data)
    for target in (
        lambda a: ctypes.c_void_p(a.ctypes.data),
        lambda a: a.ctypes.data,
        lambda a: ctypes.cast(a.ctypes.data, ctypes.POINTER(ctypes.c_float)),
        lambda a: a,
        lambda a: memoryview(a),
    ):
        out = np.zeros((3, 4), np.float32)
        tensor.copy_to_external(target(out))
        np.testing.assert_array_equal(out, data)


def test_copy_to_wrong_places(data):
    tensor = TensorCPU(data)
    with pytest.raises(ValueError, match="44 bytes"):
        tensor.copy_to_external(np.zeros(11, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        tensor.copy_to_external(bytes(48))
    with pytest.raises(ValueError, match="null"):
        tensor.copy_to_external(ctypes.c_void_p(None))
    with pytest.raises(TypeError, match="str"):
        tensor.copy_to_external("here")
    with pytest.raises(RuntimeError, match="ascontiguous"):
        tensor.copy_to_external(np.zeros((3, 8), np.float32)[:, ::2])


def test_array_protocol(data):
    tensor = TensorCPU(data)
    assert np.asarray(tensor, np.int64).dtype == np.int64
    assert not np.shares_memory(np.array(tensor), data)
    assert np.shares_memory(np.array(tensor, copy=False), data)
    direct = tensor.__array__()
    assert np.shares_memory(direct, data)
    assert tensor.__array__(np.int32).dtype == np.int32
    assert not np.shares_memory(tensor.__array__(copy=True), data)
    with pytest.raises(ValueError, match="copy"):
        tensor.__array__(np.int32, copy=False)
    direct.resize(12, refcheck=False)  # in place
    assert tensor.shape() == [3, 4]


def test_identity_and_truth(data):
    tensor = TensorCPU(data)
    assert tensor.as_cpu() is tensor
    assert tensor == tensor
    assert tensor != TensorCPU(data)
    assert {tensor: 1}[tensor] == 1
    assert TensorCPU(np.zeros(0))
    assert weakref.ref(tensor)() is tensor
    for impossible in (len, lambda t: t[0], iter):
        with pytest.raises(TypeError):
            impossible(tensor)


def test_copies(data):
    tensor = TensorCPU._wrap(data, "HW", types.FLOAT, "a.jpg")
    for other in (
        pickle.loads(pickle.dumps(tensor)),
        copy.deepcopy(tensor),
        tensor._make_copy(),
    ):
        assert not np.shares_memory(other, data)
        np.testing.assert_array_equal(other, data)
        assert (other.layout(), other.source_info(), other.dtype) == ("HW", "a.jpg", types.FLOAT)
    assert np.shares_memory(copy.copy(tensor), data)


def test_gpu_is_named_where_it_is_missing(data, without_gpu):
    for needs_gpu in (
        lambda: TensorCPU(data, is_pinned=True),
        lambda: TensorCPU(data)._as_gpu(),
        lambda: TensorCPU(data).__dlpack__(dl_device=(DLDeviceType.kDLCUDA, 0)),
    ):
        with pytest.raises(errors.GpuNotAvailableError, match="GPU") as caught:
            needs_gpu()
        assert isinstance(caught.value, RuntimeError)
    assert not isinstance(TensorCPU(data), TensorGPU)


def test_data_of_the_host_is_no_gpu_tensor(data):
    for value in (data, TensorCPU(data), 3):
        with pytest.raises(errors.ArgumentTypeError, match=r"no data on a GPU.*TensorCPU"):
            TensorGPU(value)
    with pytest.raises(errors.ArgumentTypeError, match="in the memory of kDLCPU"):
        TensorGPU(data.__dlpack__())


def test_data_on_a_gpu_is_refused():
    class OnGPU:
        __cuda_array_interface__ = {"shape": (1,)}  # noqa: RUF012

    class OnGPUWithDLPack(OnGPU):
        def __dlpack__(self, **kwargs):
            raise AssertionError("must not be asked")

        def __dlpack_device__(self):
            return (2, 0)

    for value in (OnGPU(), OnGPUWithDLPack()):
        with pytest.raises(errors.ArgumentTypeError, match=r"memory.*`TensorGPU`"):
            TensorCPU(value)


def test_printing(data):
    tensor = TensorCPU._wrap(data, "HW", types.FLOAT, "a.jpg")
    assert repr(tensor) == (
        "TensorCPU(shape=(3, 4), dtype=DALIDataType.FLOAT, "
        'layout="HW", device="cpu", source=\'a.jpg\')'
    )
    assert str(tensor).splitlines()[1:] == [
        "  [[ 0.,  1.,  2.,  3.],",
        "   [ 4.,  5.,  6.,  7.],",
        "   [ 8.,  9., 10., 11.]]",
    ]
    assert str(TensorCPU(np.zeros(1000))).endswith("[0., 0., ..., 0., 0.]")
    assert str(TensorCPU(np.zeros((0, 3)))).endswith("[]")
    assert str(TensorCPU(np.float32(2.5))).endswith("2.5")


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.arange(256, dtype=np.uint8).reshape(16, 16), "<0 .. 255, mean 127.5>"),
        (np.linspace(-1, 2, 300).reshape(3, 100), "<-1 .. 2, mean 0.5>"),
        (np.where(np.eye(10) > 0, np.nan, 1.0), "<1 .. 1, mean 1, 10 NaN>"),
        (np.full((10, 10), np.nan, np.float32), "<all NaN>"),
        (np.full((10, 10), 60000, np.float16), "<6e+04 .. 6e+04, mean 6e+04>"),
        (np.eye(10, dtype=bool), "<True: 10 of 100>"),
        (np.zeros((8, 1), np.int32), "<0 .. 0, mean 0>"),
    ],
    ids=["uint8", "floats", "some nan", "all nan", "float16", "bool", "many rows"],
)
def test_large_tensors_are_summarised(array, expected):
    assert str(TensorCPU(array)).splitlines()[1:] == [f"  {expected}"]


def test_tables_for_notebooks(data):
    html = TensorCPU._wrap(data, "HW", types.FLOAT, "<a>.jpg")._repr_html_()
    for part in ("(3, 4)", "FLOAT", ">HW<", ">48<", "&lt;a&gt;.jpg", "[ 8.,  9., 10., 11.]"):
        assert part in html
    assert "<a>" not in html

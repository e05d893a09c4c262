"""A batch: what it is made of, its samples, its forms as one array or tensor."""

from __future__ import annotations

import copy
import ctypes
import pickle
import weakref

import numpy as np
import pytest

from headrace import errors, types
from headrace.tensors import TensorCPU, TensorListCPU, TensorListGPU
from headrace.tensors.pool import HOST_POOL


@pytest.fixture
def data():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def ragged_samples():
    return [np.arange(n, dtype=np.int64).reshape(n, 1) for n in (2, 5, 0, 1)]


def dense(data):
    return TensorListCPU(data, "HW")


def gathered(data):
    return TensorListCPU(list(data), "HW")


def separate(data):
    return TensorListCPU([row.copy() for row in data], "HW", contiguous=False)


def engine_dense(data):
    return TensorListCPU._from_dense(data, "HW")


def engine_samples(data):
    return TensorListCPU._from_samples([row.copy() for row in data], "HW")


MAKERS = [dense, gathered, separate, engine_dense, engine_samples]
DENSE = [dense, gathered, engine_dense]


@pytest.mark.parametrize("make", MAKERS)
def test_description(data, make):
    batch = make(data)
    assert len(batch) == 2
    assert batch.shape() == [(3, 4), (3, 4)]
    assert batch.ndim() == 2
    assert batch.dtype == types.FLOAT
    assert batch.layout() == "HW"
    assert batch.is_dense_tensor() is (make in DENSE)
    assert batch.source_info() == ["", ""]


@pytest.mark.parametrize("make", MAKERS)
def test_samples(data, make):
    batch = make(data)
    for number in (0, 1, -1, -2, np.int64(1)):
        sample = batch[number]
        assert isinstance(sample, TensorCPU)
        assert sample.layout() == "HW"
        np.testing.assert_array_equal(sample, data[number])
        assert np.shares_memory(sample, batch[number])
    for sample, expected in zip(batch, data, strict=True):
        np.testing.assert_array_equal(sample, expected)
    for number in (0, 1):
        array = batch.at(number)
        assert type(array) is np.ndarray
        assert array.flags.writeable
        np.testing.assert_array_equal(array, data[number])
        array[0, 0] = 77
        assert np.asarray(batch[number])[0, 0] == 77


@pytest.mark.parametrize("make", MAKERS)
def test_no_such_sample(data, make):
    batch = make(data)
    for number in (2, -3, 100):
        with pytest.raises(errors.OutOfRangeError, match=f"{number} in a batch of 2"):
            batch[number]
    for number in (2, -1):
        with pytest.raises(errors.SampleIndexError, match=f"{number} in a batch of 2") as caught:
            batch.at(number)
        assert isinstance(caught.value, RuntimeError)
    for index in ("a", 1.0, None, True, (0, 1), [0]):
        with pytest.raises(errors.ArgumentTypeError, match="integer or a slice"):
            batch[index]


@pytest.mark.sweep
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "part",
    [np.s_[:], np.s_[1:], np.s_[:1], np.s_[::-1], np.s_[5:], np.s_[-1:], np.s_[::2]],
    ids=str,
)
def test_slices(data, make, part):
    batch = make(data)[part]
    assert isinstance(batch, TensorListCPU)
    assert len(batch) == len(data[part])
    assert batch.layout() == "HW"
    assert batch.dtype == types.FLOAT
    assert batch.ndim() == 2
    for sample, expected in zip(batch, data[part], strict=True):
        np.testing.assert_array_equal(sample, expected)
    np.testing.assert_array_equal(batch.as_array().reshape(-1), data[part].reshape(-1))


def test_slices_share_memory(data):
    batch = dense(data)
    for part in (np.s_[1:], np.s_[::-1]):
        batch[part].at(0)[0, 0] = 123
        assert data[part][0, 0, 0] == 123
    assert batch[:1].is_dense_tensor()
    assert batch[1:].data_ptr() == batch[1].data_ptr()


def test_slices_of_ragged_samples(ragged_samples):
    batch = TensorListCPU(ragged_samples)
    assert batch[1:].data_ptr() == batch.data_ptr() + 2 * 8
    assert batch[1:3].as_reshaped_tensor((5,)).data_ptr() == batch[1].data_ptr()
    assert batch[1:3].shape() == [(5, 1), (0, 1)]
    twins = TensorListCPU([np.zeros(1), np.ones(3), np.full(3, 2.0)])
    assert not twins.is_dense_tensor()
    assert twins[1:].is_dense_tensor()
    assert twins[1:].as_array().tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("make", MAKERS)
def test_one_array(data, make):
    batch = make(data)
    tensor = batch.as_tensor()
    assert tensor.shape() == [2, 3, 4]
    assert tensor.layout() == "NHW"
    for whole in (batch.as_array(), np.asarray(tensor), np.asarray(batch), np.array(batch)):
        assert whole.dtype == np.float32
        np.testing.assert_array_equal(whole, data)
    shared = batch.is_dense_tensor()
    assert np.shares_memory(batch.as_array(), batch.at(0)) is shared
    assert np.shares_memory(tensor, batch.at(1)) is shared
    assert np.shares_memory(np.asarray(batch), batch.at(1)) is shared
    assert not np.shares_memory(np.array(batch), batch.at(1))
    assert np.asarray(batch, np.int32).dtype == np.int32


def test_array_without_a_copy(data):
    assert np.shares_memory(np.array(dense(data), copy=False), data)
    for impossible in (
        lambda: np.array(separate(data), copy=False),
        lambda: np.array(dense(data), np.int32, copy=False),
    ):
        with pytest.raises(ValueError, match="copy"):
            impossible()


@pytest.mark.parametrize("contiguous", [True, False])
def test_ragged(ragged_samples, contiguous):
    batch = TensorListCPU(ragged_samples, "AB", contiguous)
    assert batch.shape() == [(2, 1), (5, 1), (0, 1), (1, 1)]
    assert not batch.is_dense_tensor()
    for convert in (batch.as_array, batch.as_tensor, lambda: np.asarray(batch)):
        with pytest.raises(errors.ShapeError, match=r"fn\.pad") as caught:
            convert()
        assert isinstance(caught.value, RuntimeError)
    for number, sample in enumerate(ragged_samples):
        np.testing.assert_array_equal(batch.at(number), sample)
        assert np.shares_memory(batch.at(number), sample) is (not contiguous and sample.size > 0)
    flat = batch.as_reshaped_tensor([2, 4])
    assert flat.layout() == ""
    np.testing.assert_array_equal(flat, np.concatenate(ragged_samples).reshape(2, 4))
    assert (flat.data_ptr() == batch[0].data_ptr()) is contiguous


@pytest.mark.parametrize("make", MAKERS)
def test_reshaped(data, make):
    batch = make(data)
    for shape in ([24], (4, 6), [1, 24, 1], [2, 3, 4]):
        tensor = batch.as_reshaped_tensor(shape)
        assert tensor.shape() == list(shape)
        assert tensor.layout() == ("NHW" if len(shape) == 3 else "")
        np.testing.assert_array_equal(tensor, data.reshape(shape))
    for shape in ([5], [-1], [25], [], [-4, -6], [0]):
        with pytest.raises(RuntimeError, match="same volume"):
            batch.as_reshaped_tensor(shape)


def test_address(data, ragged_samples):
    assert dense(data).data_ptr() == data.ctypes.data
    batch = TensorListCPU(ragged_samples)
    assert batch.data_ptr() == batch[0].data_ptr()
    with pytest.raises(RuntimeError, match="separate memory"):
        separate(data).data_ptr()


@pytest.mark.parametrize("make", MAKERS)
def test_copy_to_external(data, make):
    out = np.zeros(24, np.float32)
    make(data).copy_to_external(ctypes.c_void_p(out.ctypes.data))
    np.testing.assert_array_equal(out, data.reshape(-1))
    out[:] = 0
    make(data).copy_to_external(out)
    np.testing.assert_array_equal(out, data.reshape(-1))
    with pytest.raises(ValueError, match="bytes"):
        make(data).copy_to_external(out[1:])


def test_scalar_samples():
    batch = TensorListCPU(np.arange(3.0))
    assert batch.shape() == [(), (), ()]
    assert batch.ndim() == 0
    assert batch.at(1).shape == ()
    assert batch[2].shape() == []
    assert (batch.as_tensor().shape(), batch.as_tensor().layout()) == ([3], "N")
    batch.at(1)[...] = 9
    assert batch.as_array().tolist() == [0, 9, 2]
    again = TensorListCPU([np.float64(1), np.float64(2)])
    assert again.as_array().tolist() == [1, 2]


def test_samples_without_elements():
    batch = TensorListCPU(np.zeros((2, 0, 4), np.uint8), "HW")
    assert batch.shape() == [(0, 4), (0, 4)]
    assert batch.as_tensor().shape() == [2, 0, 4]
    assert batch.at(1).shape == (0, 4)
    assert batch.as_reshaped_tensor([0]).shape() == [0]
    batch.copy_to_external(ctypes.c_void_p(None))
    assert separate(np.zeros((2, 0, 4))).as_reshaped_tensor([0, 9]).shape() == [0, 9]


def test_no_samples():
    batch = TensorListCPU(np.zeros((0, 3, 4), np.uint8), "HW")
    assert (len(batch), batch.shape(), batch.ndim(), batch.dtype) == (0, [], 2, types.UINT8)
    assert batch.is_dense_tensor()
    assert list(batch) == []
    assert batch.as_tensor().shape() == [0, 3, 4]
    assert batch[:].layout() == "HW"
    with pytest.raises(IndexError):
        batch[0]


def test_no_samples_of_no_type():
    batch = TensorListCPU([])
    assert (len(batch), batch.shape(), batch.ndim()) == (0, [], 0)
    assert batch.dtype == types.NO_TYPE
    assert batch.is_dense_tensor()
    assert batch.data_ptr() == 0
    assert batch.as_array().shape == (0,)
    batch.copy_to_external(0)
    assert TensorListCPU([], "HW").layout() == "HW"
    assert len(batch._make_copy()) == 0
    for impossible in (batch.as_tensor, lambda: batch.as_reshaped_tensor([0])):
        with pytest.raises(RuntimeError, match="without a type"):
            impossible()
    with pytest.raises(RuntimeError, match="NO_TYPE"):
        batch.reinterpret(types.FLOAT)


def test_engine_batch_without_samples():
    batch = TensorListCPU._from_samples([], "HWC", types.UINT8)
    assert (batch.ndim(), batch.dtype, batch.layout()) == (3, types.UINT8, "HWC")
    assert batch.as_tensor().shape() == [0, 0, 0, 0]
    assert TensorListCPU._from_samples([], "", types.UINT8, ndim=2).ndim() == 2


def test_engine_copies_what_is_strided(data):
    rows = [data[0].T, data[1].T]
    batch = TensorListCPU._from_samples(rows, "WH")
    for number in (0, 1):
        assert batch.at(number).flags.c_contiguous
        np.testing.assert_array_equal(batch.at(number), data[number].T)


def test_engine_keeps_sources(data):
    for batch in (
        TensorListCPU._from_dense(data, "HW", ["a.jpg", "b.jpg"]),
        TensorListCPU._from_samples(list(data), "HW", types.FLOAT, ["a.jpg", "b.jpg"]),
    ):
        assert batch.source_info() == ["a.jpg", "b.jpg"]
        assert batch[-1].source_info() == "b.jpg"
        assert batch[1:].source_info() == ["b.jpg"]
        assert batch[::-1].source_info() == ["b.jpg", "a.jpg"]
        assert TensorListCPU(batch).source_info() == ["a.jpg", "b.jpg"]
        assert TensorListCPU([batch[1], batch[0]]).source_info() == ["b.jpg", "a.jpg"]
        assert TensorListCPU.broadcast(batch[1], 2).source_info() == ["b.jpg", "b.jpg"]


def test_one_sample_is_dense(data):
    batch = TensorListCPU([data], contiguous=False)
    assert batch.is_dense_tensor()
    assert batch.data_ptr() == data.ctypes.data
    assert batch.as_tensor().shape() == [1, 2, 3, 4]


def test_made_of_another_batch(data):
    batch = dense(data)
    other = TensorListCPU(batch)
    assert other.layout() == "HW"
    assert np.shares_memory(other.at(0), data)
    other.set_layout("AB")
    assert (batch.layout(), other.layout()) == ("HW", "AB")
    assert TensorListCPU(batch, "XY").layout() == "XY"
    assert TensorListCPU(batch, "").layout() == "HW"


def test_made_of_a_tensor(data):
    batch = TensorListCPU(TensorCPU(data, "NHW"))
    assert batch.shape() == [(3, 4)] * 2
    assert batch.layout() == ""
    assert np.shares_memory(batch.at(0), data)


def test_made_of_torch(data):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(data)
    for source in (tensor, tensor.__dlpack__()):
        assert TensorListCPU(source).data_ptr() == tensor.data_ptr()
    assert TensorListCPU([tensor, tensor]).shape() == [(2, 3, 4)] * 2


def test_layouts_of_samples(data):
    with_layout, without = TensorCPU(data[0], "HW"), TensorCPU(data[0])
    assert TensorListCPU([with_layout, with_layout]).layout() == "HW"
    assert TensorListCPU([with_layout, with_layout], "AB").layout() == "AB"
    assert TensorListCPU([with_layout, without]).layout() == "HW"
    with pytest.raises(TypeError, match='"AB"'):
        TensorListCPU([with_layout, TensorCPU(data[0], "AB")])


def test_samples_that_do_not_fit_together(data):
    with pytest.raises(TypeError, match="position 1 has type 'INT32'"):
        TensorListCPU([data, data.astype(np.int32)])
    with pytest.raises(TypeError, match="sample 1 has 2, sample 0 has 3"):
        TensorListCPU([data, data[0]])
    with pytest.raises(
        TypeError, match="Object at position 1 cannot be converted to TensorCPU: list"
    ):
        TensorListCPU([data, [1]])


@pytest.mark.parametrize("value", [None, 3, "text"])
def test_no_memory_to_share(value):
    with pytest.raises(errors.ArgumentTypeError, match=type(value).__name__):
        TensorListCPU(value)


def test_scalar_is_no_batch():
    with pytest.raises(RuntimeError, match="scalar"):
        TensorListCPU(np.float32(3))


def test_strided_data(data):
    with pytest.raises(RuntimeError, match="ascontiguousarray"):
        TensorListCPU(data[:, ::2])
    with pytest.raises(RuntimeError, match="ascontiguousarray"):
        TensorListCPU([data[0].T])


@pytest.mark.parametrize("layout", ["H", "NHW"])
def test_layout_of_another_length(data, layout):
    with pytest.raises(ValueError, match=layout):
        TensorListCPU(data, layout)
    batch = dense(data)
    with pytest.raises(ValueError, match=layout):
        batch.set_layout(layout)
    batch.set_layout(None)
    assert batch.layout() == ""
    assert batch.as_tensor().layout() == ""


@pytest.mark.parametrize("make", MAKERS)
def test_reinterpret(data, make):
    batch = make(data)
    before = batch[0]
    batch.reinterpret(types.INT32)
    assert batch.dtype == types.INT32
    assert before.dtype == types.FLOAT
    np.testing.assert_array_equal(batch.as_array(), data.view(np.int32))
    with pytest.raises(RuntimeError, match="UINT8"):
        batch.reinterpret(types.UINT8)


def test_reinterpret_ragged(ragged_samples):
    batch = TensorListCPU(ragged_samples)
    batch.reinterpret(types.FLOAT64)
    np.testing.assert_array_equal(batch.at(1), ragged_samples[1].view(np.float64))
    assert batch.data_ptr() == batch[0].data_ptr()


def test_enumeration_members():
    batch = TensorListCPU._from_dense(np.array([0, 1], np.int32), dtype=types.IMAGE_TYPE)
    assert batch.dtype == batch[0].dtype == types.IMAGE_TYPE
    assert "RGB" in str(batch)
    for export in (lambda: batch.at(0), batch.as_array, lambda: np.asarray(batch)):
        with pytest.raises(TypeError, match=r"fn\.cast"):
            export()
    assert batch.as_tensor().dtype == types.IMAGE_TYPE
    batch.reinterpret(types.INT32)
    assert batch.as_array().tolist() == [0, 1]


def test_reset(data):
    batch = TensorListCPU._from_dense(data, "HW", ["a", "b"])
    kept = batch[0]
    batch.reset()
    assert (len(batch), batch.shape(), batch.ndim()) == (0, [], 0)
    assert (batch.dtype, batch.layout(), batch.source_info()) == (types.NO_TYPE, "", [])
    np.testing.assert_array_equal(kept, data[0])


def test_broadcast(data):
    sample = TensorCPU(data[0], "HW")
    batch = TensorListCPU.broadcast(sample, 3)
    assert batch.shape() == [(3, 4)] * 3
    assert batch.layout() == "HW"
    assert not batch.is_dense_tensor()
    assert {batch[i].data_ptr() for i in range(3)} == {sample.data_ptr()}
    np.testing.assert_array_equal(batch.as_array(), np.stack([data[0]] * 3))
    assert TensorListCPU.broadcast(data[0], 1).is_dense_tensor()
    nothing = TensorListCPU.broadcast(sample, 0)
    assert (len(nothing), nothing.dtype, nothing.layout()) == (0, types.FLOAT, "HW")
    with pytest.raises(ValueError, match="-1"):
        TensorListCPU.broadcast(sample, -1)


def test_from_dlpack_list(data):
    torch = pytest.importorskip("torch")
    tensors = [torch.zeros(2, 3), torch.ones(1, 3)]
    batch = TensorListCPU.from_dlpack_list(tensors, layout="HW")
    assert batch.shape() == [(2, 3), (1, 3)]
    assert batch.layout() == "HW"
    assert [batch[i].data_ptr() for i in (0, 1)] == [t.data_ptr() for t in tensors]
    copied = TensorListCPU.from_dlpack_list(tensors, contiguous=True)
    assert copied.data_ptr() not in {t.data_ptr() for t in tensors}
    mixed = TensorListCPU.from_dlpack_list(
        [data[0], TensorCPU(data[1], "HW"), data[0].__dlpack__()]
    )
    assert mixed.shape() == [(3, 4)] * 3
    assert mixed.layout() == ""
    assert len(TensorListCPU.from_dlpack_list([])) == 0
    with pytest.raises(TypeError, match="Sample 1, of type list"):
        TensorListCPU.from_dlpack_list([data, [1]])
    with pytest.raises(TypeError, match="INT32"):
        TensorListCPU.from_dlpack_list([data, data.astype(np.int32)])


def test_identity_and_truth(data):
    batch = dense(data)
    assert batch.as_cpu() is batch
    assert batch == batch
    assert batch != dense(data)
    assert batch
    assert not TensorListCPU([])
    assert {batch: 1}[batch] == 1
    assert weakref.ref(batch)() is batch
    with pytest.raises(TypeError):
        batch + 1


@pytest.mark.parametrize("make", MAKERS)
def test_copies(data, make):
    batch = make(data)
    for other in (
        pickle.loads(pickle.dumps(batch)),
        copy.deepcopy(batch),
        batch._make_copy(),
    ):
        assert other.layout() == "HW"
        assert other.dtype == types.FLOAT
        np.testing.assert_array_equal(other.as_array(), data)
        assert not np.shares_memory(other.at(0), batch.at(0))
    assert np.shares_memory(copy.copy(batch).at(0), batch.at(0))
    ragged = TensorListCPU([data[0], data[1, :1]])
    assert pickle.loads(pickle.dumps(ragged)).shape() == ragged.shape()
    assert ragged._make_copy().shape() == ragged.shape()


@pytest.mark.parametrize("kind", ["sample", "at", "tensor", "slice", "torch"])
def test_pooled_memory_returns_after_the_last_user(kind):
    batch = TensorListCPU._from_dense(HOST_POOL.empty((4, 10), np.float32))
    in_use = HOST_POOL.stats().buffers_in_use
    use = {
        "sample": lambda: batch[1],
        "at": lambda: batch.at(2),
        "tensor": batch.as_tensor,
        "slice": lambda: batch[::2],
        "torch": lambda: pytest.importorskip("torch").from_dlpack(batch[3]),
    }
    user = use[kind]()
    batch.reset()
    assert HOST_POOL.stats().buffers_in_use == in_use
    del user
    assert HOST_POOL.stats().buffers_in_use == in_use - 1


def test_memory_of_one_sample_returns_by_itself():
    rows = [HOST_POOL.empty(n, np.float32) for n in (100, 200)]
    in_use = HOST_POOL.stats().buffers_in_use
    batch = TensorListCPU._from_samples(rows)
    kept = batch.at(1)
    del rows, batch
    assert HOST_POOL.stats().buffers_in_use == in_use - 1
    del kept
    assert HOST_POOL.stats().buffers_in_use == in_use - 2


def test_gpu_is_named_where_it_is_missing(data, without_gpu):
    for needs_gpu in (
        lambda: TensorListCPU(data, is_pinned=True),
        lambda: dense(data)._as_gpu(),
        TensorListGPU,
    ):
        with pytest.raises(errors.GpuNotAvailableError, match="GPU"):
            needs_gpu()


def test_large_batches_print_in_few_lines():
    batch = TensorListCPU(np.zeros((32, 48, 64, 3), np.uint8), "HWC")
    assert len(str(batch).splitlines()) == 8
    assert "[31] <0 .. 0, mean 0>" in str(batch)


def test_few_values_print_in_full():
    lines = str(TensorListCPU(np.arange(40, dtype=np.int32))).splitlines()[1:]
    assert len(lines) == 3
    assert "".join(lines).replace(" ", "") == str(list(range(40))).replace(" ", "")
    rows = str(TensorListCPU(np.arange(12).reshape(12, 1))).splitlines()[1:]
    assert rows == [f"  [{k}] [{k}]" for k in range(12)]
    many = str(TensorListCPU(np.arange(1000, dtype=np.int32))).splitlines()[1:]
    assert many == ["  [0, 1, 2, ..., 997, 998, 999]"]


def test_tables_for_notebooks():
    batch = TensorListCPU._from_samples(
        [np.full((k + 1, 20), k, np.int32) for k in range(9)],
        sources=[f"{k}.jpg" for k in range(9)],
    )
    html = batch._repr_html_()
    assert html.count("<tr>") == 1 + 7
    for part in ("(1, 20)", "(9, 20)", "0.jpg", "8.jpg", "&lt;8 .. 8, mean 8&gt;"):
        assert part in html
    assert "4.jpg" not in html


def test_printing(data, ragged_samples):
    batch = dense(data)
    assert repr(batch) == (
        "TensorListCPU(num_samples=2, shape=[(3, 4)] * 2, dtype=DALIDataType.FLOAT, "
        'layout="HW", device="cpu")'
    )
    assert "[1] [[12., 13., 14., 15.]," in str(batch)
    assert "shape=[(2, 1), (5, 1), (0, 1), (1, 1)]" in repr(TensorListCPU(ragged_samples))
    many = TensorListCPU([np.zeros(n) for n in range(100)])
    assert "(3,), ..., (96,)" in repr(many)
    assert len(str(many).splitlines()) < 20
    assert "..." in str(TensorListCPU(np.zeros((50, 1000))))
    assert repr(TensorListCPU([])) == (
        'TensorListCPU(num_samples=0, shape=[], dtype=DALIDataType.NO_TYPE, device="cpu")'
    )


def _taken(way, batch):
    library, name = way.split(".")
    module = np if library == "np" else pytest.importorskip("torch")
    return np.asarray(getattr(module, name)(batch))


@pytest.mark.parametrize("way", ["torch.from_dlpack", "torch.as_tensor", "np.from_dlpack"])
def test_libraries_take_dense_batches_without_a_copy(way, data):
    batch = dense(data)
    taken = _taken(way, batch)
    assert taken.tolist() == data.tolist()
    assert taken.ctypes.data == batch.data_ptr()


@pytest.mark.parametrize("way", ["torch.from_dlpack", "np.from_dlpack"])
def test_libraries_are_told_of_batches_that_are_no_tensor(way, ragged_samples):
    with pytest.raises(ValueError, match="do not all have the same shape"):
        _taken(way, TensorListCPU(ragged_samples))

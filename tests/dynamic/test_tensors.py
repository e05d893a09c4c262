"""`Tensor` and `Batch` as Python objects, and their memory."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.tensors import TensorListCPU


def test_memory_is_shared_where_it_is_said():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    shared, copied = ndd.as_tensor(array), ndd.tensor(array)
    batch, batch_copy = ndd.as_batch(array), ndd.batch(array)
    array[0, 0] = 9
    assert np.asarray(shared)[0, 0] == 9
    assert np.asarray(batch.tensors[0])[0] == 9
    assert np.asarray(copied)[0, 0] == 0
    assert np.asarray(batch_copy.tensors[0])[0] == 0
    assert np.shares_memory(np.asarray(shared), array)
    assert np.shares_memory(np.from_dlpack(shared), array)
    read_only = array.copy()
    read_only.flags.writeable = False
    assert not np.shares_memory(np.asarray(ndd.as_tensor(read_only)), read_only)


def test_results_are_let_go_with_their_last_holder():
    result = ndd.batch([np.zeros(100_000, np.float32)] * 2) + 1
    array = np.asarray(result.tensors[0])
    alive = weakref.ref(result)
    del result
    gc.collect()
    assert alive() is None
    assert array[0] == 1


def test_truth_and_numbers():
    assert ndd.tensor(1) == ndd.tensor(1)
    assert not ndd.tensor(0)
    assert int(ndd.tensor(3)) == 3
    assert float(ndd.tensor(2.5)) == 2.5
    assert [10, 20][ndd.tensor(1)] == 20
    with pytest.raises(ValueError, match="ambiguous"):
        bool(ndd.tensor([1, 2]))
    with pytest.raises(TypeError, match="no index"):
        [10, 20][ndd.tensor(1.0)]
    assert ndd.batch([0])
    with pytest.raises(TypeError, match="unhashable"):
        {ndd.tensor(1)}


def test_iteration_ends():
    assert [row.shape for row in ndd.tensor(np.zeros((3, 2)))] == [(2,)] * 3
    assert [t.item() for t in ndd.batch([1, 2, 3])] == [1, 2, 3]
    with pytest.raises(TypeError, match="without axes"):
        list(ndd.tensor(1))


def test_subsets_of_a_batch():
    batch = ndd.batch([10, 11, 12, 13])
    part = batch.tensors[1:]
    assert len(part) == 3
    assert part[0].item() == 11
    assert [t.item() for t in part[::-1]] == [13, 12, 11]
    assert [t.item() for t in batch.select([3, 0, 3]).tensors] == [13, 10, 13]
    assert batch.select(...) is batch
    assert batch.select(slice(None)).batch_size == 4
    assert batch.select(-1).item() == 13
    assert [t.item() for t in part.as_batch(copy=True).tensors] == [11, 12, 13]
    with pytest.raises(IndexError, match="no sample 4 among 4"):
        batch.tensors[4]


def test_other_batches():
    source = TensorListCPU([np.ones((2, 2), np.uint8), np.zeros((1, 2), np.uint8)], "HW")
    batch = ndd.as_batch(source)
    assert batch.layout == "HW"
    assert batch.shape == [(2, 2), (1, 2)]
    assert np.shares_memory(np.asarray(batch.tensors[0]), source.at(0))
    empty = ndd.batch([], dtype=ndd.float32)
    assert (empty.batch_size, empty.shape, empty.dtype) == (0, [], ndd.float32)
    assert (empty + 1).batch_size == 0
    assert ndd.cast(empty, dtype=ndd.uint8).evaluate().dtype == ndd.uint8


def test_indexing_depends_on_the_sample():
    batch = ndd.batch([np.arange(5), np.arange(7)])
    low = ndd.batch([1, 3])
    assert [np.asarray(t).tolist() for t in batch.slice[low:].tensors] == [
        [1, 2, 3, 4],
        [3, 4, 5, 6],
    ]
    assert [t.item() for t in batch.slice[low].tensors] == [1, 3]
    assert [t.item() for t in batch.slice[-1].tensors] == [4, 6]
    image = ndd.tensor(np.zeros((4, 5, 3)), layout="HWC")
    assert image[..., 0].layout == "HW"
    assert image[0].layout == "WC"
    assert image[:, 1:3].shape == (4, 2, 3)


def test_text_says_what_it_is():
    text = repr(ndd.tensor([[1, 2]], layout="XY"))
    for part in ("Tensor(", "[[1 2]]", "dtype=i32", 'layout="XY"', 'device="cpu"', "shape=(1, 2)"):
        assert part in text
    text = repr(ndd.batch([[1.5], [2.5, 3.5]]))
    for part in ("Batch(", "num_samples=2", "[(1,), (2,)]", "1.5", "f32"):
        assert part in text
    assert "..." in repr(ndd.batch(list(range(100))))
    assert str(list(range(12))) in repr(ndd.batch(list(range(12))))
    assert "[]" in repr(ndd.batch([], dtype=ndd.int8))
    large = ndd.batch(np.zeros((32, 48, 64, 3), np.uint8))
    assert len(repr(large).splitlines()) == 12
    assert "<0 .. 0, mean 0>" in repr(large)
    assert repr(large.tensors) == (
        'TensorList(num_samples=32, shape=[(48, 64, 3)] * 32, dtype=u8, device="cpu")'
    )
    assert "(48, 64, 3)" in large._repr_html_()
    assert "uint8" in ndd.tensor([1], dtype=ndd.uint8)._repr_html_().lower()


def test_origins_of_samples_are_kept(tmp_path):
    path = tmp_path / "broken.jpg"
    path.write_bytes(b"not an image")
    with pytest.raises(RuntimeError, match=r"broken\.jpg"):
        ndd.imread(str(path)).evaluate()
    with pytest.raises(RuntimeError, match=r"nothing\.jpg"):
        ndd.imread([str(path), str(tmp_path / "nothing.jpg")]).evaluate()


def test_imread(tmp_path):
    import cv2

    image = np.full((6, 8, 3), 90, np.uint8)
    names = [str(tmp_path / f"{k}.png") for k in range(3)]
    for name in names:
        cv2.imwrite(name, image)
    one = ndd.imread(tmp_path / "0.png")
    assert isinstance(one, ndd.Tensor)
    assert (one.layout, one.shape) == ("HWC", (6, 8, 3))
    many = ndd.imread(names)
    assert many.shape == [(6, 8, 3)] * 3
    assert np.array_equal(np.asarray(many.tensors[2]), image)
    encoded = ndd.batch([np.frombuffer(name.encode(), np.uint8) for name in names])
    assert np.array_equal(np.asarray(ndd.imread(encoded).tensors[1]), image)
    with ndd.EvalMode.deferred:
        small = ndd.resize(ndd.imread(names), size=[3, 4])
    assert small.shape == [(3, 4, 3)] * 3


def test_torch():
    torch = pytest.importorskip("torch")
    batch = ndd.batch([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="same shape"):
        batch.torch()
    assert batch.torch(pad=True).tolist() == [[1.0, 2.0], [3.0, 0.0]]
    dense = ndd.batch(np.arange(6, dtype=np.float32).reshape(2, 3)) + 1
    assert torch.equal(dense.torch(), torch.arange(1, 7, dtype=torch.float32).reshape(2, 3))
    assert ndd.as_tensor(torch.arange(3)).dtype == ndd.int64
    assert ndd.tensor([1, 2]).torch(copy=True).tolist() == [1, 2]
    assert (ndd.tensor([1, 2]).torch() + 1).tolist() == [2, 3]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "<", ">=", "=="])
def test_numbers_that_change_are_computed_with_like_constants(symbol, dtype):
    compute = eval(f"lambda x, y: x {symbol} y")
    draw = np.random.default_rng(1)
    samples = [draw.integers(1, 100, n).astype(dtype) for n in (5, 9)]
    for mode in (ndd.EvalMode.eager, ndd.EvalMode.sync_cpu):
        with mode:
            x = ndd.batch(samples)
            for k in range(28):
                number = (1 + 0.25 * k) if k % 2 else k + 1
                as_data = ndd.tensor(number)
                for got, want in (
                    (compute(x, number), compute(x, as_data)),
                    (compute(number, x), compute(as_data, x)),
                ):
                    assert got.dtype == want.dtype
                    for a, b in zip(got.tensors, want.tensors, strict=True):
                        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_overflow_of_numbers_that_change_is_an_error_each_time():
    x = ndd.tensor([1, 2])
    for k in range(40):
        assert (x + k)[0].item() == 1 + k
        with pytest.raises(OverflowError):
            x + (2**31 + k)


def test_copies_and_pickles():
    tensor = ndd.tensor([[1, 2]], layout="XY") + 1
    batch = ndd.batch([[1.0], [2.0, 3.0]]) * 2
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        other = copied(tensor)
        assert (other.layout, other.dtype, np.asarray(other).tolist()) == (
            "XY",
            ndd.int32,
            [[2, 3]],
        )
        assert not np.shares_memory(np.asarray(other), np.asarray(tensor))
        assert [np.asarray(t).tolist() for t in (copied(batch) + 1).tensors] == [[3.0], [5.0, 7.0]]


def test_what_is_converted_in_between_is_kept_though_nobody_holds_it_yet():
    from headrace.experimental.dynamic import construction

    context = ndd.EvalContext.current()
    with context._evaluator._work_lock:  # so that both calls are done in one chain
        reference = construction._called("cast", ndd.batch([1.5, 2.0])._reference, dtype=ndd.uint8)
        other = ndd.batch([1.0, 2.0]) + 1
    context.evaluate_all()
    assert [row.item() for row in reference.get().rows] == [2, 2]
    assert other.tensors[0].item() == 2.0


def test_a_batch_is_one_array_if_its_samples_have_one_shape():
    batch = ndd.batch([[1, 2], [3, 4]])
    assert np.asarray(batch).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(batch, np.float32).dtype == np.float32
    assert np.stack([batch, batch]).shape == (2, 2, 2)
    with pytest.raises(ValueError, match="copy=False"):
        np.array(batch, copy=False)  # its samples are apart
    ragged = ndd.batch([[1, 2], [3]])
    for ask in (np.asarray, ndd.as_tensor, ndd.Batch.torch):
        with pytest.raises(ValueError, match=r"`batch\.tensors\[i\]`"):
            ask(ragged)


def test_names_that_arrays_have_lead_to_operators():
    tensor, batch = ndd.tensor([1.0]), ndd.batch([1.0])
    for data in tensor, batch:
        with pytest.raises(AttributeError, match=r"`ndd\.reductions\.mean`"):
            data.mean()
        with pytest.raises(AttributeError, match=r"`np\.asarray`"):
            data.numpy()
    assert not hasattr(tensor, "__cuda_array_interface__")
    with pytest.raises(ValueError, match=r"\.any\(\)"):
        bool(ndd.tensor([1, 2]))


def test_what_is_no_number_leads_to_what_is():
    for data, way in (("a.wav", "np.fromfile"), (b"RIFF" * 1000, "np.frombuffer")):
        with pytest.raises(RuntimeError, match=way) as caught:
            ndd.decoders.audio(data)
        assert len(str(caught.value)) < 400


def test_a_batch_is_taken_through_dlpack():
    batch = ndd.batch([np.arange(3), np.arange(3) + 5])
    assert np.from_dlpack(batch).tolist() == [[0, 1, 2], [5, 6, 7]]
    with pytest.raises(ValueError, match="do not all have the same shape"):
        np.from_dlpack(ndd.batch([np.arange(3), np.arange(2)]))

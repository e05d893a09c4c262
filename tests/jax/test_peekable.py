"""Peekable iterators: what is shown is what comes next, from any thread."""

from __future__ import annotations

import sys
import threading
import types as module_types
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from headrace import errors
from headrace.plugin.jax import LastBatchPolicy, clu, peekable_data_iterator
from headrace.plugin.jax.clu import ArraySpec, DALIGenericPeekableIterator
from tests.jax.pipelines import OUTPUTS, epoch, file_pipeline, labels, read, source_pipeline


def iterate(files, batch_size=4, **arguments):
    return DALIGenericPeekableIterator(
        file_pipeline(files, batch_size=batch_size), OUTPUTS, reader_name="reader", **arguments
    )


def test_peek_shows_what_comes_next(files):
    it = iterate(files)
    shown = it.peek()
    assert it.peek() is shown
    assert next(it) is shown
    assert labels(it.peek()["label"]) == [4, 5, 6, 7]
    assert labels(it.get_next()["label"]) == [4, 5, 6, 7]
    assert labels(next(it)["label"]) == [8, 9, 10, 11]


def test_peeking_changes_no_epoch(files):
    expected = epoch(iterate(files))
    it = iterate(files)
    it.peek()
    assert len(it) == 6
    assert epoch(it) == expected
    it = iterate(files)
    found = []
    for step in it:
        if len(found) < 5:
            it.peek()
        found.append(labels(step["label"]))
    assert found == expected


@pytest.mark.parametrize("auto_reset", [False, True])
def test_peeking_at_the_end(files, auto_reset):
    it = iterate(files[:8], auto_reset=auto_reset)
    for _ in range(3):
        steps = [labels(next(it)["label"]) for _ in range(2)]
        assert steps == [[0, 1, 2, 3], [4, 5, 6, 7]]
        for _ in range(2):
            with pytest.raises(StopIteration):
                it.peek()
        with pytest.raises(StopIteration):
            next(it)
        if not auto_reset:
            with pytest.raises(StopIteration):
                next(it)
            it.reset()


def test_reset_throws_away_what_was_shown(files):
    it = iterate(files[:8])
    next(it)
    it.peek()
    it.reset()
    assert labels(it.peek()["label"]) == [0, 1, 2, 3]
    next(it)
    assert epoch(it) == [[0, 1, 2, 3], [4, 5, 6, 7]], "a loop begins an epoch"


def test_peek_async(files):
    it = iterate(files)
    future = it.peek_async()
    assert it.peek_async() is future
    assert labels(future.result(timeout=60)["label"]) == [0, 1, 2, 3]
    assert next(it) is future.result()
    later = it.peek_async()
    assert later is not future
    assert labels(later.result(timeout=60)["label"]) == [4, 5, 6, 7]


def test_peek_async_at_the_end(files):
    it = iterate(files[:4])
    next(it)
    with pytest.raises(StopIteration):
        it.peek_async().result(timeout=60)
    with pytest.raises(StopIteration):
        next(it)


def test_errors_come_through_the_future(files):
    it = iterate([files[0] + ".gone", *files[1:]], prepare_first_batch=False)
    with pytest.raises(errors.BadSampleError):
        it.peek_async().result(timeout=60)
    assert labels(next(it)["label"]) == [4, 5, 6, 7]


def test_threads_share_an_iterator(files):
    it = iterate(files[:20], batch_size=1)
    barrier = threading.Barrier(4, timeout=60)
    found = []

    def consume(number):
        barrier.wait()
        while True:
            try:
                if number % 2:
                    it.peek()
                found.append(labels(next(it)["label"])[0])
            except StopIteration:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(consume, range(4)))
    assert sorted(found) == list(range(20))


def test_element_spec(files, over):
    it = iterate(files)
    expected = {
        "data": ArraySpec(np.dtype("uint8"), (4, 64)),
        "label": ArraySpec(np.dtype("int32"), (4, 1)),
    }
    assert it.element_spec == expected
    assert str(it.element_spec["data"]) == "uint8[4, 64]"
    assert repr(it.element_spec["label"]) == "ArraySpec(dtype=int32, shape=(4, 1))"
    assert labels(next(it)["label"]) == [0, 1, 2, 3]
    sharded = peekable_data_iterator(
        lambda num_shards, shard_id: read(files, num_shards, shard_id),
        OUTPUTS,
        reader_name="reader",
        sharding=over(2),
    )
    assert sharded(batch_size=4).element_spec == expected


def test_batches_must_be_alike():
    batches = [np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 4))]
    it = DALIGenericPeekableIterator(source_pipeline(batches), "x")
    next(it)
    next(it)
    with pytest.raises(errors.ShapeError, match=r'"x" is float32\[2, 4\].*float32\[2, 3\] before'):
        it.peek()


def test_is_nonpadding(files):
    it = iterate(files[:6])
    assert it.is_nonpadding.tolist() == [True] * 4
    assert isinstance(it.is_nonpadding, jax.Array)
    assert [it.is_nonpadding.tolist() for _ in it] == [[True] * 4, [True, True, False, False]]
    assert it.is_nonpadding.tolist() == [True, True, False, False]


def test_is_nonpadding_of_shards(files, over):
    for split in (False, True):
        make = peekable_data_iterator(
            lambda num_shards, shard_id: read(files, num_shards, shard_id, pad_last_batch=True),
            OUTPUTS,
            reader_name="reader",
            sharding=over(4),
            split_batches=split,
        )
        it = make(batch_size=8)
        shown = []
        for step in it:
            flags = it.is_nonpadding
            assert flags.shape == (8,)
            assert flags.sharding == over(4)
            shown += np.asarray(step["label"])[np.asarray(flags)].ravel().tolist()
        assert sorted(shown) == list(range(21))


def test_is_nonpadding_by_size(files):
    with pytest.warns(Warning, match="reader_name"):
        it = DALIGenericPeekableIterator(file_pipeline(files), OUTPUTS, size=7)
    assert [it.is_nonpadding.tolist() for _ in it] == [[True] * 4, [True] * 3 + [False]]


def test_partial_batches_are_refused_by_their_shape(files):
    it = iterate(files[:6], last_batch_policy=LastBatchPolicy.PARTIAL)
    next(it)
    with pytest.raises(errors.ShapeError, match="drop or fill up the last batch"):
        next(it)


def test_decorator(files):
    @clu.peekable_data_iterator(output_map=OUTPUTS, reader_name="reader")
    def simple():
        return read(files)

    it = simple(batch_size=4, device_id=None)
    assert isinstance(it, DALIGenericPeekableIterator)
    assert labels(it.peek()["label"]) == [0, 1, 2, 3]


def test_without_clu(files):
    assert "clu" not in sys.modules
    assert isinstance(iterate(files).element_spec["data"], ArraySpec)


def test_with_clu(files, monkeypatch):
    """CLU is a heavy dependency: what it needs to know us by is made up."""
    import abc
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class TheirSpec:
        dtype: object
        shape: tuple

    class DatasetIterator(abc.ABC):  # noqa: B024 - as in CLU, whose methods do not matter
        pass

    module = module_types.ModuleType("clu.data.dataset_iterator")
    module.ArraySpec, module.DatasetIterator = TheirSpec, DatasetIterator
    monkeypatch.setitem(sys.modules, "clu.data.dataset_iterator", module)
    it = iterate(files)
    assert isinstance(it, DatasetIterator)
    assert it.element_spec["label"] == TheirSpec(np.dtype("int32"), (4, 1))


def test_sub_classes_override_the_step(files):
    class Labels(DALIGenericPeekableIterator):
        def __next__(self):
            return labels(super().__next__()["label"])

    class LabelsUnderBothNames(Labels):
        def __next__(self):
            return super().__next__()

        next = __next__

    for kind in (Labels, LabelsUnderBothNames):
        it = kind(file_pipeline(files, batch_size=4), OUTPUTS, reader_name="reader")
        assert next(it) == [0, 1, 2, 3]
        assert labels(it.peek()["label"]) == [4, 5, 6, 7]
        assert it.next() == [4, 5, 6, 7]
        assert it.get_next() == [8, 9, 10, 11]

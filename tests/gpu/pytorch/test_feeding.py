"""CPU pipelines that feed PyTorch on a real GPU: what the host queues is done in its own time."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import headrace
from headrace import Pipeline, fn, types

torch = pytest.importorskip("torch")

from headrace.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator  # noqa: E402

pytestmark = pytest.mark.gpu

WORKERS = ["threads"] + ["processes"] * hasattr(os, "memfd_create")
BATCH = 8
SHAPE = (256, 256, 3)
SLOW_CYCLES = 20_000_000
"""About 10 ms of a GPU's time."""


@pytest.fixture(autouse=True)
def _real(gpu_runtime):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")


def batch(k):
    """Batch number `k`: its samples hold nothing but numbers that tell which they are."""
    return np.stack([np.full(SHAPE, k * BATCH % 200 + i, np.uint8) for i in range(BATCH)])


def pipeline(workers="threads", *, source=batch, count=30):
    def numbered(k):
        if k >= count:
            raise StopIteration
        return source(k)

    pipe = Pipeline(BATCH, 2, workers=workers)
    with pipe:
        images = fn.external_source(numbered)
        pipe.set_outputs(fn.cast(images, dtype=types.FLOAT), images)
    return pipe


def check(sums, part=slice(None)):
    for k, found in enumerate(sums):
        expected = batch(k)[part].sum(dtype=np.int64)
        assert int(found) == expected, f"batch {k}"


@pytest.mark.sweep
@pytest.mark.parametrize("part", [slice(None), slice(3, 5), 2])
@pytest.mark.parametrize("side", [False, True])
@pytest.mark.parametrize("workers", WORKERS)
def test_page_locked_tensors_may_be_dropped_at_once(workers, side, part):
    it = DALIGenericIterator(pipeline(workers), ["real", "image"], pin_memory=True)
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    sums = []
    for (step,) in it:
        assert step["real"].is_pinned()
        assert step["image"].is_pinned()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLOW_CYCLES)
            there = [step[name][part].to("cuda", non_blocking=True) for name in ("real", "image")]
            assert not stream.query(), "the copy was waited for"
            del step
            sums += [each.sum(dtype=torch.int64) for each in there]
        gc.collect(0)
    torch.cuda.synchronize()
    check(sums[::2], part)
    check(sums[1::2], part)
    assert len(sums) == 60


@pytest.mark.parametrize("workers", WORKERS)
def test_a_device(workers):
    it = DALIGenericIterator(pipeline(workers), ["real", "image"], device="cuda")
    stream = torch.cuda.Stream()
    sums = []
    with torch.cuda.stream(stream):
        for (step,) in it:
            torch.cuda._sleep(SLOW_CYCLES)
            assert step["real"].is_cuda
            assert step["image"].is_cuda
            sums += [step[name].sum(dtype=torch.int64) for name in ("real", "image")]
            del step
    torch.cuda.synchronize()
    check(sums[::2])
    check(sums[1::2])
    assert len(sums) == 60


@pytest.mark.parametrize("placed", [{"device": "cuda"}, {"pin_memory": True}])
def test_samples_of_many_shapes(placed):
    def ragged(k):
        return [np.full((i + 1, 3), k + i, np.int32) for i in range(BATCH)]

    pipe = pipeline(source=ragged, count=5)
    tags = ["sparse_list", "sparse_coo"]
    it = DALIRaggedIterator(pipe, ["real", "whole"], output_types=tags, **placed)
    for k, (step,) in enumerate(it):
        for row, found in zip(ragged(k), step["real"], strict=True):
            assert found.is_cuda or found.is_pinned()
            np.testing.assert_array_equal(found.cpu(), row.astype(np.float32))
        dense = step["whole"].to("cuda", non_blocking=True).to_dense().cpu()
        for i, row in enumerate(ragged(k)):
            np.testing.assert_array_equal(dense[i, : i + 1], row)


def test_several_outputs_that_share_memory():
    pipe = Pipeline(BATCH, 2)
    with pipe:
        x = fn.flip(fn.external_source(batch))
        pipe.set_outputs(x, x, fn.reshape(x, shape=[-1]))
    it = DALIGenericIterator(pipe, ["a", "b", "c"], pin_memory=True)
    for k in range(3):
        (step,) = next(it)
        assert all(tensor.is_pinned() for tensor in step.values())
        assert len({tensor.data_ptr() for tensor in step.values()}) == 3
        check([step["a"].sum(dtype=torch.int64)] if k == 0 else [])
        assert torch.equal(step["a"], step["b"])
        assert torch.equal(step["a"].view(BATCH, -1), step["c"])


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_sources_that_write_to_page_locked_memory(theirs, lists, device):
    def source(k):
        if k == 30:
            raise StopIteration
        shape = (BATCH, *SHAPE)
        if theirs:
            array = torch.empty(shape, dtype=torch.uint8, pin_memory=True).numpy()
        else:
            array = headrace.empty_pinned(shape, np.uint8)
        array[...] = batch(k)
        return list(array) if lists else array

    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        pipe.set_outputs(fn.external_source(source, no_copy=True, device=device).gpu())
    sums = []
    for (step,) in DALIGenericIterator(pipe, ["image"]):
        torch.cuda._sleep(SLOW_CYCLES)
        sums.append(step["image"].sum(dtype=torch.int64))
        del step
    torch.cuda.synchronize()
    check(sums)
    assert len(sums) == 30

"""`cat`, `stack`, `one_hot` and what changes the places of samples and elements on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.graph.branches import guarded, merge
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 9, s, np.uint8) for s in [(30, 41, 3), (9, 12, 3), (1, 1, 3), (0, 4, 3)]]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64])
def test_joined(dtype):
    some = [row.astype(dtype) for row in IMAGES]
    others = [row[::-1].copy() for row in some]
    for axis in range(-3, 3):
        check_alike("cat", some, others, some, axis=axis)
    for axis in range(-3, 4):
        check_alike("stack", some, others, axis=axis)


def test_joined_of_different_extents():
    wide = [np.tile(row, (1, 1, k + 2)) for k, row in enumerate(IMAGES)]
    check_alike("cat", IMAGES, wide, IMAGES, axis=2)
    check_alike("cat", [row[:0] for row in IMAGES], IMAGES, axis=0)
    check_alike("cat", [row[:, :0] for row in IMAGES], [row[:, :0] for row in IMAGES])


def test_single_inputs_and_numbers():
    check_alike("cat", IMAGES)
    check_alike("stack", IMAGES, axis=1)
    numbers = [np.array(k, np.float32) for k in range(5)]
    check_alike("stack", numbers, numbers[::-1])


def test_errors_of_joining():
    narrow = [*IMAGES[:1], *[row[:, 1:].copy() for row in IMAGES[1:]]]
    check_same_error("cat", IMAGES, narrow, sample=1)
    check_same_error("stack", IMAGES, narrow, sample=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
def test_vectors_of_labels(dtype):
    labels = [np.array(x, dtype) for x in ([[0, 1, 2], [3, 0, 7]], [[5]], np.zeros((0, 4)))]
    for axis in ({}, {"axis": 0}, {"axis": 1}, {"axis": 2}, {"axis": -1}):
        check_alike("one_hot", labels, num_classes=4, **axis)
    check_alike("one_hot", labels, num_classes=600, axis=1)
    check_alike("one_hot", [np.array([k], dtype) for k in (0, 3, 2)], num_classes=3)
    check_alike("one_hot", [np.array(k, dtype) for k in (0, 3, 2)], num_classes=3)


def test_values_of_vectors():
    labels = [np.float32([0.5, -0.5, np.nan, np.inf, 1e20, 2.0, -1.0])]
    for dtype in (np.uint8, np.int16, np.int32, np.float64):
        check_alike("one_hot", labels, num_classes=3, dtype=dtype, on_value=300.5, off_value=-2.5)


def test_elements_of_sequences():
    videos = [_rng.integers(0, 9, s, np.uint8) for s in [(4, 5, 7), (3, 2, 1), (6, 0, 2)]]
    got = run_gpu_operator("element_extract", videos, element_map=[2, 0])
    for one, other in zip(
        got, run_cpu_operator_on_batch("element_extract", videos, element_map=[2, 0]), strict=True
    ):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    check_same_error("element_extract", videos, element_map=[3], sample=1)
    check_alike("sequence_rearrange", videos, new_order=[2, 0, 0, 1])
    check_alike("sequence_rearrange", videos[:1] * 2, new_order=[2, 0, 0, 1])
    each = [np.array(order, np.int32) for order in ([3, 1], [0], [5, 5, 5])]
    check_alike("sequence_rearrange", [v.astype(np.float64) for v in videos], new_order=each)
    check_same_error("sequence_rearrange", videos, new_order=[3], sample=1)


def test_samples_that_change_places():
    check_alike("permute_batch", IMAGES, indices=[3, 1, 1, 0])
    check_alike("permute_batch", IMAGES, indices=[np.int32(k) for k in (2, 0, 3, 1)])
    check_same_error("permute_batch", IMAGES, indices=[0, 1, 2, 4])
    check_same_error("permute_batch", IMAGES, indices=[0, 1, 2])


def test_sources_change_places_too(tmp_path):
    for k, name in enumerate("abcd"):
        (tmp_path / name).write_bytes(bytes([k] * (k + 1)))

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe(device):
        data, number = fn.readers.file(files=[str(tmp_path / name) for name in "abcd"])
        data = data.gpu() if device == "gpu" else data
        few = number[0] < 3
        with guarded(few):  # a branch has a batch of its own
            moved = fn.permute_batch(data, indices=2 - number[0])
        with guarded(few, holds=False):
            kept = fn.copy(data)
        merged = merge(few, moved, kept)
        images = fn.reshape(data, shape=[-1, 1, 1], layout="HWC")
        pasted = fn.multi_paste(images, images, output_size=(200, 1))
        return fn.permute_batch(data, indices=[3, 2, 0, 0]) + 1, merged, pasted

    for device in ("cpu", "gpu"):
        *others, pasted = pipe(device).run()
        names = [pasted[k].source_info().split(";") for k in range(4)]
        assert [[path[-1] for path in pair] for pair in names] == [[n, n] for n in "abcd"]
        for found, wanted in zip(others, ("dcaa", "cbad"), strict=True):
            names = [found[k].source_info()[-1] for k in range(4)]
            assert "".join(names) == wanted
            host = found.as_cpu() if device == "gpu" else found
            assert [np.asarray(s).size for s in host] == [ord(name) - 96 for name in wanted]

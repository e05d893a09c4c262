"""What is kept from one iteration to the next: geometry, taps and numbers in device memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.kernels.gpu.device_constant import DeviceConstant
from headrace.kernels.gpu.resample_axes import AxesSampling
from headrace.kernels.gpu.resample_taps import axes_taps
from headrace.kernels.plan.resize_axes import AXIS
from headrace.operators.support.shape_memo import ShapeMemo
from tests.support.gpu.alike import random_rows
from tests.support.gpu.session import gpu_session

SHAPES = [
    [(20, 30, 3)] * 4,
    [(20, 30, 3)] * 4,
    [(20, 30, 3), (31, 12, 3), (9, 40, 3), (20, 30, 3)],
    [(17, 17, 3)] * 4,
    [(20, 30, 3)] * 4,
    [(20, 30, 3), (31, 12, 3), (9, 40, 3), (20, 30, 3)],
    [(20, 30, 1)] * 4,
    [(20, 30, 3), (20, 30, 1), (20, 30, 3), (20, 30, 1)],
]
BATCHES = [random_rows(*shapes) for shapes in SHAPES]
NUMBERS = {"mean": [120.0], "std": [60.0]}


def normalized(x, **arguments):
    mirror = fn.random.coin_flip(seed=5)
    return fn.crop_mirror_normalize(x, mirror=mirror, **NUMBERS, **arguments)


GRAPHS = {
    "resize": lambda x: fn.resize(x, size=(12, 15)),
    "resize, normalize": lambda x: normalized(fn.resize(x, size=(12, 15))),
    "shorter side, crop, normalize": lambda x: normalized(
        fn.resize(x, resize_shorter=14), crop=(10, 9), dtype=types.FLOAT16
    ),
    "places by sample": lambda x: normalized(
        fn.resize(x, size=(12, 15)),
        crop=(10, 9),
        crop_pos_x=fn.random.uniform(range=(0, 1), seed=6),
    ),
    "sizes by sample": lambda x: normalized(
        fn.resize(x, resize_x=fn.random.uniform(range=(8, 20), seed=7), resize_y=11)
    ),
    "resize_crop_mirror": lambda x: fn.resize_crop_mirror(
        x, size=(15, 14), crop=(8, 9), mirror=fn.random.coin_flip(seed=8)
    ),
    "random crops": lambda x: normalized(fn.random_resized_crop(x, size=(12, 15), seed=3)),
    "normalize": lambda x: normalized(x, crop=(25, 25), out_of_bounds_policy="pad"),
    "turned": lambda x: fn.gaussian_blur(fn.rotate(x, angle=30, fill_value=4), sigma=0.7),
    "adjusted": lambda x: fn.brightness_contrast(x, brightness=1.2, contrast=0.8),
}


def outputs(graph, device):
    batches = itertools.cycle(BATCHES)
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=0, seed=3)
    with pipe:
        x = fn.external_source(source=lambda: next(batches), layout="HWC")
        pipe.set_outputs(graph(x.gpu() if device == "gpu" else x))
    for _ in range(2 * len(BATCHES)):
        (batch,) = pipe.run()
        host = batch.as_cpu()
        yield [np.array(host.at(i)) for i in range(4)]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_batches_of_many_shapes(graph):
    for here, there in zip(outputs(graph, "cpu"), outputs(graph, "gpu"), strict=True):
        for one, other in zip(here, there, strict=True):
            assert one.dtype == other.dtype
            if one.dtype == np.uint8:
                assert np.abs(one.astype(int) - other).max() <= 1
            else:
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def in_common(count=3):
    axes = [[(40, 25, 0.0, 40.0, 1, 0, 25, 1)], [(30, 20, 3.0, 25.5, 2, 0, 20, 1)]]
    return AxesSampling.in_common(np.array(axes, AXIS), True, count)


def test_taps_in_common_are_computed_once():
    axes = in_common()
    where = np.array([True, False, True])
    anchor, shape = np.array([[2, 3]]), np.array([[7, 9]])
    with gpu_session() as session:
        for sampling in (
            axes,
            axes.flipped(1, where),
            axes.window(anchor, shape).flipped(0, where),
        ):
            taps = axes_taps(session.queue, sampling)
            again = axes_taps(session.queue, sampling)
            assert again.axes is taps.axes
        # Derived a second time, they are those of the first.
        found = axes_taps(session.queue, axes.window(anchor, shape).flipped(0, ~where))
        assert found.axes is taps.axes
        assert found.columns.tolist() == [[0, 1, 0], [0, 0, 0]]
        with gpu_session() as other:
            assert axes_taps(other.queue, axes).axes is not axes_taps(session.queue, axes).axes


def test_what_is_derived_of_axes_in_common_is_that_of_each():
    shared = in_common()
    table = np.repeat(shared.table, 3, axis=1)
    own = AxesSampling(table, True)
    where = np.array([True, False, True])
    for anchors, shapes in [([[2, 3]], [[7, 9]]), ([[2, 3], [0, 0], [1, 4]], [[7, 9]] * 3)]:
        cut = np.array(anchors), np.array(shapes)
        for change in (
            lambda axes, cut=cut: axes.window(*cut),
            lambda axes, cut=cut: axes.window(*cut).flipped(1, where),
            lambda axes, cut=cut: axes.flipped(1, where).window(*cut).flipped(1, ~where),
            lambda axes, cut=cut: axes.flipped(0, where).flipped(1, ~where).flipped(0, ~where),
        ):
            one, other = change(shared), change(own)
            for axis in range(2):
                np.testing.assert_array_equal(one.each(axis), other.each(axis))


def test_constants_are_uploaded_once_a_queue():
    values = np.arange(7, dtype=np.float32)
    constant = DeviceConstant(values)
    with gpu_session() as session:
        address = constant.address(session.queue)
        assert constant.address(session.queue) == address
        found = session.queue.pinned.empty((7,), np.float32)
        session.runtime.copy(found.ctypes.data, address, found.nbytes, session.stream)
        session.synchronize()
        np.testing.assert_array_equal(found, values)
        with gpu_session() as other:
            assert constant.address(other.queue) != address


def test_few_shapes_are_remembered():
    memo = ShapeMemo()
    with gpu_session() as session:
        batches = [session.queue.empty((k, 2), np.uint8, 3) for k in range(1, 40)]
        made = [memo.of(batch, object) for batch in batches]
        assert [memo.of(batch, object) for batch in batches[-5:]] == made[-5:]
        assert memo.of(batches[0], object) is not made[0]
        ragged = session.queue.empty(np.array([[1, 2], [3, 4]]), np.uint8)
        same = session.queue.empty(np.array([[1, 2], [3, 4]]), np.uint8)
        other = session.queue.empty(np.array([[1, 2, 3, 4], [1, 2, 3, 5]]), np.uint8)
        assert memo.of(ragged, object) is memo.of(same, object)
        assert memo.of(ragged, object) is not memo.of(other, object)

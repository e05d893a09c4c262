"""Copies of strided samples: NumPy's views are the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.kernels.gpu.strided_copy import gather
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch
from tests.support.gpu.session import GpuSession, gpu_session

TYPES = [np.uint8, np.int16, np.float16, np.float32, np.float64, np.int64, np.bool_]
IMAGES = [(37, 53, 3), (64, 64, 3), (1, 200, 3), (20, 1, 3), (0, 5, 3), (90, 70, 3), (1, 1, 3)]


def samples(shapes, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, s).astype(dtype) for s in shapes]


def view_of(row: np.ndarray, batch: StridedBatch, base: DeviceBatch, index: int) -> np.ndarray:
    """What sample `index` of `batch`, which looks at `base`, is of `row`."""
    shape = tuple(batch.shapes[index].tolist())
    if 0 in shape:
        return np.empty(shape, row.dtype)
    offset = int(batch.pointers[index]) - int(base.pointers[index])
    flat = np.ascontiguousarray(row).reshape(-1).view(np.uint8)
    element = np.frombuffer(flat, row.dtype, 1, offset)
    strides = tuple(batch.strides[index].tolist())
    return np.lib.stride_tricks.as_strided(element, shape, strides)


def check(rows, look, *, scattered=True) -> list[str]:
    """Copy what `look` makes of a batch; return the names of the kernels that were launched."""
    with gpu_session(scattered=scattered) as session:
        batch = session.upload(rows)
        view = look(StridedBatch.of(batch))
        out = session.queue.empty(view.shapes, view.dtype)
        launched = getattr(session.runtime, "launches", [])
        before = len(launched)
        session.queue.copy_strided(view, out)
        kernels = list(launched)[before:]
        got = session.download(out)
        for index, (row, copy) in enumerate(zip(rows, got, strict=True)):
            expected = view_of(row, view, batch, index)
            np.testing.assert_array_equal(copy.view(), expected, f"sample {index}")
    return kernels


def every(batch):
    return np.ones(len(batch), np.bool_)


def some(batch):
    return np.arange(len(batch)) % 2 == 0


def cropped(batch):
    """All but two pixels on the left and one on the right."""
    anchors, shapes = np.zeros_like(batch.shapes), batch.shapes.copy()
    anchors[:, 1] = np.minimum(2, shapes[:, 1])
    shapes[:, 1] = np.maximum(shapes[:, 1] - 3, 0)
    return batch.window(anchors, shapes)


def stepped(batch, axis, step):
    shapes, strides = batch.shapes.copy(), batch.strides.copy()
    shapes[:, axis] = -(-shapes[:, axis] // step)
    strides[:, axis] *= step
    return StridedBatch(batch.runtime, batch.owners, batch.pointers, shapes, strides, batch.dtype)


LOOKS = {
    "whole": lambda b: b,
    "crop": cropped,
    "mirror": lambda b: b.flipped(1, every(b)),
    "some mirrored": lambda b: b.flipped(1, some(b)).flipped(0, every(b)),
    "upside down": lambda b: b.flipped(0, every(b)),
    "planes": lambda b: b.permuted((2, 0, 1)),
    "mirrored planes": lambda b: b.flipped(1, some(b)).permuted((2, 0, 1)),
    "cropped planes": lambda b: cropped(b).permuted((2, 0, 1)),
    "columns": lambda b: b.permuted((1, 0, 2)),
    "reversed axes": lambda b: b.permuted((2, 1, 0)),
    "columns of planes": lambda b: b.permuted((0, 2, 1)),
    "from planes": lambda b: b.permuted((1, 2, 0)),
    "two channels": lambda b: b.window(0 * b.shapes, b.shapes - [0, 0, 1]),
    "swapped channels": lambda b: b.flipped(2, every(b)),
    "every other column": lambda b: stepped(b, 1, 2),
    "every fifth row and column": lambda b: stepped(stepped(b, 1, 5), 0, 5),
    "far apart": lambda b: stepped(stepped(b.flipped(1, every(b)), 1, 17), 2, 2),
}


@pytest.mark.sweep
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("dtype", TYPES)
def test_images(look, dtype):
    check(samples(IMAGES, dtype), LOOKS[look])


@pytest.mark.sweep
@pytest.mark.parametrize("channels", [1, 2, 4, 5, 16, 70])
@pytest.mark.parametrize("look", ["planes", "from planes", "mirror", "reversed axes", "crop"])
def test_channels(channels, look):
    shapes = [(9, 31, channels), (24, 40, channels)]
    for scattered in (False, True):
        check(samples(shapes, np.uint8), LOOKS[look], scattered=scattered)
    check(samples(shapes, np.float32), LOOKS[look])


def test_planes_from_images_and_back_of_all_ranks():
    for rank in range(7):
        shapes = [np.random.default_rng(rank + i).integers(1, 5, rank) for i in range(3)]
        rows = samples(shapes, np.int16)
        check(rows, lambda b, rank=rank: b.permuted(tuple(range(rank - 1, -1, -1))))
        for axis in range(rank):
            check(rows, lambda b, axis=axis: b.flipped(axis, every(b)))
            check(rows, lambda b, axis=axis: stepped(b.flipped(axis, some(b)), axis, 3))


def test_more_axes_than_any_layout_has():
    rows = samples([(2,) * 12, (2,) * 12], np.uint8)
    check(rows, lambda b: b.permuted((11, 0, 9, 3, 4, 1, 6, 10, 8, 2, 5, 7)))


def test_rows_of_any_length_and_alignment():
    lengths = [*range(60, 100), 255, 256, 257, 300, 2031, 2032, 2033, 2048, 2064, 5000, 9001]
    for shift in (0, 1, 4, 16):
        rows = samples([(3, n + 21) for n in lengths])

        def look(batch, shift=shift):
            anchors = np.zeros_like(batch.shapes)
            anchors[:, 1] = shift
            return batch.window(anchors, batch.shapes - [0, 21])

        for scattered in (False, True):
            assert check(rows, look, scattered=scattered) in (["copy_rows"], [])


def test_axes_that_stand_still():
    def repeated(batch):
        strides = batch.strides.copy()
        strides[:, 0] = 0
        return StridedBatch(
            batch.runtime, batch.owners, batch.pointers, batch.shapes, strides, batch.dtype
        )

    check(samples([(5, 40, 3), (70, 3, 3)], np.float32), repeated)
    check(samples([(5, 40, 3), (70, 3, 3)]), lambda b: repeated(b).permuted((2, 1, 0)))


def test_one_piece_is_one_copy(emulated_gpu):
    assert check(samples([(6, 7, 3)] * 4), LOOKS["whole"], scattered=False) == []


def test_channels_that_fill_an_element_move_as_one(emulated_gpu):
    rows = samples([(20, 30, 4)] * 2)
    assert check(rows, LOOKS["mirror"], scattered=False) == ["copy_tiles<unsigned int, 1>"]
    assert check(rows, LOOKS["mirror"]) == ["copy_tiles<unsigned char, 0>"]


def test_two_steps_where_one_would_crawl(emulated_gpu):
    rows = samples([(40, 50, 3)] * 2)
    assert len(check(rows, LOOKS["reversed axes"])) == 2
    assert len(check(rows, LOOKS["planes"])) == 1


def test_large_transpositions():
    rows = samples([(300, 517), (64, 2000)], np.float32) + samples([(1, 300)], np.float32)
    check(rows, lambda b: b.permuted((1, 0)))
    check(samples([(300, 517), (2000, 64)], np.uint8), lambda b: b.permuted((1, 0)))


PHOTOGRAPHS = [
    (61, 131, 3),
    (375, 83, 3),
    (241, 30, 3),
    (362, 9, 3),
    (130, 67, 3),
    (257, 64, 3),
    (9, 65, 3),
    (128, 128, 3),
    (900, 12, 3),
    (12, 900, 3),
    (3, 2, 3),
    (390, 38, 3),
    (1201, 45, 3),
]


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("margin", [0, 1, 2, 3])
def test_rows_of_pixels_become_columns(margin, scattered):
    def look(batch):
        inner = batch.window(0 * batch.shapes + [0, margin, 0], batch.shapes - [0, margin, 0])
        return inner.flipped(0, some(batch)).permuted((1, 0, 2))

    rows = samples([(h, w + margin, c) for h, w, c in PHOTOGRAPHS])
    launched = check(rows, look, scattered=scattered)
    assert launched in ([], ["transpose_pixels"])


def test_rows_of_pixels_become_columns_in_every_frame():
    rows = samples([(2, 33, 70, 3), (3, 140, 66, 3), (0, 20, 20, 3)])
    check(rows, lambda b: b.permuted((0, 2, 1, 3)))
    check(rows, lambda b: b.permuted((2, 0, 1, 3)))
    check(rows, lambda b: b.flipped(2, some(b)).permuted((0, 2, 1, 3)))


@pytest.mark.parametrize("channels", [1, 2, 4, 6])
def test_pixels_of_other_sizes_become_columns(channels):
    check(samples([(70, 40, channels), (30, 90, channels)]), lambda b: b.permuted((1, 0, 2)))


@st.composite
def views(draw):
    """Shapes of a ragged batch, and what is done to its axes."""
    rank = draw(st.integers(1, 5))
    extents = st.lists(st.integers(0, 9), min_size=rank, max_size=rank)
    shapes = draw(st.lists(extents, min_size=1, max_size=3))
    shapes[0][draw(st.integers(0, rank - 1))] = draw(st.integers(1, 150))
    order = draw(st.permutations(range(rank)))
    flips = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    steps = draw(st.lists(st.sampled_from([1, 1, 2, 7]), min_size=rank, max_size=rank))
    starts = draw(st.lists(st.integers(0, 2), min_size=rank, max_size=rank))
    return shapes, order, flips, steps, starts, draw(st.sampled_from([1, 2, 4, 8]))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(views())
def test_any_view(case):
    shapes, order, flips, steps, starts, itemsize = case

    def look(batch):
        anchors = np.minimum(starts, batch.shapes)
        batch = batch.window(anchors, batch.shapes - anchors)
        for axis, (flip, step) in enumerate(zip(flips, steps, strict=True)):
            if flip:
                batch = batch.flipped(axis, some(batch))
            batch = stepped(batch, axis, step)
        return batch.permuted(order)

    check(samples(shapes, np.dtype(f"u{itemsize}")), look)


def pieces(session: GpuSession, rows, pinned: bool):
    """Addresses of copies of `rows`, in device memory or in page-locked memory."""
    if not pinned:
        return session.upload(rows).pointers
    kept = [session.queue.pinned.copy_of(row) for row in rows]
    session.queue.keep(kept)
    return np.array([row.ctypes.data for row in kept], np.uint64)


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
def test_gather(pinned, scattered):
    rows = samples([(n,) for n in (1, 0, 17, 4096, 100_001, 3, 2500)])
    with gpu_session(scattered=scattered) as session:
        sources = pieces(session, rows, pinned)
        out = session.queue.empty(np.array([row.shape for row in rows]), np.uint8)
        gather(session.queue, sources, np.array([row.nbytes for row in rows]), out)
        for row, got in zip(rows, session.download(out), strict=True):
            np.testing.assert_array_equal(row, got)

"""Resampling against sums in double precision, and windows against whole images."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from headrace.kernels.cpu.normalize_pixels import normalize_pixels, pattern
from headrace.kernels.cpu.resample import blend_slices, resample_image
from headrace.kernels.cpu.resample_taps import AxisSampling, Filter, axis_taps


def scratch(shape, dtype):
    """Memory full of what must not show: not-a-numbers."""
    return np.full(shape, np.nan, dtype)


def sampling(in_size, out_size, start=0.0, end=None, filter_=Filter.TRIANGULAR, **kwargs):
    antialias, stepwise = kwargs.get("antialias", True), kwargs.get("stepwise", False)
    end = float(in_size) if end is None else end
    return AxisSampling(in_size, out_size, start, end, filter_, antialias, stepwise)


def matrix(taps, in_size):
    """Taps as a matrix from source to output pixels."""
    dense = np.zeros((taps.first.size, in_size))
    for row, first, weights in zip(dense, taps.first, taps.weights, strict=True):
        row[first : first + weights.size] = weights
    return dense


def expected(image, rows, columns):
    y, x = matrix(rows, image.shape[0]), matrix(columns, image.shape[1])
    return np.einsum("yh,xw,hwc->yxc", y, x, image.astype(np.float64), optimize=True)


def run(image, rows, columns, out, **kwargs):
    resample_image(image, 0, 0, rows, columns, out, scratch, **kwargs)
    return out


def image_of(shape, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        return rng.uniform(-1, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_sums(dtype, channels):
    image = image_of((37, 45, channels), dtype)
    rows = axis_taps(sampling(37, 20), 0, 20)
    columns = axis_taps(sampling(45, 70, filter_=Filter.CUBIC), 0, 70)
    out = run(image, rows, columns, np.empty((20, 70, channels), np.float32))
    scale = np.abs(image.astype(np.float64)).max()
    np.testing.assert_allclose(out, expected(image, rows, columns), atol=1e-6 * scale)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_rounding_and_clamping(dtype):
    info = np.iinfo(dtype)
    image = np.full((2, 40, 1), info.min, dtype)
    image[:, 20:] = info.max  # the cubic filter overshoots on both sides of the edge
    rows = axis_taps(sampling(2, 2), 0, 2)
    columns = axis_taps(sampling(40, 77, filter_=Filter.CUBIC), 0, 77)
    out = run(image, rows, columns, np.empty((2, 77, 1), dtype), rounds_to=np.dtype(dtype))
    want = np.rint(expected(image, rows, columns).clip(info.min, info.max))
    np.testing.assert_allclose(out, want, atol=1)
    assert out.min() == info.min
    assert out.max() == info.max


def test_halves_go_to_the_even_number():
    image = np.array([[0, 1, 2, 3, 4, 5]], np.uint8)[..., None]
    columns = axis_taps(sampling(6, 3, antialias=False), 0, 3)
    out = run(image, axis_taps(sampling(1, 1), 0, 1), columns, np.empty((1, 3, 1), np.uint8),
              rounds_to=np.dtype(np.uint8))  # fmt: skip
    assert out.ravel().tolist() == [0, 2, 4]  # from 0.5, 2.5 and 4.5


@pytest.mark.parametrize("filter_", list(Filter))
def test_weights_sum_to_one(filter_):
    for in_size, out_size, antialias in (
        (40, 17, True),
        (17, 40, True),
        (40, 17, False),
        (1, 9, True),
    ):
        taps = axis_taps(
            sampling(in_size, out_size, filter_=filter_, antialias=antialias), 0, out_size
        )
        np.testing.assert_allclose(taps.weights.sum(1), 1, rtol=1e-6)
        assert taps.first.min() >= 0
        assert (taps.first + taps.weights.shape[1]).max() <= in_size
        assert taps.low == taps.first.min()
        assert taps.high == taps.first.max() + taps.weights.shape[1]


@pytest.mark.parametrize("filter_", list(Filter))
@pytest.mark.parametrize("stepwise", [False, True])
def test_taps_do_not_depend_on_the_window(filter_, stepwise):
    axis = sampling(61, 23, 3.3, 50.7, filter_, stepwise=stepwise)
    whole = axis_taps(axis, 0, 23)
    part = axis_taps(axis, 7, 9)
    np.testing.assert_array_equal(part.first, whole.first[7:16])
    np.testing.assert_array_equal(part.weights, whole.weights[7:16])
    mirrored = axis_taps(axis, 15, 9, -1)
    np.testing.assert_array_equal(mirrored.first, part.first[::-1])
    np.testing.assert_array_equal(mirrored.weights, part.weights[::-1])


def test_identity_and_flip():
    image = image_of((19, 33, 3))
    for filter_ in (Filter.NEAREST, Filter.TRIANGULAR, Filter.CUBIC):
        rows = sampling(19, 19, filter_=filter_)
        same = axis_taps(rows, 0, 19)
        flipped = axis_taps(sampling(33, 33, 33.0, 0.0, filter_), 0, 33)
        out = run(image, same, flipped, np.empty_like(image), rounds_to=image.dtype)
        np.testing.assert_array_equal(out, image[:, ::-1])


def test_outside_of_the_image_its_border_is_repeated():
    image = image_of((4, 5, 1), np.float32)
    rows = axis_taps(sampling(4, 3, -20.0, -8.0), 0, 3)
    columns = axis_taps(sampling(5, 3, 9.0, 15.0), 0, 3)
    out = run(image, rows, columns, np.empty((3, 3, 1), np.float32))
    np.testing.assert_allclose(out, np.full((3, 3, 1), image[0, -1, 0]), rtol=1e-6)


def test_any_strides_of_the_source():
    base = image_of((40, 50, 3))
    rows, columns = axis_taps(sampling(20, 13), 0, 13), axis_taps(sampling(25, 31), 0, 31)
    views = [
        base[3:23, 7:32],
        base[::2, ::2],
        base[39:19:-1, :25],
        base[:20, 24::-1],
        base.transpose(1, 0, 2)[:20, :25],
        base[:20, :25, ::-1],
        np.asfortranarray(base)[:20, :25],
    ]
    for view in views:
        want = run(np.ascontiguousarray(view), rows, columns, np.empty((13, 31, 3), np.float32))
        np.testing.assert_array_equal(
            run(view, rows, columns, np.empty((13, 31, 3), np.float32)), want
        )


def test_read_only_and_unaligned_sources():
    image = image_of((20, 25, 3), np.int16)
    raw = np.frombuffer(b"\0" + image.tobytes(), np.uint8)[1:].view(np.int16)
    unaligned = raw.reshape(image.shape)
    assert not unaligned.flags.writeable
    assert not unaligned.flags.aligned
    rows, columns = axis_taps(sampling(20, 13), 0, 13), axis_taps(sampling(25, 31), 0, 31)
    want = run(image, rows, columns, np.empty((13, 31, 3), np.float32))
    np.testing.assert_array_equal(
        run(unaligned, rows, columns, np.empty((13, 31, 3), np.float32)), want
    )


@settings(max_examples=60)
@given(
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70), st.sampled_from([1, 3, 4])),
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    filters=st.tuples(st.sampled_from(list(Filter)), st.sampled_from(list(Filter))),
    antialias=st.booleans(),
    planar=st.booleans(),
    out_dtype=st.sampled_from([np.float32, np.float16, np.uint8, np.int8]),
    data=st.data(),
)
def test_fused_normalisation_equals_one_after_the_other(
    shape, size, filters, antialias, planar, out_dtype, data
):
    image = image_of(shape, seed=shape[0])
    height, width = size
    y0, x0 = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    window = data.draw(st.integers(1, height - y0)), data.draw(st.integers(1, width - x0))
    step = data.draw(st.sampled_from([1, -1]))
    row_axis = sampling(shape[0], height, filter_=filters[0], antialias=antialias, stepwise=True)
    column_axis = sampling(shape[1], width, filter_=filters[1], antialias=antialias)
    channels = shape[2]
    further = 0 if planar else data.draw(st.integers(0, 1))
    means = pattern([100.5 + c for c in range(channels)] + [-7.0] * further)
    factors = pattern([0.0173 * (c + 1) for c in range(channels)] + [1.0] * further)

    def target():
        if planar:
            return np.empty((channels, *window), out_dtype).transpose(1, 2, 0)
        return np.empty((*window, channels + further), out_dtype)

    resized = run(
        image,
        axis_taps(row_axis, 0, height),
        axis_taps(column_axis, 0, width),
        np.empty((*size, channels), np.uint8),
        rounds_to=np.dtype(np.uint8),
    )
    cut = resized[y0 : y0 + window[0], x0 : x0 + window[1]][:, ::step]
    want = target()
    normalize_pixels(cut, means, factors, want)

    rows = axis_taps(row_axis, y0, window[0])
    begin = x0 if step > 0 else x0 + window[1] - 1
    columns = axis_taps(column_axis, begin, window[1], step)
    got = target()
    # The part of the image that is needed is all there is.
    part = image[rows.low : rows.high, columns.low : columns.high]
    resample_image(
        part,
        rows.low,
        columns.low,
        rows,
        columns,
        got,
        scratch,
        rounds_to=np.dtype(np.uint8),
        normalization=(means, factors),
    )
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))


def test_large_aligned_planes_go_past_the_caches():
    # 16 rows of whole cache lines, enough of them: another way to the same bytes.
    image = image_of((150, 170, 3))
    rows, columns = axis_taps(sampling(150, 160), 0, 160), axis_taps(sampling(170, 160), 0, 160)
    raw = np.zeros(3 * 160 * 160 + 32, np.float32)
    means, factors = pattern([1, 2, 3]), pattern([0.5, 0.25, 2])
    results = []
    for shift in (0, 1):
        begin = (-raw.ctypes.data % 64) // 4 + shift
        planes = raw[begin : begin + 3 * 160 * 160].reshape(3, 160, 160)
        resample_image(
            image,
            0,
            0,
            rows,
            columns,
            planes.transpose(1, 2, 0),
            scratch,
            rounds_to=image.dtype,
            normalization=(means, factors),
        )
        results.append(planes.copy())
    np.testing.assert_array_equal(results[0], results[1])


def test_nothing_is_written_beside_a_window_of_the_output():
    image = image_of((30, 30, 3))
    rows, columns = axis_taps(sampling(30, 19), 0, 19), axis_taps(sampling(30, 21), 0, 21)
    means, factors = pattern([0, 0, 0]), pattern([1, 1, 1])
    for planar in (True, False):
        whole = np.full((3, 25, 40) if planar else (25, 40, 3), -1, np.float32)
        view = whole.transpose(1, 2, 0) if planar else whole
        target = view[2:21, 5:26]
        run(image, rows, columns, target, rounds_to=image.dtype, normalization=(means, factors))
        assert (target >= 0).all()
        target[...] = -1
        assert (whole == -1).all()


def test_wide_images_are_done_in_pieces():
    image = image_of((5, 4000, 4), np.float32)
    rows = axis_taps(sampling(5, 7), 0, 7)
    for out_size, start, end in ((3000, 0.0, 4000.0), (9001, 4000.0, 0.0), (40, -50.0, 5000.0)):
        columns = axis_taps(sampling(4000, out_size, start, end), 0, out_size)
        out = run(image, rows, columns, np.empty((7, out_size, 4), np.float32))
        np.testing.assert_allclose(out, expected(image, rows, columns), atol=3e-6)


def test_nothing_to_do():
    rows, columns = axis_taps(sampling(5, 3), 0, 3), axis_taps(sampling(6, 2), 0, 2)
    out = np.empty((3, 2, 0), np.uint8)
    assert run(np.empty((5, 6, 0), np.uint8), rows, columns, out).shape == (3, 2, 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("count", [1, 15, 16, 50])
def test_blend_slices(dtype, count):
    volume = image_of((9, count), dtype)
    weights = np.array([0.25, 0.5, 0.125], np.float32)
    out = np.empty(count, np.float32)
    blend_slices(volume, 4, weights, out)
    np.testing.assert_allclose(out, weights @ volume[4:7].astype(np.float64), rtol=1e-5, atol=1e-6)

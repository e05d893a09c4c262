"""Recipes of elements: taken over, they give what the operators give one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.kernels.gpu.arithmetic import operation
from headrace.kernels.gpu.cast import cast_to
from headrace.kernels.gpu.pointwise import scale_and_shift
from headrace.kernels.gpu.pointwise_terms import fault, nodes, source
from headrace.operators.support.pointwise.pointwise_batch import PointwiseBatch, pointwise
from headrace.tensors.gpu.batch import StridedBatch
from headrace.tensors.gpu.faults import FaultReport
from tests.support.gpu.session import gpu_session

_rng = np.random.default_rng(0)
RAGGED = [_rng.integers(0, 256, s, np.uint8) for s in ((33, 47, 3), (5, 7, 3), (64, 20, 3))]
UNIFORM = [_rng.integers(0, 256, (24, 17, 3), np.uint8) for _ in range(3)]
U8, I16, I32, F32 = (np.dtype(t) for t in (np.uint8, np.int16, np.int32, np.float32))


def samples(batch):
    host = batch.as_cpu()
    return [host.at(i) for i in range(len(host))]


def run(define, data, *, fuse):
    pipe = Pipeline(batch_size=len(data), num_threads=2, device_id=0, seed=3, fuse=fuse)
    with pipe:
        found = define(fn.external_source(source=lambda: data).gpu())
        pipe.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    return [samples(out) for out in pipe.run()]


def chain(x):
    x = fn.brightness_contrast(x, brightness=1.3, contrast=fn.random.uniform(range=[0.5, 1.5]))
    x = fn.cast(x * 1.7 - 20.0, dtype=types.INT16)
    return fn.brightness(x, brightness_shift=0.01, dtype=types.FLOAT) / 3


def two_branches(x):
    return fn.brightness(x, brightness=0.5) * fn.cast(
        fn.contrast(x, contrast=2.0), dtype=types.FLOAT
    )


def several_readers(x):
    y = fn.brightness(x, brightness=1.5)
    return y, y + 1, fn.cast(y, dtype=types.FLOAT)


def smaller_operand(x):
    offset = fn.cast(
        fn.external_source(source=lambda i: np.int32([1, 2, 3]), batch=False).gpu(),
        dtype=types.FLOAT,
    )
    return fn.contrast(x, contrast=0.3) - offset


@pytest.mark.parametrize("data", [RAGGED, UNIFORM], ids=["ragged", "uniform"])
@pytest.mark.parametrize("define", [chain, two_branches, several_readers, smaller_operand])
def test_values_do_not_depend_on_fusion(define, data):
    for fused, apart in zip(
        run(define, data, fuse=True), run(define, data, fuse=False), strict=True
    ):
        for a, b in zip(fused, apart, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def half_as_bright(session, rows):
    batch = session.upload(rows)
    halves = np.full(len(rows), 0.5, np.float32)
    ones = np.ones(len(rows), np.float32)
    term = scale_and_shift(U8, U8)
    return pointwise(session.queue, term, (batch,), batch.shapes, (halves, ones))


def test_a_chain_is_one_launch(emulated_gpu):
    with gpu_session() as session:
        found = half_as_bright(session, UNIFORM)
        for term in (cast_to(U8, F32), cast_to(F32, I16), cast_to(I16, F32)):
            found = pointwise(session.queue, term, (found,), found.shapes)
        got = session.download(found)
    assert list(emulated_gpu.launches) == ["pointwise<Body>"]
    for g, row in zip(got, UNIFORM, strict=True):
        np.testing.assert_array_equal(g, np.float32(row // 2 + row % 2 + 1))


def test_equal_sources_are_read_once():
    with gpu_session() as session:
        batch = session.upload(RAGGED)
        as_floats = pointwise(session.queue, cast_to(U8, F32), (batch,), batch.shapes)
        term = operation("mul", (source(0, F32), source(1, F32)), F32, None, None)
        found = pointwise(session.queue, term, (as_floats, as_floats), batch.shapes)
        assert len(found.sources) == 1
        # The conversion is one part of the term, not two.
        assert sum(getattr(n, "function", "") == "cast_to<float>" for n in nodes(found.term)) == 1
        for got, row in zip(session.download(found), RAGGED, strict=True):
            np.testing.assert_array_equal(got, row.astype(np.float32) ** 2)


def test_the_same_recipes_have_the_same_term():
    with gpu_session() as session:
        terms = set()
        for _ in range(2):
            dim = half_as_bright(session, RAGGED)
            found = pointwise(session.queue, cast_to(U8, F32), (dim,), dim.shapes)
            terms.add(found.term)
        assert len(terms) == 1


def test_numbers_of_several_recipes():
    with gpu_session() as session:
        left, right = half_as_bright(session, RAGGED), half_as_bright(session, RAGGED[::1])
        term = operation("sub", (source(0, U8), source(1, U8)), U8, None, None)
        found = pointwise(session.queue, term, (left, right), left.shapes)
        assert len(found.numbers) == 4
        assert not any(x.any() for x in session.download(found))


def test_long_chains_are_computed_piece_by_piece(emulated_gpu):
    with gpu_session() as session:
        batch = session.upload([np.zeros((3, 4), np.int32)])
        term = operation("add", (source(0, I32), source(0, I32)), I32, None, None)
        more = operation("sub", (source(0, I32), source(1, I32)), I32, None, None)
        one = session.upload([np.full((3, 4), -1, np.int32)])
        del term
        for _ in range(300):
            batch = pointwise(session.queue, more, (batch, one), one.shapes)
        (got,) = session.download(batch)
    np.testing.assert_array_equal(got, np.full((3, 4), 300))
    assert len(emulated_gpu.launches) == 3


def strided(batch, *, window=None, flip=False, order=None):
    view = StridedBatch.of(batch)
    if window is not None:
        anchors, shapes = window
        count = len(batch)
        view = view.window(np.tile(anchors, (count, 1)), np.tile(shapes, (count, 1)))
    if flip:
        view = view.flipped(1, np.ones(len(batch), bool))
    return view if order is None else view.permuted(order)


@pytest.mark.parametrize(
    ("options", "index", "order"),
    [
        ({"window": ((1, 2, 0), (4, 5, 3))}, np.s_[1:5, 2:7], None),
        ({"flip": True}, np.s_[:, ::-1], None),
        ({"window": ((1, 2, 0), (4, 5, 3)), "flip": True}, np.s_[1:5, 6:1:-1], None),
        ({"order": (2, 0, 1)}, np.s_[:], (2, 0, 1)),
        ({"window": ((0, 0, 0), (1, 1, 3))}, np.s_[:1, :1], None),
    ],
)
def test_views_are_read_without_a_copy(emulated_gpu, options, index, order):
    with gpu_session() as session:
        view = strided(session.upload(RAGGED), **options)
        found = pointwise(session.queue, cast_to(U8, F32), (view,), view.shapes)
        emulated_gpu.launches.clear()
        got = session.download(found)
    assert len(emulated_gpu.launches) == 1
    for g, row in zip(got, RAGGED, strict=True):
        want = row[index] if order is None else row[index].transpose(order)
        np.testing.assert_array_equal(g, want.astype(np.float32), strict=True)


def test_views_whose_neighbours_are_far_apart_are_copied(emulated_gpu):
    with gpu_session() as session:
        view = strided(session.upload(RAGGED), order=(1, 2, 0))
        found = pointwise(session.queue, cast_to(U8, F32), (view,), view.shapes)
        got = session.download(found)
    for g, row in zip(got, RAGGED, strict=True):
        np.testing.assert_array_equal(g, row.transpose(1, 2, 0).astype(np.float32))
    assert len(emulated_gpu.launches) == 2


def divided(queue, a, b, error):
    term = operation("floordiv", (source(0, I32), source(1, I32)), I32, None, fault(0))
    return pointwise(queue, term, (a, b), a.shapes, (), (error,))


def error_of(name):
    return lambda sample: ZeroDivisionError(f"{name}, sample {sample}")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 1, 1], [1, 1, 1], None),
        ([1, 0, 0], [1, 1, 1], "first, sample 1"),
        ([1, 1, 1], [2, 2, 0], "second, sample 2"),
    ],
)
def test_faults(first, second, message):
    def rows(values):
        return [np.full((40, 40), v, np.int32) for v in values]

    with gpu_session() as session:
        a, b, c = (session.upload(rows(v)) for v in ([8, 9, 10], first, second))
        inner = divided(session.queue, a, b, error_of("first"))
        outer = divided(session.queue, inner, c, error_of("second"))
        assert isinstance(outer, PointwiseBatch)
        session.download(outer)
        (report,) = [k for k in session.queue.finish() if isinstance(k, FaultReport)]
        if message is None:
            report.check()
            return
        with pytest.raises(ZeroDivisionError, match=message):
            report.check()

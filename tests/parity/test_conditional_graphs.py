"""Branches of graphs made by hand, beside what DALI makes of `if` statements."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import ArgumentValueError
from headrace.graph.branches import guarded, merge
from tests.parity.support import LIBRARIES, assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(3)
SIZE = 6
IMAGES = [_rng.integers(0, 255, (5 + k, 7, 3)).astype(np.uint8) for k in range(SIZE)]
LABELS = [np.asarray(k, np.int32) for k in range(SIZE)]


def branches(lib, predicate, data, if_true, if_false):
    """``if predicate: x = if_true(*data) else: x = if_false(*data)``; `data` are edges."""
    if lib is LIBRARIES["dali"]:
        conditional = lib.fn._conditional
        parts = [conditional.split(edge, predicate=predicate) for edge in data]
        return conditional.merge(
            if_true(*[part[0] for part in parts]),
            if_false(*[part[1] for part in parts]),
            predicate=predicate,
        )
    with guarded(predicate):
        one = if_true(*data)
    with guarded(predicate, holds=False):
        other = if_false(*data)
    return merge(predicate, one, other)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


PREDICATES = [
    [np.bool_(k % 2) for k in range(SIZE)],
    [np.bool_(False)] * SIZE,
    [np.bool_(True)] * SIZE,
    [np.asarray(k - 2, np.int32) for k in range(SIZE)],
    [np.asarray(v, np.float32) for v in (0, -0.0, 0.5, np.nan, np.inf, -1)],
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_images(predicate):
    def graph(lib, images, label, p):
        def flipped(x, n):
            return lib.fn.flip(x, horizontal=n % 2)

        return (
            branches(lib, p, [images, label], flipped, lambda x, _: lib.fn.crop(x, crop=(3, 4))),
            branches(lib, p, [label], lambda n: n + 1, lambda n: n * 10),
            images,
        )

    exact(graph, IMAGES, LABELS, predicate, layouts=["HWC", "", ""])


def test_nested_and_computed_predicates():
    def graph(lib, images, label):
        def inner(x, n):
            return branches(
                lib,
                n > 2,
                [x, n],
                lambda x, n: lib.fn.flip(x, vertical=1),
                lambda x, n: lib.fn.pad(x, axes=[1], shape=[9]),
            )

        tall = images.shape()[0] > 6
        return branches(lib, tall, [images, label], inner, lambda x, n: x), tall

    exact(graph, IMAGES, LABELS, layouts=["HWC", ""])


@pytest.mark.parametrize("predicate", PREDICATES)
def test_split_and_merge(predicate):
    def graph(lib, images, label, p):
        conditional, fn = lib.fn._conditional, lib.fn
        even = label % 2 == 0
        whole = [conditional.split(edge, predicate=p) for edge in (images, label, even)]
        (image, other), (number, _), (even, _) = whole
        parts = [conditional.split(edge, predicate=even) for edge in (image, number)]
        inner = conditional.merge(
            fn.flip(parts[0][0], horizontal=parts[1][0] // 2 % 2),
            fn.crop(parts[0][1], crop=(3, 4)),
            predicate=even,
        )
        zero, one = (conditional.split(np.int32(k), predicate=p)[k] for k in (0, 1))
        turned = fn.transforms.rotation(angle=fn.cast(number, dtype=lib.types.FLOAT))
        return (
            conditional.merge(inner, fn.crop(other, crop=(2, 2)), predicate=p),
            conditional.merge(zero, one, predicate=p),
            *((fn.cast(turned, dtype=lib.types.INT32), *whole[1]) if parts_are_there else ()),
        )

    parts_are_there = 0 < sum(map(bool, predicate)) < SIZE
    exact(graph, IMAGES, LABELS, predicate, layouts=["HWC", "", ""])


def test_parts_of_a_batch_do_not_mix():
    def graph(lib, label, p):
        one, other = lib.fn._conditional.split(label, predicate=p)
        return one + other

    assert_both_raise(graph, LABELS, PREDICATES[3])


def test_whole_batches_are_those_of_the_branch():
    def graph(lib, images, label):
        return branches(
            lib, label % 2, [images], lambda x: lib.fn.pad(x), lambda x: lib.fn.pad(x, align=[4])
        )

    exact(graph, IMAGES, LABELS, layouts=["HWC", ""])


def test_what_a_branch_has():
    def graph(lib, label, p):
        if lib is LIBRARIES["dali"]:
            one, other = lib.fn._conditional.split(label, predicate=p)
            return one + 1, other * 2
        with guarded(p):
            one = label + 1
        with guarded(p, holds=False):
            other = label * 2
        return one, other

    for predicate in PREDICATES[:3]:
        ours, theirs = (run_graph(name, graph, LABELS, predicate) for name in ("headrace", "dali"))
        for one, other in zip(ours, theirs, strict=True):
            for a, b in zip(one, other, strict=True):
                assert [s.tolist() for s in a.samples] == [s.tolist() for s in b.samples]


@pytest.mark.parametrize(
    "change",
    [
        lambda lib, x: lib.fn.cast(x, dtype=lib.types.FLOAT),
        lambda lib, x: lib.fn.expand_dims(x, axes=[0]),
        lambda lib, x: lib.fn.reshape(x, layout="CWH"),
        lambda lib, x: lib.fn.reshape(x, layout=""),
    ],
    ids=["type", "rank", "layout", "no layout"],
)
def test_branches_that_do_not_agree(change):
    def graph(lib, images, p):
        return branches(lib, p, [images], lambda x: change(lib, x), lambda x: x)

    assert_both_raise(graph, IMAGES, PREDICATES[0], layouts=["HWC", ""])


def test_a_predicate_of_one_dimension():
    def graph(lib, images, p):
        return branches(lib, p, [images], lambda x: x, lambda x: lib.fn.flip(x))

    assert_both_raise(graph, IMAGES, [np.ones(1, bool)] * SIZE, layouts=["HWC", ""])


def merged(lib, x, split_by, merge_by, *, swapped=False):
    parts = lib.fn._conditional.split(x, predicate=split_by)
    one, other = lib.fn.flip(parts[0], horizontal=1), lib.fn.crop(parts[1], crop=(3, 4))
    if swapped:
        one, other = other, one
    return lib.fn._conditional.merge(one, other, predicate=merge_by)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_predicates_that_are_equal(predicate):
    def graph(lib, images, p, same):
        none = p == 0
        return (
            merged(lib, images, p, same),
            merged(lib, images, p, lib.fn.copy(p)),
            merged(lib, images, p != 0, p != 0),
            merged(lib, images, p, none, swapped=True),
        )

    exact(graph, IMAGES, predicate, list(predicate), layouts=["HWC", "", ""])


def test_predicates_that_differ():
    """DALI gives samples to each other's places, or the process ends."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def graph():
        x = fn.external_source(lambda: np.zeros((2, 5, 5, 3), np.uint8), layout="HWC")
        p, q = (fn.external_source([np.array(v)]) for v in ([True] * 2, [True, False]))
        return merged(SimpleNamespace(fn=fn), x, p, q)

    with pytest.raises(ArgumentValueError, match=r"`predicate` of False .*first of the two"):
        graph().run()

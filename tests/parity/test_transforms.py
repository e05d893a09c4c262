"""`fn.transforms` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from tests.parity.support import assert_both_raise, assert_parity, run_graph


def each(*values) -> list[np.ndarray]:
    return [np.array(v, np.float32) for v in values]


def maps(n: int, count: int, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).normal(size=(count, n, n + 1)).astype(np.float32))


def exactly(graph, *feeds, **options):
    options.setdefault("batch_size", len(feeds[0]) if feeds else 2)
    assert_parity(graph, *feeds, relative=0, absolute=0, **options)


CONSTANT = {
    "translation": [
        {"offset": (1.5, -2.25)},
        {"offset": 3.0},
        {"offset": (1, 2, 3)},
        {"offset": (1, 2, 3, 4, 5, 6)},
    ],
    "scale": [
        {"scale": (2, 3.3)},
        {"scale": 0.7},
        {"scale": 0.7, "ndim": 3},
        {"scale": (2, 3.3), "ndim": 3},
        {"scale": 2.0, "ndim": 0},
        {"scale": 2.0, "ndim": -1},
        {"scale": (2, 3.3), "center": (10.1, 20.7)},
        {"scale": (2, 3.3), "center": 10.1},
        {"scale": (0, 3.3, -1), "center": (1.1, 2.2, 3.3)},
    ],
    "rotation": [
        *({"angle": a} for a in (0, 30, 90, -90, 180, 77.7, 1234.5)),
        {"angle": 33, "center": (10.1, 20.7)},
        {"angle": 33, "center": 5.5},
        {"angle": 33, "axis": (0, 0, 1)},
        {"angle": -33, "axis": (1, 2, 3)},
        {"angle": 133, "axis": (1, -2, 3), "center": (1.1, 2.2, 3.3)},
    ],
    "shear": [
        {"shear": (0.1, 0.2)},
        {"shear": (0.1, 0.2), "center": (3.3, 4.4)},
        {"shear": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)},
        {"shear": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), "center": (3.3, 4.4, 5.5)},
    ],
    "crop": [
        {},
        {"from_start": (0, 1), "from_end": (10.3, 20), "to_start": (1, 2), "to_end": (3, 4)},
        {"from_start": 0, "from_end": (10, 20)},
        {"from_start": (5, 1), "from_end": (1, 20)},
        {"from_start": (5, 1), "from_end": (1, 20), "absolute": True},
        {"from_start": (5, 1), "to_start": (4, 4), "to_end": (2, 8), "absolute": True},
        {"from_start": (5, 1, 2), "from_end": (5, 20, 3)},
    ],
}
CASES = [(name, given) for name, cases in CONSTANT.items() for given in cases]


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_constants(name, given):
    exactly(lambda lib: getattr(lib.fn.transforms, name)(**given))


@pytest.mark.sweep
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("name", "n", "given"),
    [
        ("translation", 2, {"offset": (1.5, -2.25)}),
        ("translation", 5, {"offset": (1.5, -2.25, 3, 4, 5)}),
        ("scale", 2, {"scale": (2, 3.3), "center": (1.1, 2.2)}),
        ("scale", 3, {"scale": 2.7}),
        ("scale", 2, {"scale": 2.7, "ndim": 3}),
        ("rotation", 2, {"angle": 33, "center": (1.1, 2.2)}),
        ("rotation", 3, {"angle": 33, "axis": (1, 2, 3), "center": (1.1, 2.2, 3.3)}),
        ("shear", 2, {"shear": (0.1, 0.2)}),
        ("shear", 3, {"shear": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)}),
        ("crop", 2, {"from_start": (0, 1), "from_end": (10.3, 20), "to_end": (3, 4)}),
    ],
)
def test_behind_another_transform(name, n, given, reverse):
    exactly(
        lambda lib, m: getattr(lib.fn.transforms, name)(m, reverse_order=reverse, **given),
        maps(n, 4),
    )


def test_arguments_by_sample():
    def graph(lib, offset, scale, angle, center, shear, corner):
        t = lib.fn.transforms
        return (
            t.translation(offset=offset),
            t.scale(scale=scale, center=center),
            t.rotation(angle=angle, center=center),
            t.shear(shear=shear, center=center),
            t.crop(from_start=corner, to_end=center),
        )

    rng = np.random.default_rng(1)
    feeds = [each(*rng.normal(size=(5, 2))) for _ in range(6)]
    feeds[2] = each(*rng.uniform(-360, 360, 5))
    exactly(graph, *feeds)


def test_shapes_of_shear():
    for values in ([[0.1], [0.2]], [[1, 2], [3, 4], [5, 6]]):
        exactly(lambda lib, s: lib.fn.transforms.shear(shear=s), each(values))
    assert_both_raise(lambda lib, s: lib.fn.transforms.shear(shear=s), each([[1, 2, 3], [4, 5, 6]]))


def test_angles_of_shear():
    # DALI's tangents are off by their last bit.
    angles = np.random.default_rng(2).uniform(-89, 89, (20, 2))
    assert_parity(
        lambda lib, a: lib.fn.transforms.shear(angles=a), each(*angles), relative=3e-7, absolute=0
    )
    assert_parity(
        lambda lib: lib.fn.transforms.shear(angles=(90, -90, 10, 20, 30, 40)),
        batch_size=1,
        relative=3e-7,
        absolute=0,
    )


def test_frames():
    def graph(lib, angle, center, single):
        t = lib.fn.transforms
        turned = t.rotation(angle=angle, center=center)
        return (
            t.rotation(angle=angle),
            t.rotation(angle=angle, center=(1, 2)),
            t.rotation(angle=angle, center=single),
            turned,
            t.translation(turned, offset=(1, 2)),
            t.translation(turned, offset=center),
            t.combine(turned, t.translation(offset=(1, 2))),
            t.combine(t.translation(offset=(1, 2)), turned, reverse_order=True),
            t.combine(turned, turned, turned),
        )

    exactly(
        graph,
        each([30, 90, 7], [1, 2]),
        each([[1, 2], [3, 4], [5, 6]], [[1, 1], [2, 2]]),
        each([[1, 2]], [[3, 3]]),
        layouts=["F", "F*", "F*"],
    )


@pytest.mark.sweep
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_combine(n, reverse):
    exactly(
        lambda lib, a, b, c: lib.fn.transforms.combine(a, b, c, reverse_order=reverse),
        *(maps(n, 3, seed) for seed in range(3)),
    )


def test_combine_with_constants():
    exactly(
        lambda lib, a: lib.fn.transforms.combine(a, np.array([[0, 1, 1], [1, 0, 7]], np.float32)),
        maps(2, 3),
    )


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("translation", {"offset": (1,) * 7}),
        ("translation", {"offset": ()}),
        ("scale", {"scale": 2.0, "ndim": 7}),
        ("scale", {"scale": 2.0, "center": (1, 2)}),
        ("scale", {"scale": (2.0, 3.0), "center": (1, 2, 3)}),
        ("rotation", {"angle": 1, "center": (1, 2, 3)}),
        ("rotation", {"angle": 1, "axis": (1, 2)}),
        ("rotation", {"angle": 1, "axis": (1, 2, 3), "center": (1, 2)}),
        ("rotation", {}),
        ("rotation", {"angle": [1, 2]}),
        ("shear", {}),
        ("shear", {"shear": (1, 2), "angles": (1, 2)}),
        ("shear", {"shear": 1.0}),
        ("shear", {"shear": (1, 2, 3)}),
        ("shear", {"angles": (100, 0)}),
        ("crop", {"from_start": (0, 1, 2), "from_end": (10, 20)}),
    ],
    ids=str,
)
def test_bad_arguments(name, given):
    assert_both_raise(lambda lib: getattr(lib.fn.transforms, name)(**given), batch_size=1)


def test_bad_inputs():
    def moved(lib, m):
        return lib.fn.transforms.translation(m, offset=(1, 2))

    for shape in ((2, 2), (3, 3), (6,), (3, 4)):
        assert_both_raise(moved, [np.ones(shape, np.float32)])
    for dtype in ("float64", "int32"):
        assert_both_raise(moved, [np.ones((2, 3), dtype)])
    for name, given in (
        ("rotation", {"angle": 3}),
        ("crop", {"from_end": 2.0}),
        ("shear", {"shear": (1, 2)}),
    ):
        assert_both_raise(
            lambda lib, m, name=name, given=given: getattr(lib.fn.transforms, name)(m, **given),
            maps(3, 1),
        )


def test_transforms_that_do_not_go_together():
    def combined(lib, a, b):
        return lib.fn.transforms.combine(a, b)

    assert_both_raise(combined, maps(2, 1), maps(3, 1))
    assert_both_raise(combined, maps(7, 1), maps(7, 1))
    assert_both_raise(
        combined,
        [np.stack(maps(2, 3))],
        [np.stack(maps(2, 2))],
        layouts="F**",
        match="frames",
    )
    assert_both_raise(lambda lib, a: lib.fn.transforms.combine(a), maps(2, 1))


def test_numbers_of_frames_must_agree():
    assert_both_raise(
        lambda lib, a, b: lib.fn.transforms.rotation(angle=a, center=b),
        each([30, 90]),
        each([[1, 2], [3, 4], [5, 6]]),
        layouts=["F", "F*"],
        match="frames",
    )
    assert_both_raise(
        lambda lib, m, b: lib.fn.transforms.translation(m, offset=b),
        [np.stack(maps(2, 2))],
        each([[1, 2], [3, 4], [5, 6]]),
        layouts=["F**", "F*"],
        match="frames",
    )


def test_classes():
    def graph(lib, angle):
        t = lib.ops.transforms
        turn = t.Rotation(center=(1, 2))(angle=angle)
        return t.Combine(reverse_order=True)(turn, t.Crop(from_end=(2, 3))())

    import nvidia.dali.ops

    import headrace.ops

    assert nvidia.dali.ops
    assert headrace.ops
    exactly(graph, each(10, 20, -30))


def test_samples_of_different_numbers_of_axes():
    offsets = each([1, 2], [1, 2, 3])

    def graph(lib, offset):
        return lib.fn.transforms.translation(offset=offset)

    with pytest.raises(RuntimeError):
        run_graph("dali", graph, offsets)
    ((output,),) = run_graph("headrace", graph, offsets)
    assert [s.shape for s in output.samples] == [(2, 3), (3, 4)]


@pytest.mark.parametrize("given", [{"angle": float("nan")}, {"angle": 3, "axis": (0, 0, 0)}])
def test_rotations_that_there_are_not(given):
    ((output,),) = run_graph("dali", lambda lib: lib.fn.transforms.rotation(**given), batch_size=1)
    assert np.isnan(output.samples[0]).any()
    with pytest.raises(ArgumentValueError):
        run_graph("headrace", lambda lib: lib.fn.transforms.rotation(**given), batch_size=1)

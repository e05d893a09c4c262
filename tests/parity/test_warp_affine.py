"""`fn.warp_affine` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.errors import ShapeError, UsageError
from tests.parity.support import assert_both_raise, assert_parity, run_graph

TYPES = ("uint8", "int16", "int32", "float32")
DALI_NAME = {"uint8": "UINT8", "int16": "INT16", "int32": "INT32", "float32": "FLOAT"}
ALWAYS = {
    ("uint8", "float32"),
    ("float32", "uint8"),
    ("int16", "int16"),
    ("int32", "int32"),
    ("uint8", "int16"),
}
ELEMENT_TYPES = [
    pytest.param(*pair, marks=[] if pair in ALWAYS else pytest.mark.nightly)
    for pair in itertools.product(TYPES, TYPES)
]
IDENTITY = (1, 0, 0, 0, 1, 0)


def noise(*shape: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.random(shape, np.float32) * 255
    low, high = (0, 256) if dtype == "uint8" else (-30000, 30000)
    return rng.integers(low, high, shape).astype(dtype)


def matrices(rank: int, count: int, *, reach: float = 4, seed: int = 0) -> list[np.ndarray]:
    """Maps that turn, shear and scale a little, and move by some elements."""
    rng = np.random.default_rng(seed)
    linear = np.eye(rank) + rng.normal(size=(count, rank, rank)) * 0.25
    offset = rng.normal(size=(count, rank, 1)) * reach
    return list(np.concatenate([linear, offset], axis=2).astype(np.float32))


def exactly(graph, *feeds, **options):
    assert_parity(graph, *feeds, differing=0, relative=0, absolute=0, **options)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("inverse", [True, False])
@pytest.mark.parametrize("fill", [None, 77.6, -3, 300])
@pytest.mark.parametrize("interpolation", ["INTERP_NN", "INTERP_LINEAR"])
def test_matrices_as_an_input(interpolation, fill, inverse):
    given = {} if fill is None else {"fill_value": fill}
    shapes = [(60, 70, 3), (33, 47, 3), (20, 31, 3), (9, 600, 3), (1, 1, 3), (2, 1, 3)]

    def graph(lib, x, m):
        kind = getattr(lib.types, interpolation)
        return lib.fn.warp_affine(x, m, interp_type=kind, inverse_map=inverse, **given)

    exactly(graph, [noise(*s) for s in shapes], matrices(2, len(shapes)), layouts=["HWC", ""])


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_matrices_as_an_argument(channels):
    feed = [noise(50, 300, channels), noise(21, 40, channels), noise(3, 3, channels)]
    for inverse in (True, False):
        exactly(
            lambda lib, x, m, inverse=inverse: lib.fn.warp_affine(x, matrix=m, inverse_map=inverse),
            feed,
            matrices(2, 3, seed=channels),
            layouts=["HWC", ""],
        )


@pytest.mark.parametrize("inverse", [True, False])
def test_one_matrix_for_all(inverse):
    for matrix in ((0.9, 0.2, 3, -0.1, 1.2, -4.5), (0, 1, 0, 1, 0, 0), (2, 0, -3, 0, 0.5, 1)):
        exactly(
            lambda lib, x, matrix=matrix: lib.fn.warp_affine(
                x, matrix=matrix, inverse_map=inverse, fill_value=9
            ),
            [noise(40, 55, 3), noise(7, 300, 3)],
            layouts="HWC",
        )


@pytest.mark.parametrize("matrix", [(1, 1, 0, 1, 1, 0), (0, 0, 3.5, 0, 0, 2.5)])
def test_maps_without_an_inverse(matrix):
    def graph(lib, x, inverse=True):
        return lib.fn.warp_affine(x, matrix=matrix, inverse_map=inverse, fill_value=4)

    exactly(graph, [noise(12, 13, 3)], layouts="HWC")
    assert_both_raise(
        lambda lib, x: graph(lib, x, inverse=False),
        [noise(4, 4, 3)],
        layouts="HWC",
        match="singular",
    )


@pytest.mark.parametrize(("source", "target"), ELEMENT_TYPES)
def test_element_types(source, target):
    allowed = source == target or "float32" in (source, target)
    for interpolation, fill in itertools.product(("INTERP_NN", "INTERP_LINEAR"), (None, 77.6)):

        def graph(lib, x, m, interpolation=interpolation, fill=fill):
            given = {} if fill is None else {"fill_value": fill}
            return lib.fn.warp_affine(
                x,
                m,
                dtype=getattr(lib.types, DALI_NAME[target]),
                interp_type=getattr(lib.types, interpolation),
                **given,
            )

        feeds = [noise(19, 28, 3, dtype=source)], matrices(2, 1)
        if allowed:
            # DALI blends equal values outside of an image, too, which may change their last bit.
            assert_parity(graph, *feeds, layouts=["HWC", ""], differing=0, relative=2e-7)
        else:
            assert_both_raise(graph, *feeds, layouts=["HWC", ""], match="`dtype`")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float64", "bool"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.warp_affine(x, matrix=IDENTITY),
        [np.ones((4, 4, 1), dtype)],
        layouts="HWC",
    )


@pytest.mark.sweep
@pytest.mark.parametrize("interpolation", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("dtype", TYPES)
def test_volumes(dtype, interpolation):
    shapes = [(9, 11, 10, 1), (4, 20, 7, 2), (1, 1, 1, 1), (2, 3, 300, 1)]
    for fill in (None, 5.0):
        given = {} if fill is None else {"fill_value": fill}
        exactly(
            lambda lib, x, m, given=given: lib.fn.warp_affine(
                x, m, interp_type=getattr(lib.types, interpolation), **given
            ),
            [noise(*s, dtype=dtype) for s in shapes],
            matrices(3, len(shapes), reach=2),
            layouts=["DHWC", ""],
        )


def test_inverses_of_volumes():
    # In some numbers of an inverse the last bit is another one than DALI's.
    assert_parity(
        lambda lib, x, m: lib.fn.warp_affine(x, m, inverse_map=False, fill_value=0),
        [noise(14, 19, 23, 1, seed=k) for k in range(6)],
        matrices(3, 6, reach=2),
        layouts=["DHWC", ""],
    )


@pytest.mark.parametrize("size", [(3, 4), (3.5, 4.4), (2.5, 0.2), (80, 300)])
def test_sizes(size):
    feed = [noise(20, 30, 3), noise(9, 8, 3)]
    exactly(
        lambda lib, x, m: lib.fn.warp_affine(x, m, size=size),
        feed,
        matrices(2, 2),
        layouts=["HWC", ""],
    )
    exactly(
        lambda lib, x, m, s: lib.fn.warp_affine(x, m, size=s),
        feed,
        matrices(2, 2),
        [np.array(size, np.float32), np.array(size[::-1], np.float32)],
        layouts=["HWC", "", ""],
    )


@pytest.mark.parametrize("size", [(0, 4), (-1, 4), (4,), (4, 4, 4), 4.0])
def test_bad_sizes(size):
    assert_both_raise(
        lambda lib, x: lib.fn.warp_affine(x, matrix=IDENTITY, size=size),
        [noise(5, 5, 3)],
        layouts="HWC",
        match="`size`",
    )


def test_sequences():
    feed = [noise(4, 12, 15, 3), noise(2, 9, 40, 3)]
    exactly(
        lambda lib, x, m: lib.fn.warp_affine(x, m),
        feed,
        matrices(2, 2),
        layouts=["FHWC", ""],
    )
    each = [np.stack(matrices(2, len(x), seed=k)) for k, x in enumerate(feed)]
    for layout in ("FRC", "F**"):
        exactly(
            lambda lib, x, m: lib.fn.warp_affine(x, m, fill_value=3),
            feed,
            each,
            layouts=["FHWC", layout],
        )
        exactly(
            lambda lib, x, m: lib.fn.warp_affine(x, matrix=m, size=(8, 9)),
            feed,
            each,
            layouts=["FHWC", layout],
        )
    # Four axes without a layout are frames.
    exactly(lambda lib, x: lib.fn.warp_affine(x, matrix=(1, 0, 2, 0, 1, -1)), feed)


def test_a_matrix_for_each_frame_makes_a_sequence():
    feed = [noise(12, 15, 3), noise(9, 40, 3)]
    each = [np.stack(matrices(2, 3)), np.stack(matrices(2, 2))]
    exactly(lambda lib, x, m: lib.fn.warp_affine(x, m), feed, each, layouts=["HWC", "F**"])


def test_sequences_of_volumes():
    feed = [noise(3, 4, 12, 15, 1), noise(2, 9, 7, 5, 1)]
    exactly(
        lambda lib, x, m: lib.fn.warp_affine(x, m),
        feed,
        [np.stack(matrices(3, len(x), reach=1)) for x in feed],
        layouts=["FDHWC", "F**"],
    )


def test_numbers_of_frames_must_agree():
    for position in ("input", "argument"):

        def graph(lib, x, m, position=position):
            if position == "input":
                return lib.fn.warp_affine(x, m)
            return lib.fn.warp_affine(x, matrix=m)

        assert_both_raise(
            graph,
            [noise(4, 5, 6, 3)],
            [np.stack(matrices(2, 3))],
            layouts=["FHWC", "F**"],
            match="frames",
        )


@pytest.mark.parametrize("shape", [(6,), (3, 2), (1, 6), (9,), (3, 3), (3, 4)])
def test_bad_shapes_of_matrices(shape):
    matrix = [np.resize(np.array(IDENTITY, np.float32), shape)]
    for graph in (
        lambda lib, x, m: lib.fn.warp_affine(x, m),
        lambda lib, x, m: lib.fn.warp_affine(x, matrix=m),
    ):
        assert_both_raise(graph, [noise(5, 7, 3)], matrix, layouts=["HWC", ""], match="shape")


@pytest.mark.parametrize("numbers", [1, 5, 9, 12, 0])
def test_bad_counts_of_numbers(numbers):
    assert_both_raise(
        lambda lib, x: lib.fn.warp_affine(x, matrix=[1.0] * numbers),
        [noise(5, 7, 3)],
        layouts="HWC",
        match="`matrix`",
    )


def test_a_matrix_is_needed():
    assert_both_raise(
        lambda lib, x: lib.fn.warp_affine(x), [noise(5, 7, 3)], layouts="HWC", match="`matrix`"
    )


def test_samples_without_elements():
    for shape in ((0, 7, 3), (5, 0, 3), (4, 5, 0)):
        for interpolation in ("INTERP_NN", "INTERP_LINEAR"):
            exactly(
                lambda lib, x, kind=interpolation: lib.fn.warp_affine(
                    x, matrix=IDENTITY, interp_type=getattr(lib.types, kind)
                ),
                [np.zeros(shape, np.uint8)],
                layouts="HWC",
            )


@pytest.mark.parametrize("layout", ["CHW", "WHC", "ABC"])
def test_other_layouts_are_refused(layout):
    assert_both_raise(
        lambda lib, x: lib.fn.warp_affine(x, matrix=IDENTITY), [noise(5, 7, 3)], layouts=layout
    )


def test_transforms_are_matrices():
    def graph(lib, x, angle):
        t = lib.fn.transforms
        m = t.rotation(angle=angle, center=(20, 15))
        m = t.scale(m, scale=(1.2, 0.8))
        m = t.combine(m, t.shear(shear=(0.1, -0.2)), t.translation(offset=(3, -2)))
        return lib.fn.warp_affine(x, m, size=(30, 44), fill_value=0, inverse_map=False)

    exactly(
        graph,
        [noise(33, 41, 3, seed=k) for k in range(5)],
        [np.array(a, np.float32) for a in (0, 30, -77, 180, 12.5)],
        layouts=["HWC", ""],
    )


def test_only_one_matrix_is_taken():
    def graph(lib, x, m):
        return lib.fn.warp_affine(x, m, matrix=IDENTITY)

    feeds = [noise(5, 7, 3)], matrices(2, 1)
    run_graph("dali", graph, *feeds, layouts=["HWC", ""])
    with pytest.raises(UsageError, match="not both"):
        run_graph("headrace", graph, *feeds, layouts=["HWC", ""])


def test_a_border_is_needed():
    def graph(lib, x, **given):
        return lib.fn.warp_affine(x, matrix=IDENTITY, size=(2, 2), **given)

    empty = [np.zeros((0, 7, 3), np.uint8)]
    with pytest.raises(ShapeError, match="no border"):
        run_graph("headrace", graph, empty, layouts="HWC")
    ((output,),) = run_graph(
        "headrace", lambda lib, x: graph(lib, x, fill_value=9), empty, layouts="HWC"
    )
    assert (output.samples[0] == 9).all()


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_matrices_of_other_types(dtype):
    feeds = [noise(5, 7, 3)], [np.array([[1, 0, 1], [0, 1, 0]], dtype)]

    def graph(lib, x, m):
        return lib.fn.warp_affine(x, matrix=m)

    with pytest.raises(RuntimeError):
        run_graph("dali", graph, *feeds, layouts=["HWC", ""])
    ((output,),) = run_graph("headrace", graph, *feeds, layouts=["HWC", ""])
    np.testing.assert_array_equal(output.samples[0][:, :-1], feeds[0][0][:, 1:])
    assert_both_raise(
        lambda lib, x, m: lib.fn.warp_affine(x, m), *feeds, layouts=["HWC", ""], match="type"
    )

"""`fn.reshape`, `fn.reinterpret`, `fn.squeeze` and `fn.expand_dims` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity


def numbered(*shape: int, dtype: str = "int16") -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 120).astype(dtype).reshape(shape)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": [6, 4]},
        {"shape": [6, -1]},
        {"shape": [-1]},
        {"shape": -1},
        {"shape": 24},
        {"shape": [-2, 4]},
        {"shape": [1, 2, 3, 4]},
        {"shape": [6.0, 4.0]},
        {"shape": [4, 3, 2]},
        {"shape": [4, 3, 2], "layout": "ABC"},
        {"shape": [6, 4], "layout": "ab"},
        {"shape": [6, 4], "src_dims": [0, 1]},
        {"shape": [6, 4], "src_dims": [-1]},
        {"shape": [6, 4], "src_dims": []},
        {"layout": "CHW"},
        {"layout": ""},
        {"rel_shape": [1, 1, 1]},
        {"rel_shape": [0.5, 2, 1]},
        {"rel_shape": [0.5, -1]},
        {"rel_shape": [-1]},
        {"rel_shape": [1, 1, 0.5, -1]},
        {"rel_shape": [0.3, -1]},
        {"rel_shape": [-0.5, 1, 1]},
        {"src_dims": [2, 1, 0]},
        {"src_dims": [0, 1, 2]},
        {"src_dims": [0, 1, 2, -1], "layout": "ABCD"},
        {"src_dims": [-1, 1, 0, 2], "layout": "ABCD"},
        {"src_dims": [1, 0, 2], "rel_shape": [2, 0.5, 1]},
        {"src_dims": [2, 1, 0], "rel_shape": [0.5, 2, -1]},
    ],
)
@pytest.mark.parametrize("layout", ["HWC", ""])
def test_constants(layout, arguments):
    exact(lambda lib, x: lib.fn.reshape(x, **arguments), [numbered(2, 3, 4)] * 2, layouts=layout)


def test_source_axes_of_ragged_data():
    exact(
        lambda lib, x: (
            lib.fn.reshape(x, src_dims=[1, 0]),
            lib.fn.reshape(x, src_dims=[-1, 1, 0]),
            lib.fn.reshape(x, src_dims=[-1, 1, 0], rel_shape=[-1, 0.5, 2]),
            lib.fn.reshape(x, src_dims=[1, 0], rel_shape=[0.5, 2]),
            lib.fn.reshape(x, rel_shape=[1, 1]),
        ),
        [numbered(30, 20, 1), numbered(7, 16, 1)],
    )


def test_relative_extents_are_rounded():
    rng = np.random.default_rng(0)
    extents = rng.integers(1, 300, 300)
    factors = ((rng.integers(0, 300, 300) % extents + 0.5) / extents).astype(np.float32)
    wanted = np.floor((factors * extents.astype(np.float32)).astype(np.float64) + 0.5).astype(int)
    exact(
        lambda lib, x, f: lib.fn.reshape(x, rel_shape=f),
        [np.zeros((e, w), np.uint8) for e, w in zip(extents, wanted, strict=True)],
        [np.array([f, -1], np.float32) for f in factors],
        layouts=("", ""),
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int16"])
def test_shape_input(dtype):
    exact(
        lambda lib, x, s: (
            lib.fn.reshape(x, s),
            lib.fn.reshape(x, s, layout="XY"),
            lib.fn.reshape(x, s, src_dims=[0, 1]),
        ),
        [numbered(2, 3, 4), numbered(5, 6)[:, :5].copy().reshape(5, 5, 1)],
        [np.array([4, 6], dtype), np.array([25, 1], dtype)],
        layouts=("", ""),
    )
    exact(
        lambda lib, x, s: (lib.fn.reshape(x, s), lib.fn.reshape(x, s, layout="XYZ")),
        [numbered(2, 3, 4), numbered(5, 5, 1)],
        [np.array([4, 6, 1], dtype), np.array([25, 1, 1], dtype)],
        layouts=("HWC", ""),
    )


def test_arguments_for_each_sample():
    data = [numbered(2, 3, 4), numbered(4, 1, 6)]
    exact(
        lambda lib, x, s: lib.fn.reshape(x, shape=s),
        data,
        [np.int32([4, -1]), np.int32([-1, 3])],
        layouts=("", ""),
    )
    exact(
        lambda lib, x, s: lib.fn.reshape(x, rel_shape=s),
        data,
        [np.float32([0.5, -1]), np.float32([2, -1])],
        layouts=("", ""),
    )
    exact(
        lambda lib, x, s: lib.fn.reshape(x, shape=s, layout="ABC"),
        data,
        [np.int32([4, 3, 2]), np.int32([2, -1, 2])],
        layouts=("HWC", ""),
    )
    exact(
        lambda lib, x, s, f: (lib.fn.reshape(x, shape=s), lib.fn.reshape(x, rel_shape=f)),
        data,
        [np.int32([4, 3, 2]), np.int32([2, -1, 2])],
        [np.float32([0.5, 2, 1]), np.float32([0.5, -1, 0.5])],
        layouts=("HWC", "", ""),
    )


def test_scalars_and_empty_data():
    exact(lambda lib, x: lib.fn.reshape(x, shape=[]), [numbered(1), numbered(1)])
    exact(
        lambda lib, x: (lib.fn.reshape(x, shape=[1]), lib.fn.reshape(x, shape=[-1])),
        [np.array(3, np.int16)],
    )
    exact(
        lambda lib, x: (
            lib.fn.reshape(x, shape=[-1, 5]),
            lib.fn.reshape(x, rel_shape=[1, -1, 1]),
            lib.fn.reshape(x, rel_shape=[1, 1, 1]),
            lib.fn.reshape(x, src_dims=[1, 0]),
        ),
        [numbered(2, 0, 4)],
    )
    exact(
        lambda lib, x, s: lib.fn.reshape(x, shape=s),
        [numbered(2, 0, 4)],
        [np.int32([0, 5])],
        layouts=("", ""),
    )


def test_windows_and_mirror_images():
    exact(
        lambda lib, x: tuple(
            lib.fn.reshape(f(x), shape=[-1])
            for f in (
                lambda x: lib.fn.crop(x, crop=(5, 4)),
                lambda x: lib.fn.flip(x, vertical=1),
                lambda x: lib.fn.flip(x, vertical=1, horizontal=0),
                lambda x: lib.fn.transpose(x, perm=[2, 0, 1]),
            )
        ),
        [numbered(9, 8, 3), numbered(6, 12, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"shape": [-1, -1]},
        {"shape": [5, -1]},
        {"shape": [5, 4]},
        {"shape": [0, 4]},
        {"shape": [0, -1]},
        {"shape": []},
        {"shape": [2.5, 4]},
        {"shape": [6, 4], "layout": "abc"},
        {"shape": [6, 4], "rel_shape": [1, 1, 1]},
        {"layout": "HW"},
        {"rel_shape": [1, 1, 1, 1]},
        {"rel_shape": [1, 1, 0.5, -1, -1]},
        {"rel_shape": [1, -1, 1, 1]},
        {"rel_shape": [0.25, 4, 2]},
        {"rel_shape": [0, -1]},
        {"rel_shape": 2.0},
        {"shape": [6, 4], "src_dims": [5, 1]},
        {"shape": [6, 4], "src_dims": [-2, 1]},
        {"src_dims": [0, 0]},
        {"src_dims": [0, 3]},
        {"src_dims": [0, -2]},
        {"src_dims": []},
        {"src_dims": [0, 1, 2], "rel_shape": [1, 1]},
    ],
)
def test_errors(arguments):
    assert_both_raise(
        lambda lib, x: lib.fn.reshape(x, **arguments), [numbered(2, 3, 4)], layouts="HWC"
    )


@pytest.mark.parametrize(
    ("shape", "arguments"),
    [
        (np.float32([4, 6]), {}),
        (np.int32([4, 5]), {}),
        (np.int32([-2, -12]), {}),
        (np.int32([4, 6]), {"shape": [4, 6]}),
        (np.int32([4, 6]), {"rel_shape": [1, 1, 1]}),
        (np.int32([4, 6]), {"layout": "ABC"}),
        (np.int32([0, -1]), {}),
        (np.int32([4, 6]), {}),
    ],
)
def test_errors_of_the_shape_input(shape, arguments):
    assert_both_raise(
        lambda lib, x, s: lib.fn.reshape(x, s, **arguments),
        [numbered(2, 3, 4)],
        [shape],
        layouts=("HWC", ""),
    )


@pytest.mark.parametrize(
    "dtype", ["UINT8", "INT32", "FLOAT", "FLOAT16", "INT64", "BOOL", "FLOAT64"]
)
def test_reinterpret(dtype):
    def graph(lib, x):
        wanted = getattr(lib.types, dtype)
        return (
            lib.fn.reinterpret(x, dtype=wanted),
            lib.fn.reinterpret(x, dtype=wanted, layout="XY"),
            lib.fn.reinterpret(x, dtype=wanted, shape=[-1]),
            lib.fn.reinterpret(x, dtype=wanted, shape=[2, -1]),
            lib.fn.reinterpret(x, dtype=wanted, rel_shape=[0.5, -1]),
            lib.fn.reinterpret(x, layout="XY"),
            lib.fn.reinterpret(x, shape=[-1, 4]),
        )

    # Small numbers in every second place are harmless in every type.
    data = np.zeros((4, 8), np.int16)
    data[:, ::2] = numbered(4, 4) % 2
    exact(graph, [data, data[:, :4].copy()], layouts="AB")


def test_reinterpret_as_source_axes_ask():
    exact(
        lambda lib, x: (
            lib.fn.reinterpret(x, src_dims=[1, 0], dtype=lib.types.INT32, layout="YX"),
            lib.fn.reinterpret(x, dtype=lib.types.INT32, rel_shape=[1, 0.5]),
        ),
        [numbered(2, 4)],
        layouts="AB",
    )


def test_errors_of_reinterpret():
    for arguments in ({}, {"dtype": "INT32"}, {"dtype": "UINT8", "shape": [4, 4]}):
        assert_both_raise(
            lambda lib, x, arguments=arguments: lib.fn.reinterpret(
                x,
                **{k: getattr(lib.types, v) if k == "dtype" else v for k, v in arguments.items()},
            ),
            [numbered(2, 3)],
        )


@pytest.mark.parametrize(
    "arguments",
    [
        {"axes": [0]},
        {"axes": 0},
        {"axes": [0, 2]},
        {"axes": [2, 0]},
        {"axes": []},
        {"axis_names": "A"},
        {"axis_names": "CA"},
        {"axis_names": ""},
    ],
)
def test_squeeze(arguments):
    exact(
        lambda lib, x: lib.fn.squeeze(x, **arguments),
        [numbered(1, 2, 1), numbered(1, 5, 1)],
        layouts="ABC",
    )


def test_squeeze_to_a_scalar_and_of_nothing():
    exact(lambda lib, x: lib.fn.squeeze(x, axes=[0, 1]), [numbered(1, 1)], layouts="AB")
    exact(lambda lib, x: lib.fn.squeeze(x, axes=[0]), [numbered(0, 0, 1)], layouts="ABC")
    exact(lambda lib, x: lib.fn.squeeze(x, axes=[1]), [numbered(3, 1)])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"axes": [1]},
        {"axes": [0, 0]},
        {"axes": [0], "axis_names": "A"},
        {"axis_names": "D"},
        {"axis_names": "AA"},
    ],
)
def test_errors_of_squeeze(arguments):
    assert_both_raise(
        lambda lib, x: lib.fn.squeeze(x, **arguments), [numbered(1, 2, 1)], layouts="ABC"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"axes": [0]},
        {"axes": []},
        {"axes": 0, "new_axis_names": "C"},
        {"axes": [0], "new_axis_names": "C"},
        {"axes": [2], "new_axis_names": "C"},
        {"axes": [0, 1, 3], "new_axis_names": "XYZ"},
        {"axes": [2, 0], "new_axis_names": "XY"},
        {"axes": [3, 2], "new_axis_names": "XY"},
        {"axes": [0], "new_axis_names": ""},
        {"axes": [], "new_axis_names": ""},
    ],
)
def test_expand_dims(arguments):
    exact(
        lambda lib, x: lib.fn.expand_dims(x, **arguments),
        [numbered(2, 3), numbered(4, 1)],
        layouts="AB",
    )


def test_expand_dims_of_scalars():
    exact(
        lambda lib, x: (
            lib.fn.expand_dims(x, axes=[0]),
            lib.fn.expand_dims(x, axes=[0], new_axis_names="C"),
            lib.fn.expand_dims(x, axes=[0], new_axis_names=""),
        ),
        [np.array(3, np.int16)],
    )


@pytest.mark.parametrize(
    ("layout", "arguments"),
    [
        ("AB", {"axes": [3], "new_axis_names": "C"}),
        ("AB", {"axes": [-1], "new_axis_names": "C"}),
        ("AB", {"axes": [0, 0], "new_axis_names": "CD"}),
        ("AB", {"axes": [0], "new_axis_names": "CD"}),
        ("", {"axes": [0], "new_axis_names": "C"}),
        ("", {"axes": [0], "new_axis_names": ""}),
        ("", {"axes": [], "new_axis_names": ""}),
        ("AB", {"axes": [0, 4], "new_axis_names": "XY"}),
        ("AB", {}),
    ],
)
def test_errors_of_expand_dims(layout, arguments):
    assert_both_raise(
        lambda lib, x: lib.fn.expand_dims(x, **arguments), [numbered(2, 3)], layouts=layout
    )


@pytest.mark.parametrize("name", ["reshape", "reinterpret"])
def test_no_factors_at_all_are_an_error(name):
    assert_both_raise(
        lambda lib, x: getattr(lib.fn, name)(x, rel_shape=[]),
        [np.array(3, np.int16)],
        match="rel_shape",
    )

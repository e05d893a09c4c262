"""Windows of whole batches: sample by sample they are those of the CPU, errors included."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import OperatorError, PenstockError, Where
from penstock.executor.gpu_context import GpuContext
from penstock.operators.operator import Operator
from penstock.operators.schema import Spec
from penstock.operators.window import (
    CROP_ARGS,
    OUT_OF_BOUNDS_ARGS,
    SLICE_ARGS,
    CropWindow,
    OutOfBounds,
    SliceWindow,
)
from penstock.operators.window_arithmetic import round_each, round_half_away
from penstock.operators.window_batch import crop_windows, settled_windows, slice_windows
from penstock.types import DALIDataType as T

ARGS = {a.name: a for a in (*CROP_ARGS, *SLICE_ARGS, *OUT_OF_BOUNDS_ARGS)}
TYPES = {"i": T.INT32, "f": T.FLOAT}

reals = st.one_of(
    st.floats(-2, 3, width=32),
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, float("nan"), float("inf")]),
)
fractions = st.one_of(st.floats(0, 1, width=32), st.sampled_from([0.0, 0.5, 1.0]))
integers = st.integers(-3, 14)
extents_of = st.lists(st.integers(0, 12), min_size=3, max_size=3)
policies = st.sampled_from(["error", "pad", "trim_to_shape", "edge", "wrap"])


def made(arguments: dict[str, Any], size: int) -> tuple[Operator, GpuContext]:
    """An operator and its context; lists of arrays are per-sample arguments."""
    constants = {name: arg.default for name, arg in ARGS.items()}
    tensors = {}
    for name, value in arguments.items():
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            tensors[name] = (SimpleNamespace(rows=value), ARGS[name].type.sample)
            constants[name] = None
        else:
            constants[name] = ARGS[name].type.constant(value)
    given = {name: batch.rows[0] for name, (batch, _) in tensors.items()}
    specs = {name: Spec(TYPES[row.dtype.kind], row.ndim) for name, row in given.items()}
    node = SimpleNamespace(where=lambda index, source: Where("cut", sample=index))
    context = GpuContext(node, SimpleNamespace(**constants), tensors, None, size)
    return Operator(dict(constants), specs), context


def outcome(do: Any) -> Any:
    """The windows that `do` returns, or class, text and sample of the error it raises."""
    return outcome_of(
        lambda: [tuple(tuple(np.asarray(p).tolist()) for p in window) for window in do()]
    )


def outcome_of(do: Any) -> Any:
    """What `do` returns, or class, text and sample of the error it raises."""
    try:
        return do()
    except OperatorError as error:
        cause = error.__cause__
        return type(cause), str(cause), error.where.sample


def each_sample(context: GpuContext, do: Any) -> Any:
    """`do` of the number and the arguments of each sample."""
    columns = {name: context.values(name) for name in ARGS}
    found = []
    for index in range(context.size):
        args = SimpleNamespace(**{name: values[index] for name, values in columns.items()})
        try:
            found.append(do(index, args))
        except PenstockError as error:
            raise context.located(error, index) from error
    return found


def compare(op: Operator, context: GpuContext, windows: Any, extents: np.ndarray, *rows: Any):
    """First the windows, then what becomes of them: at once and one by one."""
    sizes = [tuple(s) for s in extents.tolist()]

    def of_sample(index, args):
        return windows(args, sizes[index], *(values[index] for values in rows))

    find = slice_windows if isinstance(windows, SliceWindow) else crop_windows
    expected = outcome(lambda: each_sample(context, of_sample))
    got = outcome(lambda: list(zip(*find(windows, context, extents, *rows), strict=True)))
    assert got == expected
    if isinstance(got, tuple):
        return
    bounds = OutOfBounds(op)
    anchors, shapes = (np.array([w[k] for w in got], np.int64) for k in (0, 1))

    def settled(index, _):
        return bounds.settle(*got[index], sizes[index])

    def settled_at_once():
        *found, outside = settled_windows(bounds, context, anchors, shapes, extents)
        return [(*w, not o) for *w, o in zip(*found, outside, strict=True)]

    def plain(windows):
        return [(tuple(a), tuple(s), bool(i)) for a, s, i in windows]

    expected = outcome_of(lambda: plain(each_sample(context, settled)))
    assert outcome_of(lambda: plain(settled_at_once())) == expected


def compare_crops(arguments, extents, policy):
    op, context = made({**arguments, "out_of_bounds_policy": policy}, len(extents))
    compare(op, context, CropWindow(op, "HWC"), np.array(extents, np.int64))


def compare_slices(arguments, extents, policy, *rows):
    op, context = made({**arguments, "out_of_bounds_policy": policy}, len(extents))
    specs = [Spec(TYPES[values[0].dtype.kind], 1) for values in rows]
    windows = SliceWindow(op, Spec(T.UINT8, 3, "HWC"), *specs)
    compare(op, context, windows, np.array(extents, np.int64), *rows)


def per_sample(draw: Any, count: int, values: Any, length: int, dtype: Any) -> list[np.ndarray]:
    """A value a sample: vectors of `length`, or scalars where that is 0."""
    if not length:
        return [np.array(draw(values), dtype) for _ in range(count)]
    return [
        np.array(draw(st.lists(values, min_size=length, max_size=length)), dtype)
        for _ in range(count)
    ]


@st.composite
def crops(draw):
    count = draw(st.integers(1, 4))
    extents = draw(st.lists(extents_of, min_size=count, max_size=count))
    arguments: dict[str, Any] = {"rounding": draw(st.sampled_from(["round", "truncate"]))}
    sizes = st.one_of(reals, st.floats(-2, 14, width=32))
    usual = st.one_of(fractions, reals)
    for name in ("crop_pos_x", "crop_pos_y"):
        if draw(st.booleans()):
            arguments[name] = draw(usual)
        elif draw(st.booleans()):
            arguments[name] = per_sample(draw, count, usual, 0, np.float32)
    way = draw(st.integers(0, 3))
    if way == 0:
        arguments["crop"] = draw(st.lists(st.integers(0, 14), min_size=2, max_size=3))
    elif way == 1:
        arguments["crop"] = per_sample(draw, count, sizes, draw(st.integers(2, 3)), np.float32)
    elif way == 2:
        arguments["crop"] = [
            np.array(draw(st.lists(sizes, min_size=2, max_size=4)), np.float32)
            for _ in range(count)
        ]
    else:
        arguments["crop_h"] = per_sample(draw, count, sizes, 0, np.float32)
        arguments["crop_w"] = draw(st.integers(0, 14))
    return arguments, extents, draw(policies)


@settings(max_examples=300, deadline=None)
@given(crops())
def test_crops(case):
    compare_crops(*case)


@st.composite
def named_slices(draw):
    count = draw(st.integers(1, 4))
    extents = draw(st.lists(extents_of, min_size=count, max_size=count))
    arguments: dict[str, Any] = {}
    length = draw(st.integers(1, 3))
    chosen = [a - draw(st.sampled_from([0, 3])) for a in draw(st.permutations(range(3)))][:length]
    way = draw(st.integers(0, 3))
    if way == 0:
        arguments["axes"] = chosen
    elif way == 1:
        arguments["axes"] = [np.array(chosen, np.int32)] * count
    elif way == 2:
        arguments["axes"] = [
            np.array(draw(st.permutations([0, 1, 2, -1]))[:length], np.int32) for _ in range(count)
        ]
    else:
        arguments["axis_names"] = "HWC"[:length]
    for names in (("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")):
        name = draw(st.sampled_from([*names, ""] if arguments.keys() & {"start"} else names))
        if not name:
            continue
        values = reals if name.startswith("rel_") else integers
        dtype = np.float32 if name.startswith("rel_") else np.int32
        size = draw(st.sampled_from([length, 1, length, length % 3 + 1]))
        kind = draw(st.integers(0, 3))
        if kind <= 1:
            arguments[name] = draw(st.lists(values, min_size=size, max_size=size))
        elif kind == 2:
            arguments[name] = per_sample(draw, count, values, size, dtype)
        else:
            arguments[name] = [
                np.array(draw(st.lists(values, min_size=1, max_size=length)), dtype)
                for _ in range(count)
            ]
    return arguments, extents, draw(policies)


@settings(max_examples=400, deadline=None)
@given(named_slices())
@example(({"start": (1 << 70,), "axes": (0,), "end": (1 << 71,)}, [[4, 5, 3]], "pad"))
def test_named_slices(case):
    if any(abs(v) > 1 << 62 for v in case[0].get("start", ()) if isinstance(v, int)):
        op, context = made(case[0], 1)
        windows = SliceWindow(op, Spec(T.UINT8, 3, "HWC"))
        _, shapes = slice_windows(windows, context, np.array(case[1]))
        assert shapes.tolist() == [[0, 5, 3]]  # both lie beyond all data
        return
    compare_slices(*case)


@st.composite
def positional_slices(draw):
    count = draw(st.integers(1, 4))
    extents = draw(st.lists(extents_of, min_size=count, max_size=count))
    dtype, values = draw(st.sampled_from([(np.float32, reals), (np.int32, integers)]))
    arguments = {
        "axes": draw(st.sampled_from([(0, 1), (1,), (2, 0), ()])),
        "normalized_anchor": draw(st.booleans()),
        "normalized_shape": draw(st.booleans()),
    }
    length = len(arguments["axes"]) or 3
    if draw(st.integers(0, 9)) == 0:
        length += 1
    rows = [per_sample(draw, count, values, length, dtype) for _ in range(2)]
    if draw(st.integers(0, 9)) == 0:
        rows[0][-1] = rows[0][-1][:-1]
    return arguments, extents, draw(policies), rows


@settings(max_examples=300, deadline=None)
@given(positional_slices())
def test_positional_slices(case):
    arguments, extents, policy, rows = case
    compare_slices(arguments, extents, policy, *rows)


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-9, 9).map(lambda n: n / 2))))
def test_rounding(values):
    assert round_each(np.array(values, np.float64)).tolist() == list(map(round_half_away, values))


def test_axes_that_do_not_exist_name_a_sample():
    op, context = made({"start": (1,), "axes": [np.array([5], np.int32)] * 2}, 2)
    windows = SliceWindow(op, Spec(T.UINT8, 3))
    with pytest.raises(IndexError, match=r"(?s)`axes` has 5.*at sample 0"):
        slice_windows(windows, context, np.array([[4, 4, 3]] * 2))

"""Windows of whole batches are those of each sample alone, errors included."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.errors import ErrorLocation, HeadraceError, OperatorError
from headrace.operators.support.batch_context import BatchContext
from headrace.operators.support.operator import Operator
from headrace.operators.support.planning import (
    Planned,
    SampleContexts,
    Samples,
    plan_batch,
    sample_of,
)
from headrace.operators.support.schema import Spec
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    OUT_OF_BOUNDS_ARGS,
    SLICE_ARGS,
    CropWindow,
    OutOfBounds,
    SliceWindow,
)
from headrace.operators.support.windows.arithmetic import round_each
from headrace.types import DALIDataType as T

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


def made(arguments: dict[str, Any], size: int) -> tuple[Operator, BatchContext]:
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
    node = SimpleNamespace(where=lambda index, *_: ErrorLocation("cut", sample=index))
    context = BatchContext(node, SimpleNamespace(**constants), tensors, None, range(size))
    return Operator(dict(constants), specs), context


def outcome_of(do: Any) -> Any:
    """What `do` returns, or class, text and sample of the error it raises."""
    try:
        return do()
    except OperatorError as error:
        cause = error.__cause__
        return type(cause), str(cause), error.where.sample


class _Cut:
    """Plans windows as `crop` and `slice` do."""

    plans_by_shape = False

    def __init__(self, op: Operator, windows: Any) -> None:
        self._windows = windows
        self._bounds = OutOfBounds(op)
        self.tensor_args = op.tensor_args

    def plan(self, c: Any, data: Samples, *positional: Samples) -> Planned:
        rows = [each.rows for each in positional]
        found = self._windows.plan(c, data.shapes, *rows)
        anchors, shapes, outside = self._bounds.plan(*found, data.shapes)
        return Planned(shapes, (anchors, outside))


def compare(op: Operator, context: BatchContext, windows: Any, extents: np.ndarray, *rows: Any):
    """All windows at once and one by one."""
    cut = _Cut(op, windows)
    inputs = [Samples(shapes=extents), *(Samples(each) for each in rows)]

    def listed(planned: Planned) -> Any:
        return planned.shapes[0].tolist(), *(each.tolist() for each in planned.table)

    def one_by_one() -> Any:
        alone, found = SampleContexts(cut, context), []
        for k in range(context.size):
            try:
                planned = cut.plan(alone.context(k), *(sample_of(each, k) for each in inputs))
            except HeadraceError as error:
                raise context.located(error, k) from error
            found.append(listed(planned))
        return tuple([row for (row,) in column] for column in zip(*found, strict=True))

    assert outcome_of(lambda: listed(plan_batch(cut, context, *inputs))) == outcome_of(one_by_one)


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
@example(
    (
        {
            "axes": [0, 1, 2],
            "rel_start": [0.0, 0.9846302270889282, 0.0],  # as float32, times 3, it is larger
            "rel_shape": [np.array([v], np.float32) for v in (0, 0, np.nan)],
        },
        [[0, 0, 0], [0, 3, 0], [0, 0, 0]],
        "error",
    )
)
@example(({"start": (1 << 70,), "axes": (0,), "end": (1 << 71,)}, [[4, 5, 3]], "pad"))
def test_named_slices(case):
    if any(abs(v) > 1 << 62 for v in case[0].get("start", ()) if isinstance(v, int)):
        op, context = made(case[0], 1)
        windows = SliceWindow(op, Spec(T.UINT8, 3, "HWC"))
        _, shapes = windows.plan(context, np.array(case[1]))
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
    nearest = [int(Decimal(v).quantize(0, ROUND_HALF_UP)) for v in values]
    assert round_each(np.array(values, np.float64)).tolist() == nearest


def test_axes_that_do_not_exist_name_a_sample():
    op, context = made({"start": (1,), "axes": [np.array([5], np.int32)] * 2}, 2)
    windows = SliceWindow(op, Spec(T.UINT8, 3))
    with pytest.raises(IndexError, match=r"(?s)axis 5 of `axes`.*at sample 0"):
        plan_batch(_Cut(op, windows), context, Samples(shapes=np.array([[4, 4, 3]] * 2)))


def test_a_fault_of_the_operator_is_not_hidden_by_planning_each_alone():
    class FailsForTwo(_Cut):
        def plan(self, c, *inputs):
            if c.size > 1:
                raise TypeError("two samples")
            return Planned(inputs[0].shapes)

    op, context = made({}, 2)
    with pytest.raises(TypeError, match="two samples"):
        plan_batch(FailsForTwo(op, None), context, Samples(shapes=np.array([[4, 4, 3]] * 2)))

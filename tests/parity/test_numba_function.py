"""Functions compiled by Numba beside DALI's: values, shapes, layouts, errors."""

from __future__ import annotations

import numpy as np
import nvidia.dali as dali
import pytest
from numba.core.errors import TypingError
from nvidia.dali.plugin import numba as dali_numba

import headrace
from headrace.plugin import numba as headrace_numba

LIBRARIES = {"dali": (dali, dali_numba), "headrace": (headrace, headrace_numba)}
RAGGED = [np.arange(n * 3, dtype=np.int32).reshape(n, 3) for n in (2, 4, 1)]


def increment(out, x):
    out[:] = x[:] + 1


def transpose(out, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]


def transposed_shapes(outs, ins):
    for k in range(len(outs[0])):
        outs[0][k][0] = ins[0][k][1]
        outs[0][k][1] = ins[0][k][0]


def increment_all(outs, xs):
    for out, x in zip(outs, xs):  # noqa: B905 - Numba has no `strict`
        out[:] = x[:] + 1


def sum_and_difference(a, b, x, y):
    a[:] = x[:] + y[:]
    b[:] = x[:] - y[:]


def run(library, function, *, inputs=1, former=False, as_class=False, runs=2, **options):
    lib, plugin = LIBRARIES[library]
    kind = [lib.types.INT32]
    given = {
        "run_fn": function,
        "in_types": kind * inputs,
        "ins_ndim": [2] * inputs,
        "out_types": kind * inputs,
        "outs_ndim": [2] * inputs,
        **{
            k: [getattr(lib.types, t) for t in v] if "types" in k else v for k, v in options.items()
        },
    }

    @lib.pipeline_def(batch_size=len(RAGGED), num_threads=2, device_id=None)
    def pipe():
        edges = [lib.fn.external_source(source=lambda: RAGGED, layout="HW") for _ in range(inputs)]
        if as_class:
            return plugin.NumbaFunction(**given)(*edges)
        module = plugin.fn.experimental if former else plugin.fn
        found = module.numba_function(*edges, **given)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    made = pipe()
    made.build()
    for _ in range(runs):
        outputs = made.run()
    return [
        ([np.array(batch[k]).tolist() for k in range(len(batch))], int(batch.dtype), batch.layout())
        for batch in outputs
    ]


@pytest.mark.nightly  # DALI compiles for seconds
def test_values():
    for function, options in (
        (increment, {}),
        (increment, {"former": True}),
        (increment, {"as_class": True}),
        (transpose, {"setup_fn": transposed_shapes}),
        (increment_all, {"batch_processing": True}),
        (sum_and_difference, {"inputs": 2}),
    ):
        theirs, ours = (run(library, function, **options) for library in LIBRARIES)
        assert theirs == ours, (function, options)


@pytest.mark.nightly  # DALI compiles for seconds
def test_errors():
    for options, own in (
        ({"in_types": ["UINT8"]}, TypeError),
        ({"ins_ndim": [3]}, ValueError),
        ({"in_types": ["INT32"] * 2, "ins_ndim": [2, 2]}, ValueError),
        ({"out_types": ["INT32"] * 2}, ValueError),
        ({"out_types": ["FLOAT16"]}, TypeError),
        ({"outs_ndim": 2}, TypeError),
    ):
        with pytest.raises((RuntimeError, AssertionError, TypeError, TypingError)):
            run("dali", increment, **options)
        with pytest.raises(own) as raised:
            run("headrace", increment, **options)
        assert "numba_function" in str(raised.value) or "expected a list" in str(raised.value)


def divide(out, x):
    out[0, 0] = x[0, 0] // (x.shape[0] - 4)


def test_what_dali_gets_wrong():
    """It prints errors of functions, and gives outputs the type of the input, whatever is said."""
    with pytest.raises(ZeroDivisionError, match="at sample 1 of the batch"):
        run("headrace", divide)
    ((values, kind, _),) = run("headrace", increment, out_types=["FLOAT"])
    assert kind == int(headrace.types.FLOAT)
    assert values == [(x + 1.0).tolist() for x in RAGGED]

"""`headrace.math`: as many functions as the table of operations has, with the same parameters."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from headrace import fn, math, types
from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.pipeline import Pipeline

TABLE = {o.math_name: o for o in OPERATIONS.values() if o.math_name}


def computed(function, *values):
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(function(*(types.Constant(np.float32(v), device="cpu") for v in values)))
    pipe.build()
    (batch,) = pipe.run()
    return np.array(batch.at(0))


def test_the_same_as_in_the_table():
    assert set(math.__all__) == set(TABLE)
    for name, operation in TABLE.items():
        assert tuple(inspect.signature(getattr(math, name)).parameters) == operation.parameters


@pytest.mark.parametrize("name", sorted(TABLE))
def test_computes_what_numpy_does(name):
    values = [np.float32([0.25, 0.5, 0.75]), np.float32([0.5, 0.25, 1]), np.float32([1, 2, 3])]
    if name == "acosh":
        values[0] = values[0] + 1
    values = values[: TABLE[name].arity]
    peers = {
        "rsqrt": lambda a: 1 / np.sqrt(a),
        "fpow": np.power,
        "clamp": np.clip,
        "min": np.minimum,
        "max": np.maximum,
        **{n: getattr(np, n.replace("a", "arc", 1)) for n in TABLE if n[0] == "a" and n != "abs"},
    }
    want = peers.get(name, getattr(np, name, None))(*values)
    np.testing.assert_allclose(computed(getattr(math, name), *values), want, rtol=1e-6)


def test_operands_by_name():
    np.testing.assert_array_equal(
        computed(lambda x: math.clamp(x, hi=2, lo=1), [0, 1.5, 9]), np.float32([1, 1.5, 2])
    )


def test_errors():
    with pytest.raises(ArgumentValueError, match="constants only"):
        math.sqrt(4.0)
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        x = fn.constant(fdata=1.0)
        with pytest.raises(ArgumentTypeError, match="NoneType"):
            math.max(x, None)

"""Wherever an element type is asked for, what other libraries call it will do."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn, ops, types
from headrace.operators import Input, SampleOperator, Spec, operator
from headrace.operators.support import registry
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.registry import _schemas

ONE = np.ones(1, np.int32)


def output(graph, **options):
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, seed=1, **options)
    with pipe:
        pipe.set_outputs(graph())
    return pipe.run()[0]


def reinterpreted(tensor, dtype):
    tensor.reinterpret(dtype)
    return tensor.dtype


@pytest.fixture(scope="module", autouse=True)
def _operators():
    @operator(
        "test_halves",
        inputs=Input(dtypes=(np.int32,)),
        infer=lambda data: Spec("float16", 1),
    )
    def halves(xp, data):
        """Its input as halves."""
        return data.astype(xp.float16)

    @operator("test_bytes", inputs=Input())
    class Bytes(SampleOperator):
        """Its input as bytes."""

        def infer(self, data):
            return Spec(np.uint8, 1)

        def cpu(self, c, data):
            return data.astype(np.uint8)

    yield
    for name in ("test_halves", "test_bytes"):
        _schemas.pop(name)
        for module in (fn, ndd):
            vars(module).pop(name, None)


PLACES = {
    "function": lambda d: output(lambda: fn.cast(ONE, dtype=d)).dtype,
    "class": lambda d: output(lambda: ops.Cast(dtype=d)(ONE)).dtype,
    "call of an instance": lambda d: output(lambda: ops.Cast()(ONE, dtype=d)).dtype,
    "random numbers": lambda d: output(lambda: fn.random.uniform(dtype=d)).dtype,
    "constant operator": lambda d: output(lambda: fn.constant(idata=[1], dtype=d)).dtype,
    "scalar constant": lambda d: types.Constant(1, dtype=d).dtype,
    "constant node": lambda d: output(lambda: types.Constant([1], dtype=d)).dtype,
    "shape of a node": lambda d: output(lambda: fn.constant(idata=[1]).shape(dtype=d)).dtype,
    "tensor": lambda d: reinterpreted(output(lambda: fn.constant(idata=[1]))[0], d),
    "batch": lambda d: reinterpreted(output(lambda: fn.constant(idata=[1])), d),
    "dynamic function": lambda d: ndd.cast(ONE, dtype=d).dtype.type_id,
    "dynamic tensor": lambda d: ndd.tensor(ONE, dtype=d).dtype.type_id,
    "dynamic batch": lambda d: ndd.batch([ONE], dtype=d).dtype.type_id,
    "dynamic source": lambda d: ndd.ExternalSource(lambda: ONE, dtype=d)().dtype.type_id,
}

GIVEN = [np.float32, np.dtype("f4"), "float32", float, ndd.float32, 9]


@pytest.mark.sweep
@pytest.mark.parametrize("given", GIVEN, ids=repr)
@pytest.mark.parametrize("place", PLACES)
def test_places(place, given):
    assert PLACES[place](given) == types.FLOAT


@pytest.mark.parametrize("place", PLACES)
def test_places_take_pytorchs_types(place):
    torch = pytest.importorskip("torch")
    assert PLACES[place](torch.float32) == types.FLOAT


@pytest.mark.parametrize("place", PLACES)
def test_places_say_what_they_take(place):
    with pytest.raises((TypeError, ValueError), match="float23") as caught:
        PLACES[place]("float23")
    assert isinstance(caught.value, errors.HeadraceError)
    assert "FLOAT16" in str(caught.value) or "f16" in str(caught.value)


@pytest.mark.parametrize("given", [np.int32, "int32", [np.dtype("i4")]], ids=repr)
def test_what_data_must_have(given):
    kinds = given if isinstance(given, list) else [given]
    batch = output(lambda: fn.external_source(lambda: [ONE], dtype=kinds[0]), output_dtype=given)
    assert batch.dtype == types.INT32
    with pytest.raises(TypeError, match="uint8"):
        output(lambda: fn.external_source(lambda: [ONE], dtype=np.uint8))
    with pytest.raises(TypeError, match="FLOAT"):
        output(lambda: fn.constant(idata=[1]), output_dtype=[float])


def test_declarations_of_users():
    assert output(lambda: fn.test_halves(ONE)).dtype == types.FLOAT16
    assert output(lambda: fn.test_bytes(ONE)).dtype is types.UINT8
    assert ndd.test_bytes(ONE).dtype is ndd.uint8
    with pytest.raises(TypeError, match="INT32"):
        output(lambda: fn.test_halves(np.ones(1, np.float32)))


def test_every_argument_that_is_an_element_type_is_declared_as_one():
    found = {
        f"{schema.name}({arg.name})": arg.type
        for schema in registry.all_schemas()
        for arg in schema.args.values()
        if arg.name.endswith("dtype") and schema.cls.__module__.startswith("headrace.operators")
    }
    assert len(found) > 30
    lists = {name for name, kind in found.items() if kind is not DataTypeArg}
    assert lists == {"external_source(dtype)"}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dtype", lambda: fn.cast(ONE, dtype=10**400)),
        ("interp_type", lambda: fn.resize(ONE, size=3, interp_type=10**400)),
        ("size", lambda: fn.resize(ONE, size=10**5000)),
    ],
)
def test_numbers_beyond_floats_are_told_by_the_argument(name, call):
    with pytest.raises(errors.HeadraceError, match=rf"(?s)`{name}`.* in "):
        output(call)

"""Signatures made from declarations."""

from __future__ import annotations

import inspect

import pytest

from headrace.operators.support.argument_types import (
    FloatListArg,
    IntArg,
    InterpTypeArg,
    ObjectArg,
    StringArg,
)
from headrace.operators.support.operator import Operator
from headrace.operators.support.schema import REQUIRED, Arg, Input, OpSchema
from headrace.operators.support.signature import (
    call_signature_for,
    class_name,
    default_text,
    signature_for,
)
from headrace.types import DALIInterpType

DATA = (Input(),)
ARGS = (
    Arg("crop", FloatListArg, None, "Size.", per_sample=True),
    Arg("count", IntArg, REQUIRED, "How many.", per_sample=True),
    Arg("filter", InterpTypeArg, DALIInterpType.INTERP_LINEAR, "Filter."),
    Arg("function", ObjectArg, None, "Anything."),
    Arg("mode", StringArg, "it's", "Mode."),
)


def schema(name="images.crop_it", inputs=DATA, args=ARGS, **traits) -> OpSchema:
    return OpSchema(
        name=name,
        cls=Operator,
        doc="Crop.",
        inputs=inputs,
        args={a.name: a for a in args},
        **traits,
    )


def test_function():
    signature = signature_for(schema())
    assert str(signature) == (
        "(data: DataNode | TensorLike, /, *, count: int | DataNode, "
        "crop: float | Sequence[float] | DataNode | None = None, "
        "filter: DALIInterpType | None = <DALIInterpType.INTERP_LINEAR: 1>, "
        'function: object = None, mode: str | None = "it\'s", '
        "device: str | None = None, name: str | None = None) -> DataNode"
    )


def test_function_binds_what_the_function_takes():
    signature = signature_for(schema())
    bound = signature.bind("edge", count=3, mode="a")
    bound.apply_defaults()
    assert bound.arguments["filter"] is DALIInterpType.INTERP_LINEAR
    with pytest.raises(TypeError, match="count"):
        signature.bind("edge")
    with pytest.raises(TypeError):
        signature.bind(data="edge", count=3)


def test_class_takes_arguments_and_its_instances_inputs():
    constructor = signature_for(schema(), "ops")
    assert "data" not in constructor.parameters
    assert constructor.parameters["count"].default is None
    assert str(constructor.return_annotation) == "None"
    call = call_signature_for(schema())
    assert next(iter(call.parameters)) == "data"
    assert "name" not in call.parameters
    assert str(call.parameters["count"].annotation) == "int | DataNode | None"


def test_optional_and_variadic_inputs():
    optional = signature_for(schema(inputs=(Input("like", optional=True),)))
    assert optional.parameters["like"].default is None
    variadic = signature_for(schema(inputs=(Input("first"), Input("others")), variadic=True))
    kinds = [(p.name, p.kind) for p in variadic.parameters.values()][:3]
    assert kinds == [
        ("first", inspect.Parameter.POSITIONAL_ONLY),
        ("others", inspect.Parameter.POSITIONAL_ONLY),
        ("inputs", inspect.Parameter.VAR_POSITIONAL),
    ]


def test_arguments_by_position():
    signature = signature_for(schema(inputs=(), positional=("function", "mode")))
    bound = signature.bind(print, "a", count=1)
    assert bound.arguments == {"function": print, "mode": "a", "count": 1}


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [(0, "None"), (1, "DataNode"), (3, "list[DataNode]"), (lambda args: 2, "Any")],
    ids=["none", "one", "several", "by-arguments"],
)
def test_return(outputs, expected):
    assert str(signature_for(schema(num_outputs=outputs)).return_annotation) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        ("HWC", '"HWC"'),
        ("it's", '"it\'s"'),
        (DALIInterpType.INTERP_NN, "DALIInterpType.INTERP_NN"),
        ([1, 2.0], "[1, 2.0]"),
        ((1,), "(1,)"),
        ((1, "a"), '(1, "a")'),
    ],
    ids=str,
)
def test_default_text_is_python(value, text):
    assert default_text(value) == text
    assert eval(text, {"DALIInterpType": DALIInterpType}) == value


def test_class_name():
    assert class_name(schema("crop_mirror_normalize")) == "CropMirrorNormalize"
    assert class_name(schema("decoders.image")) == "Image"
    assert class_name(schema("readers.coco", class_name="COCO")) == "COCO"

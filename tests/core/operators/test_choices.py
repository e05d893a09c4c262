"""Arguments that have few values, and those that go together: declarations are what is checked."""

from __future__ import annotations

import pytest

from headrace.errors import ArgumentChoiceError, MissingArgumentError, MisusedArgumentError
from headrace.experimental.dynamic.arguments import converted
from headrace.operators.support import registry
from headrace.operators.support.rules import check_choice, check_declared


def others(arg):
    """Values of the type of `arg`, with none of its choices among them."""
    kind = type(arg.choices[0])
    values = ["nonsense"] if kind is str else [17] if kind is int else list(kind)
    return [value for value in values if value not in arg.choices]


def test_pipelines_and_dynamic_mode_refuse_what_is_no_choice():
    seen = set()
    for schema in registry.all_schemas():
        for arg in schema.args.values():
            for value in others(arg) if arg.choices else ():
                seen.add(arg.name)
                with pytest.raises(ArgumentChoiceError, match=f"`{arg.name}`.* is not one of"):
                    check_choice(arg, value)
                with pytest.raises(ArgumentChoiceError, match=f"`{arg.name}`.* is not one of"):
                    converted(schema, arg, value)
    assert {"border", "dtype", "image_type", "interp_type", "mode", "rounding"} <= seen


def test_rules_name_arguments_and_inputs():
    for schema in registry.all_schemas():
        known = {*schema.args, *(i.name for i in schema.inputs)}
        for rule in schema.rules:
            assert known >= {n for name in rule.names for n in name.split()}, schema.name


def check(name, inputs=1, **args):
    check_declared(registry.find(name), args, {}, inputs)


@pytest.mark.parametrize(
    ("name", "inputs", "args", "words"),
    [
        ("crop", 1, {"crop_h": 3.0}, "`crop_h` and `crop_w` are given together. Got `crop_h`."),
        ("crop", 1, {"crop_d": 3.0}, "`crop_d` needs `crop_h` and `crop_w`. Got `crop_d`."),
        ("tensor_resize", 1, {}, "Exactly one of `sizes` and `scales` is given. Got none of them."),
        ("reshape", 2, {"shape": (3,)}, "one of `shape_input`, `shape` and `rel_shape` is given."),
        ("reshape", 1, {}, "There is nothing to do. At least one of .*Got none of them."),
        ("coord_transform", 1, {"MT": (1.0,), "T": (1.0,)}, "At most one of `MT` and `M` or `T`"),
    ],
)
def test_what_does_not_go_together_is_said(name, inputs, args, words):
    with pytest.raises(MisusedArgumentError, match=words):
        check(name, inputs, **args)


def test_what_is_missing_is_said():
    with pytest.raises(MissingArgumentError, match=r"`angle` is missing. It is: "):
        check("rotate")
    check("rotate", angle=1.0)
    check_declared(registry.find("rotate"), {}, {"angle": None}, 1)


def test_late_choices_are_for_the_first_data():
    schema = registry.find("one_hot")
    wrong = {"dtype": schema.args["dtype"].type.constant(bool)}
    check_declared(schema, wrong, {}, 1, late=False)
    with pytest.raises(ArgumentChoiceError):
        check_declared(schema, wrong, {}, 1)

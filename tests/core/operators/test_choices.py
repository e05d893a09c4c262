"""Arguments that have few values: a call refuses all others, so that operators need not look."""

from __future__ import annotations

import pytest

from headrace.errors import ArgumentChoiceError
from headrace.experimental.dynamic.arguments import converted
from headrace.graph.capture import _convert_constant
from headrace.operators.support import registry


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
                    _convert_constant(schema, arg, value, "line 1")
                with pytest.raises(ArgumentChoiceError, match=f"`{arg.name}`.* is not one of"):
                    converted(schema, arg, value)
    assert {"border", "dtype", "image_type", "interp_type", "mode", "rounding"} <= seen

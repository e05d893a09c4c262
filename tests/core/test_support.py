"""Declarations against DALI: every argument, its default, and where operators run."""

from __future__ import annotations

import contextlib
import enum
import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import fn, ops
from headrace.errors import HeadraceError
from headrace.operators.support.docs import devices_with_code
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.signature import class_name
from tests.support import own

FACTS = json.loads(
    (Path(__file__).parents[1] / "data" / "dali_operator_arguments.json").read_text()
)
# Other tests declare operators of their own.
SCHEMAS = {s.name: s for s in all_schemas() if s.cls.__module__.startswith("headrace.")}
# Every operator of DALI's has these; `seed` of those that are not random is ignored there.
GENERAL = {"bytes_per_sample_hint", "preserve", "seed"}

PUBLIC = sorted(name for name in SCHEMAS if not name.startswith("_"))
# DALI hands calls of some former names on without declaring their arguments.
SHARED = sorted(
    name
    for name in FACTS.keys() & set(PUBLIC)
    if not (FACTS[name]["deprecated"] and FACTS[name]["arguments"].keys() <= GENERAL)
)


def default_of(value):
    """A declared default in the terms of the facts."""
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, (list, tuple)):
        return [default_of(v) for v in value]
    return value


def same(declared, fact) -> bool:
    if isinstance(declared, list) and isinstance(fact, list):
        return len(declared) == len(fact) and all(map(same, declared, fact))
    if isinstance(declared, float) and isinstance(fact, float):
        return math.isclose(declared, fact, rel_tol=1e-6)  # DALI prints six digits
    return declared == fact


def test_no_operator_is_made_up():
    assert set(PUBLIC) - FACTS.keys() == own.OPERATORS


def named(module, name: str):
    """What a dotted name below a module stands for; `None` where there is nothing."""
    try:
        return functools.reduce(getattr, name.lstrip(".").split("."), module)
    except AttributeError:
        return None


def test_every_old_name_of_an_operator_is_declared():
    for name, fact in FACTS.items():
        if fact["instead"] not in SCHEMAS:
            continue
        assert name in SCHEMAS, f"declare it in `old_names` of {fact['instead']}"
        assert (SCHEMAS[name].deprecated, SCHEMAS[name].hidden) == (fact["instead"], True)
        with (
            pytest.warns(
                DeprecationWarning, match=rf"fn\.{name}` .* Use `headrace\.fn\.{fact['instead']}`"
            ),
            contextlib.suppress(HeadraceError),  # arguments are missing, or inputs are not right
        ):
            named(fn, name)(*[np.zeros((2, 2), np.uint8)] * SCHEMAS[name].min_inputs)


def test_every_api_has_the_operators_that_it_has_in_dali():
    for name in sorted(set(PUBLIC) - own.OPERATORS):
        module, _, last = name.rpartition(".")
        schema, fact = SCHEMAS[name], FACTS[name]
        assert class_name(schema) == fact["class"]
        assert named(fn, name) is not None
        assert named(ops, f"{module}.{class_name(schema)}") is not None
        found = [named(ndd, f"{module}.{each}") for each in (last, class_name(schema))]
        assert any(found) == fact["dynamic"], name


# DALI has them on the GPU only.
ALSO_ON_CPU = {
    *("decoders.inflate", "jitter", "optical_flow", "experimental.dilate", "experimental.erode"),
    *("experimental.median_blur", "experimental.remap", "experimental.resize"),
    *("readers.video", "readers.video_resize", "video_reader", "video_reader_resize"),
}


@pytest.mark.parametrize("name", SHARED)
def test_declaration_is_that_of_dali(name):
    """Arguments, defaults, which ones may be tensors, devices, and the number of inputs."""
    schema, fact = SCHEMAS[name], FACTS[name]
    added = own.ARGUMENTS | own.OF_OPERATORS.get(name, set())
    assert schema.shown_args.keys() - GENERAL - added == fact["arguments"].keys() - GENERAL
    for key, told in fact["arguments"].items():
        arg = schema.args[key]
        assert arg.per_sample == told.get("tensor", False), key
        if not schema.deprecated:  # a former name may take more than it does in DALI
            assert arg.per_frame == told.get("per_frame", False), key
        if key in GENERAL:
            continue
        assert arg.required == told.get("required", False), key
        expected = told.get("default")
        # A default of None says "not given", which DALI asks its own defaults for as well;
        # and where DALI has None, for a flag, it means what False does.
        if arg.required or arg.default is None or (expected is None and arg.default is False):
            continue
        assert same(default_of(arg.default), expected), (key, arg.default, expected)
    ours, theirs = (
        {d.replace("mixed", "gpu") for d in x} for x in (schema.devices, fact["devices"])
    )
    assert ours == theirs | ({"cpu"} if name in ALSO_ON_CPU else set())
    low, high = fact["inputs"]
    assert schema.min_inputs == low
    if not schema.variadic:
        assert len(schema.inputs) == high


def test_operator_runs_on_all_its_devices():
    """Nothing may be declared and missing: users' own operators, too, get the GPU with them."""
    for name in sorted(SCHEMAS):
        assert set(SCHEMAS[name].devices) <= set(devices_with_code(SCHEMAS[name])), name


def test_nothing_of_dali_is_to_come():
    """No operator, on no device, in `fn`, `ops` and dynamic mode; see the test of names above."""
    page = Path(__file__).parents[2] / "docs/support-matrix.md"
    table = page.read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| `fn.")]
    assert len(rows) > 100
    assert [row for row in rows if "to come" in row] == []
    names = [name for name in FACTS if not name.startswith("_")]
    assert set(names) - set(SCHEMAS) == set()
    for name in names:
        module = name.rpartition(".")[0]
        assert named(fn, name) is not None
        assert named(ops, f"{module}.{class_name(SCHEMAS[name])}") is not None

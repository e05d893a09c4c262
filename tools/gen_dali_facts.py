"""Write tests/data/dali_operator_arguments.json: what installed DALI says of every operator.

The declarations of Headrace's operators are compared with this file, which is checked in so that
the comparison needs no DALI. Run it in an environment that has DALI::

    hatch run test:python tools/gen_dali_facts.py [--check]
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import nvidia.dali.experimental.dynamic as ndd
import nvidia.dali.fn  # registers every operator
from nvidia.dali import backend
from nvidia.dali.ops._names import _functional as _names

from generated import write_or_check

TARGET = Path(__file__).parents[1] / "tests" / "data" / "dali_operator_arguments.json"
_REGISTERED = {
    "cpu": set(backend.RegisteredCPUOps()),
    "gpu": set(backend.RegisteredGPUOps()),
    "mixed": set(backend.RegisteredMixedOps()),
}
# Operators that have no schema of their own, or a function that differs from it.
PYTHON_SIDE: dict[str, dict[str, Any]] = {
    "dl_tensor_python_function": {
        "class": "DLTensorPythonFunction",
        "devices": ["cpu", "gpu"],
        "inputs": [0, 256],
    },
    "external_source": {"class": "ExternalSource", "devices": ["cpu", "gpu"], "inputs": [0, 0]},
    "python_function": {"class": "PythonFunction", "devices": ["cpu", "gpu"], "inputs": [0, 256]},
    "readers.tfrecord": {"class": "TFRecord", "devices": ["cpu"], "inputs": [0, 0]},
    "tfrecord_reader": {
        "class": "TFRecordReader",
        "devices": ["cpu"],
        "inputs": [0, 0],
        "deprecated": True,
        "instead": "readers.tfrecord",
        "hidden": True,
    },
}
_WHOLE = ("INT32", "INT64", "UINT32", "UINT8", "DATA_TYPE", "IMAGE_TYPE", "INTERP_TYPE")


def default_value(kind: str, text: str) -> Any:
    """The default that DALI prints as `text`, as JSON can hold it."""
    if kind == "BOOL":
        return {"True": True, "False": False}[text]
    if kind in _WHOLE:
        return int(text)
    if kind == "FLOAT":
        return float(text)
    if kind == "_STRING_VEC":
        return [part.strip(" '") for part in text.strip("[]").split(",") if part.strip()]
    if kind.endswith("_VEC"):
        return ast.literal_eval(text.replace("[, ]", "[]"))
    return ast.literal_eval(text)


def argument_facts(schema: Any, name: str) -> dict[str, Any]:
    """Type, default and traits of one argument; traits that are false are left out."""
    kind = schema.GetArgumentType(name).name
    facts: dict[str, Any] = {"type": kind}
    if not schema.IsArgumentOptional(name):
        facts["required"] = True
    if schema.HasArgumentDefaultValue(name):
        facts["default"] = default_value(kind, schema.GetArgumentDefaultValueString(name))
    if schema.IsTensorArgument(name):
        facts["tensor"] = True
    if schema.ArgSupportsPerFrameInput(name):
        facts["per_frame"] = True
    if schema.IsDeprecatedArg(name):
        facts["deprecated"] = True
    return facts


def operator_facts(schema_name: str) -> dict[str, Any]:
    """What is compared of one operator."""
    schema = backend.GetSchema(schema_name)
    return {
        "class": schema.OperatorName(),
        "devices": [d for d, names in _REGISTERED.items() if schema_name in names],
        "inputs": [schema.MinNumInput(), schema.MaxNumInput()],
        "deprecated": schema.IsDeprecated(),
        "instead": public_name(instead) if (instead := schema.DeprecatedInFavorOf()) else None,
        "dynamic": in_dynamic_mode(public_name(schema_name), schema.OperatorName()),
        "hidden": schema.IsDocHidden(),
        "arguments": {
            name: argument_facts(schema, name) for name in sorted(schema.GetArgumentNames())
        },
    }


def python_side_facts(name: str) -> dict[str, Any]:
    """The same of an operator whose interface DALI writes by hand, from its Python signature.

    Types are not known there, and defaults only where they are plain.
    """
    function = functools.reduce(getattr, name.split("."), nvidia.dali.fn)
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("device", "name", "inputs", "kwargs"):
            continue
        facts: dict[str, Any] = {"type": "PYTHON"}
        if parameter.default is inspect.Parameter.empty:
            facts["required"] = True
        elif parameter.default is not None:
            facts["default"] = parameter.default
        arguments[parameter.name] = facts
    return {
        "class": "",
        "devices": [],
        "inputs": [],
        "deprecated": False,
        "instead": None,
        "dynamic": in_dynamic_mode(name, PYTHON_SIDE[name]["class"]),
        "hidden": False,
        "arguments": dict(sorted(arguments.items())),
        **PYTHON_SIDE[name],
    }


def as_text(facts: dict[str, dict[str, Any]]) -> str:
    """JSON with one argument a line, so that changes can be read in a diff."""
    lines = ["{"]
    for number, (operator, entry) in enumerate(facts.items()):
        arguments = entry["arguments"]
        lines.append(f' "{operator}": {{')
        lines += [f'  "{k}": {json.dumps(v)},' for k, v in entry.items() if k != "arguments"]
        lines.append('  "arguments": {')
        last = len(arguments) - 1
        lines += [
            f'   "{name}": {json.dumps(argument)}{"," if i < last else ""}'
            for i, (name, argument) in enumerate(arguments.items())
        ]
        lines += ["  }", " }," if number < len(facts) - 1 else " }"]
    return "\n".join([*lines, "}"]) + "\n"


def in_dynamic_mode(name: str, class_name: str) -> bool:
    """Whether dynamic mode has the operator: as a function, or as a class if it is a reader."""
    path = name.split(".")
    module: Any = ndd
    for part in path[:-1]:
        module = getattr(module, part, None)
    return hasattr(module, path[-1]) or hasattr(module, class_name)


def public_name(schema_name: str) -> str:
    """Name below ``fn``: ``readers__COCO`` is ``readers.coco``."""
    schema = backend.GetSchema(schema_name)
    return ".".join([*schema.ModulePath(), _names._to_snake_case(schema.OperatorName())])


def main() -> int:
    """Write the file, or tell whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the file is not up to date")
    check = parser.parse_args().check
    registered = set().union(*_REGISTERED.values())
    names = {public_name(n): n for n in registered if not backend.GetSchema(n).IsInternal()}
    facts = {name: operator_facts(names[name]) for name in names}
    facts |= {name: python_side_facts(name) for name in PYTHON_SIDE}
    text = as_text(dict(sorted(facts.items())))
    return write_or_check({TARGET: text}, check=check)


if __name__ == "__main__":
    sys.exit(main())

"""Reference pages of operators, from their declarations."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from headrace.operators.support.docs import (
    argument_default,
    argument_kind,
    argument_text,
    devices_with_code,
    layouts_of,
    returned_type,
    split_sections,
)
from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.signature import class_name

if TYPE_CHECKING:
    from headrace.operators.support.schema import Arg, Input, OpSchema


FOLDER = "reference"
"""The folder of the reference on the site."""


def public_schemas() -> list[OpSchema]:
    """Every operator that users call by name."""
    # Others are declared by plugins, or by tests.
    known = [s for s in all_schemas() if s.name in OPERATORS]
    return [s for s in known if not s.hidden and not is_private(s.name)]


def is_private(name: str) -> bool:
    """True for a name, or one in a module, with an underscore before it."""
    return any(part.startswith("_") for part in name.split("."))


def by_module() -> dict[str, list[OpSchema]]:
    """Operators by the module that users find them in, in the order of their names."""
    found: dict[str, list[OpSchema]] = defaultdict(list)
    for schema in sorted(public_schemas(), key=lambda s: (s.module, s.name)):
        found[f"fn.{schema.module}" if schema.module else "fn"].append(schema)
    return dict(found)


def page_name(operator: str) -> str:
    """The page of an operator, below the reference."""
    return f"fn.{operator}.md"


def index_page(others: list[str]) -> str:
    """All operators with a line each, then the lines on `others`, the pages of everything else."""
    lines = ["# Reference", "", "## Everything but operators", "", *others]
    for module, schemas in by_module().items():
        lines += ["", f"## `{module}`", "", "| operator | | runs on |", "|---|---|---|"]
        for schema in schemas:
            link = f"[`{last(schema)}`]({page_name(schema.name)})"
            lines.append(f"| {link} | {summary(schema)} | {', '.join(devices_with_code(schema))} |")
    return "\n".join(lines) + "\n"


def last(schema: OpSchema) -> str:
    """The name of an operator within its module."""
    return schema.name.rpartition(".")[2]


def summary(schema: OpSchema) -> str:
    """The first sentence on an operator, as a cell of a table."""
    text = split_sections(schema.doc)[0].partition("\n\n")[0]
    return _cell([re.split(r"(?<=\.)\s", " ".join(text.split()))[0]])


def operator_page(schema: OpSchema, shown: list[str]) -> str:
    """Everything the declaration of one operator says; `shown` is Markdown of it at work."""
    text, sections = split_sections(schema.doc)
    lines = [f"# `fn.{schema.name}`", "", *_markdown(text).splitlines()]
    if schema.deprecated is not None:
        lines += ["", f"Deprecated; use `fn.{schema.deprecated}`."]
    lines += ["", *_traits(schema), *shown]
    if schema.inputs:
        lines += ["", "## Inputs", "", "| input | takes | |", "|---|---|---|"]
        for position, declared in enumerate(schema.inputs):
            repeated = schema.variadic and position == len(schema.inputs) - 1
            lines.append(_input_row(declared, schema, repeated=repeated))
    lines += ["", "## Arguments", "", "| argument | |", "|---|---|"]
    lines += [
        _argument_row(arg)
        for arg in sorted(schema.shown_args.values(), key=lambda a: (not a.required, a.name))
    ]
    returns = f"`{returned_type(schema)}`"
    lines += ["", "## Returns", ""]
    if len(schema.output_docs) == 1:
        lines.append(f"{returns}: {_markdown(schema.output_docs[0])}")
    elif schema.output_docs:
        lines += [f"{returns}:", ""]
        lines += [f"{n}. {_markdown(text)}" for n, text in enumerate(schema.output_docs, start=1)]
    else:
        lines.append(f"{returns}.")
    for title, body in sections.items():
        lines += ["", f"## {title}", "", *_fenced(_markdown(body))]
    return "\n".join(lines) + "\n"


def _traits(schema: OpSchema) -> list[str]:
    dotted = f"{schema.module}." if schema.module else ""
    running = devices_with_code(schema)
    coming = [d for d in schema.devices if d not in running]
    ways = [f"class `ops.{dotted}{class_name(schema)}`"]
    if not schema.module.startswith(("readers", "experimental.inputs")):
        ways.append(f"dynamic mode `ndd.{schema.name}`")
    traits = [f"Runs on: {', '.join(running)}"]
    traits += [f"to come: {', '.join(coming)}"] if coming else []
    traits += [f"also as {', '.join(ways)}"]
    traits += ["draws random numbers"] if schema.random else []
    traits += ["takes sequences, frame by frame"] if schema.frames else []
    return [f"{'; '.join(traits)}."]


def _fenced(text: str) -> list[str]:
    """`text` with interactive examples as blocks of code."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        # An example lasts until a blank line; what it prints belongs to it.
        starts, ends = line.startswith(">>> ") and not inside, inside and not line
        if starts or ends:
            lines.append("```pycon" if starts else "```")
            inside = starts
        lines.append(line)
    return [*lines, "```"] if inside else lines


def _input_row(declared: Input, schema: OpSchema, *, repeated: bool) -> str:
    layouts = list(dict.fromkeys(layouts_of(declared, schema)))
    takes = [f"layouts {', '.join(layouts)}" if layouts else ""]
    takes.append(f"types {', '.join(t.name for t in declared.dtypes)}" if declared.dtypes else "")
    takes.append({"cpu": "on the CPU", "any": "on any device"}.get(declared.device or "", ""))
    takes.append("may be left out" if declared.optional else "")
    takes.append("any number" if repeated else "")
    return f"| `{declared.name}` | {'; '.join(t for t in takes if t)} | {_cell([declared.doc])} |"


def _argument_row(arg: Arg) -> str:
    default = argument_default(arg)
    kind = _cell([argument_kind(arg)])
    kind += ", required" if arg.required else f"; default `{default}`" if default else ""
    return f"| `{arg.name}`<br>{kind} | {_cell(argument_text(arg))} |"


def _cell(paragraphs: list[str]) -> str:
    text = "<br>".join(" ".join(inspect.cleandoc(p).split()) for p in paragraphs if p)
    return _markdown(text).replace("|", "\\|")


def _markdown(text: str) -> str:
    """Markdown of text written in reStructuredText's inline marks."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)

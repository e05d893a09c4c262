"""From a declaration to a docstring in numpydoc's form."""

from __future__ import annotations

import enum
import inspect
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.operators.support.signature import PIPELINE_ARGUMENTS, default_text, return_annotation

if TYPE_CHECKING:
    from headrace.operators.support.schema import Arg, Input, OpSchema
    from headrace.operators.support.signature import Api

_WIDTH = 88


def docstring_for(schema: OpSchema, api: Api = "fn") -> str:
    """Documentation of ``fn.<name>``, of the operator's class, or of its function in dynamic mode.

    They differ in how they are used and not in what they say of inputs and arguments: the class
    takes its inputs when an instance is called, and dynamic mode takes data in the place of nodes.
    """
    text, sections = split_sections(schema.doc)
    notes = [*([sections["Notes"], ""] if "Notes" in sections else []), *_notes(schema, api)]
    lines = [*_opening(schema, text), "", *_parameters(schema, api), "", *_returns(schema, api)]
    if notes:
        lines += ["", "Notes", "-----", *"\n".join(notes).strip().splitlines()]
    for title, body in sections.items():
        if title != "Notes":
            lines += ["", title, "-" * len(title), *body.splitlines()]
    written = "\n".join(lines)
    return _for_dynamic_mode(written) if api == "dynamic" else written


def _for_dynamic_mode(text: str) -> str:
    """`text`, written for pipelines, in the words of dynamic mode."""
    for word, replacement in _DYNAMIC_WORDS.items():
        text = text.replace(word, replacement)
    return text


_DYNAMIC_WORDS = {
    "`DataNode` objects": "`Tensor` or `Batch` objects",
    "`DataNode`": "`Tensor` or `Batch`",
    "DataNode or array_like": "Tensor, Batch or array_like",
    "DataNode": "Tensor or Batch",
    "`fn.": "`ndd.",
    " fn.": " ndd.",
    "= fn.": "= ndd.",
}


def split_sections(doc: str) -> tuple[str, dict[str, str]]:
    """Text of a declaration's docstring, and its sections (Notes, Examples, ...) by title."""
    text: list[str] = []
    sections: dict[str, list[str]] = {}
    current = text
    lines = inspect.cleandoc(doc).splitlines()
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line and below == "-" * len(line):
            current = sections.setdefault(line, [])
        elif not (line.startswith("---") and current is not text and not current):
            current.append(line)
    return "\n".join(text).strip(), {k: "\n".join(v).strip() for k, v in sections.items()}


def devices_with_code(schema: OpSchema) -> tuple[str, ...]:
    """Devices of `schema` that this version has an implementation for."""
    cpu = schema.fed or schema.reader or schema.cls.has_cpu()
    gpu = schema.fed or schema.cls.has_gpu()
    return tuple(d for d in schema.devices if (cpu if d == "cpu" else gpu))


def layouts_of(declared: Input, schema: OpSchema) -> tuple[str, ...]:
    """Every layout that input `declared` takes; empty where any will do."""
    if not declared.layouts or not schema.frames:
        return declared.layouts
    return (*declared.layouts, *(f"F{layout}" for layout in declared.layouts if layout))


def argument_kind(arg: Arg) -> str:
    """Type of `arg` in numpydoc's words, with how it may vary."""
    words = "{" + ", ".join(default_text(c) for c in arg.choices) + "}" if arg.choices else ""
    words = words or arg.type.name
    if arg.shape_of:
        words += f" of shape {arg.shape_of}"
    if arg.per_frame:
        return f"{words}, one for each sample or frame allowed"
    return f"{words}, one for each sample allowed" if arg.per_sample else words


def argument_default(arg: Arg) -> str:
    """The default of `arg` as users type it; empty where it is required or not given."""
    if arg.required or arg.default is None:
        return ""
    if isinstance(arg.default, enum.Enum):
        return f"types.{arg.default.name}"
    return default_text(arg.default)


def argument_text(arg: Arg) -> list[str]:
    """Paragraphs that explain `arg`."""
    paragraphs = [arg.doc] if arg.doc else []
    if arg.hint:
        paragraphs.append("A hint of DALI's that changes no result; it is taken and not needed.")
    if arg.deprecated is not None:
        use = f"; use `{arg.deprecated}`" if arg.deprecated else ""
        paragraphs.append(f"Deprecated{use}.")
    if arg.unsupported is not None:
        paragraphs.append(f"Only the default is taken yet: {arg.unsupported.rstrip('.')}.")
    return paragraphs


def returned_type(schema: OpSchema) -> str:
    """Return type of a call, as documentation shows it."""
    if callable(schema.num_outputs):
        return "DataNode, or a list of them"
    return return_annotation(schema)


def _opening(schema: OpSchema, text: str) -> list[str]:
    lines = text.splitlines()
    if schema.deprecated is not None:
        use = f"; use `fn.{schema.deprecated}`" if schema.deprecated else ""
        lines += ["", f"Deprecated{use}."]
    running = devices_with_code(schema)
    coming = [d for d in schema.devices if d not in running]
    state = f"Runs on: {', '.join(running) or 'no device yet'}"
    if coming:
        state += f" (to come: {', '.join(coming)})"
    return [*lines, "", f"{state}."]


def _parameters(schema: OpSchema, api: Api) -> list[str]:
    lines = ["Parameters", "----------"]
    for position, declared in enumerate(schema.inputs):
        repeated = schema.variadic and position == len(schema.inputs) - 1
        name = f"*{declared.name}" if repeated else declared.name
        lines += [f"{name} : {_input_type(declared, schema)}", *_body([_input_doc(declared)])]
    for arg in sorted(schema.shown_args.values(), key=lambda a: (not a.required, a.name)):
        default = argument_default(arg)
        end = "" if arg.required else f", default {default}" if default else ", optional"
        if api == "dynamic" and arg.name in PIPELINE_ARGUMENTS:
            continue
        lines += [f"{arg.name} : {argument_kind(arg)}{end}", *_body(argument_text(arg))]
    if api == "dynamic":
        return lines + _dynamic_parameters(schema)
    lines += [
        f"device : {{{_quoted(schema.devices)}}}, optional",
        *_body(["Where to run; by default where the inputs are."]),
        "name : str, optional",
        *_body(
            ["Name of the operator in errors, checkpoints and readers; unique in its pipeline."]
        ),
    ]
    return lines


def _dynamic_parameters(schema: OpSchema) -> list[str]:
    devices = sorted({"gpu" if d == "mixed" else d for d in schema.devices})
    lines = [
        "batch_size : int, optional",
        *_body(["Number of samples, where no batch among inputs and arguments says it."]),
        f"device : {{{_quoted(devices)}}} or Device, optional",
        *_body(["Where to run; by default where the inputs are."]),
    ]
    if schema.random:
        lines += [
            "rng : random.RNG, optional",
            *_body(["Where random numbers come from; by default the calling thread's generator."]),
        ]
    return lines


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _returns(schema: OpSchema, api: Api) -> list[str]:
    if schema.num_outputs == 0:
        return ["Returns", "-------", "None"]
    returned = returned_type(schema) if api != "dynamic" else "Tensor or Batch"
    if api == "dynamic" and schema.num_outputs != 1:
        returned += ", or a tuple of them"
    lines = ["Returns", "-------", returned]
    if len(schema.output_docs) == 1:
        return lines + _body(schema.output_docs)
    return lines + _body([f"{n}. {text}" for n, text in enumerate(schema.output_docs)])


def _notes(schema: OpSchema, api: Api) -> list[str]:
    notes = []
    if schema.rules:
        notes.append(" ".join(rule.text() for rule in schema.rules))
    if schema.random and api == "dynamic":
        notes.append(
            "The random numbers depend on the state of the generator, which each call moves on, "
            "and on the position of the sample in the batch."
        )
    elif schema.random:
        notes.append(
            "The random numbers depend on the seed, the operator and the position of the sample "
            "in the run, never on threads."
        )
    if api == "ops":
        notes.append(
            "Arguments may be given here or when the instance is called, each in one place only."
        )
    lines: list[str] = []
    for note in notes:
        lines += [*textwrap.wrap(note, _WIDTH), ""]
    return lines


def _input_type(declared: Input, schema: OpSchema) -> str:
    words = ["DataNode or array_like"]
    layouts = layouts_of(declared, schema)
    if layouts:
        words.append(f"layout {', '.join(layout or 'none' for layout in layouts)}")
    if declared.dtypes:
        words.append(f"of {', '.join(t.name for t in declared.dtypes)}")
    if declared.device == "cpu":
        words.append("always on the CPU")
    elif declared.device == "any":
        words.append("on any device")
    if declared.optional:
        words.append("optional")
    return ", ".join(words)


def _input_doc(declared: Input) -> str:
    return declared.doc or "The data to work on."


def _body(paragraphs: list[str] | tuple[str, ...]) -> list[str]:
    """Paragraphs, wrapped and indented below the line of their parameter."""
    lines: list[str] = []
    for paragraph in paragraphs:
        for block in inspect.cleandoc(paragraph).split("\n\n"):
            if lines:
                lines.append("")
            if any(line.startswith((" ", "- ", "* ", "|")) for line in block.splitlines()):
                lines += block.splitlines()  # lists, tables and code keep their lines
            else:
                lines += textwrap.wrap(" ".join(block.split()), _WIDTH)
    return [f"    {line}" if line else "" for line in lines]

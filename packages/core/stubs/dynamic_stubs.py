"""The .pyi files of ``headrace.experimental.dynamic``; `stubs` writes them.

What is made from declarations is written out: functions of operators, classes of readers, functions
of ``math``. What is written by hand is imported from where it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING

from stub_variants import Variant, variants

from headrace.experimental.dynamic.functions import is_offered, is_reader
from headrace.experimental.dynamic.reader_classes import signature_of
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.signature import SourceText, class_name, signature_for

if TYPE_CHECKING:
    from headrace.operators.support.schema import OpSchema

_EMPTY = Parameter.empty
_ROOT = "headrace.experimental.dynamic"
_HEAD = "# Generated from the operators' declarations: do not edit.\n"
_IMPORTS = {
    "Any": "from typing import Any",
    "TensorLike": "from headrace.types.tensor_like import TensorLike",
    "Batch": f"from {_ROOT}.batches import Batch",
    "DALIDataType": "from headrace.types import DALIDataType",
    "DALIImageType": "from headrace.types import DALIImageType",
    "DALIInterpType": "from headrace.types import DALIInterpType",
    "DataTypeLike": "from headrace.types import DataTypeLike",
    "DType": f"from {_ROOT}.dtypes import DType",
    "DeviceLike": f"from {_ROOT}.devices import DeviceLike",
    "EvalContext": f"from {_ROOT}.contexts import EvalContext",
    "Iterator": "from collections.abc import Iterator",
    "Literal": "from typing import Literal",
    "Mapping": "from collections.abc import Mapping",
    "RNG": f"from {_ROOT}.rng import RNG",
    "Reader": f"from {_ROOT}.reader import Reader",
    "PathLike": "from os import PathLike",
    "Sequence": "from collections.abc import Sequence",
    "Tensor": f"from {_ROOT}.tensors import Tensor",
    "_bool": "from builtins import bool as _bool",
    "overload": "from typing import overload",
}

_NOT_OFFERED = ("as_input", "bool", "find", "function_of")
"""What modules written by hand import for themselves, or offer in a way of its own."""

Definition = Callable[..., str]


def dynamic_files(
    package: Path,
    definition: Definition,
    docstring: Callable[..., str],
    merged: Callable[[Iterable[str]], list[str]],
) -> dict[Path, str]:
    """Text of every stub of dynamic mode, by path.

    Parameters
    ----------
    package
        The folder of ``headrace``.
    definition, docstring, merged
        The main module's ways to write a function, a docstring and imports.
    """
    folder = package / "experimental" / "dynamic"
    modules: dict[str, list[OpSchema]] = {"": [], "random": []}
    for schema in all_schemas():
        if schema.hidden or any(part.startswith("_") for part in schema.name.split(".")):
            continue
        if (
            is_offered(schema)
            or is_reader(schema)
            or (schema.module == "random" and schema.deprecated is None)
        ):
            modules.setdefault(schema.module, []).append(schema)
    for module in list(modules):  # those that hold others
        parts = module.split(".")
        for k in range(1, len(parts)):
            modules.setdefault(".".join(parts[:k]), [])
    files = {}
    for module, schemas in modules.items():
        children = [name.rpartition(".")[2] for name in modules if name and _parent(name) == module]
        body = "".join(
            _spaced(_function(schema, definition, builtin_names=bool(module)))
            for schema in schemas
            if not schema.reader
        )
        body += "\n".join(_reader(s, definition, docstring) for s in schemas if s.reader)
        if not module:
            lines = _exports(folder / "__init__.py", children)
            # A plain import of another name would not be taken as meant for others.
            files[folder / "__init__.pyi"] = _text(f"bool: DType\n\n{body}", lines, merged)
        elif children:
            base = f"{_ROOT}.{module}"
            lines = {f"from {base} import {child} as {child}" for child in children}
            files[folder.joinpath(*module.split("."), "__init__.pyi")] = _text(body, lines, merged)
        elif "." in module:
            files[folder.joinpath(*module.split(".")).with_suffix(".pyi")] = _text(
                body, set(), merged
            )
        else:
            source = folder / f"{module}.py"
            lines = _exports(source, ()) if source.exists() else set()
            files[folder / f"{module}.pyi"] = _text(body, lines, merged)
    files[folder / "math.pyi"] = _text(_math(definition), set(), merged)
    return files


def _parent(module: str) -> str:
    return module.rpartition(".")[0]


def _spaced(text: str) -> str:
    # A blank line behind a body, none behind `...`: the formatter's rule for stubs.
    return f"{text}\n" if text.endswith('"""\n') else text


def _text(body: str, lines: set[str], merged: Callable[[Iterable[str]], list[str]]) -> str:
    code = re.sub(r'"""(.|\n)*?"""', "", body)
    known = {line.rpartition(" as ")[0] or line for line in lines}
    lines = lines | {
        line
        for name, line in _IMPORTS.items()
        if re.search(rf"\b{name}\b", code) and line not in known
    }
    ours = merged(line for line in lines if line.startswith("from headrace"))
    numpy = merged(line for line in lines if line.startswith("from numpy"))
    standard = merged(
        line for line in lines if not line.startswith(("from numpy", "from headrace"))
    )
    blocks = ["\n".join(block) for block in (standard, numpy, ours) if block]
    body = body.strip("\n")
    return "\n\n".join([_HEAD.rstrip(), *blocks, *([body] if body else [])]) + "\n"


def _exports(source: Path, children: Iterable[str]) -> set[str]:
    """Imports of what a module written by hand offers, marked as meant for others."""
    lines = {f"from {_ROOT} import {child} as {child}" for child in children}
    for node in ast.parse(source.read_text()).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("headrace"):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if not name.startswith("_") and name not in _NOT_OFFERED:
                lines.add(f"from {node.module} import {alias.name} as {name}")
    return lines


def _function(schema: OpSchema, definition: Definition, *, builtin_names: bool) -> str:
    """Stub of an operator: a batch where an input is one, or where a number of samples is given."""
    signature = signature_for(schema, "dynamic")
    name = schema.name.rpartition(".")[2]
    parameters = list(signature.parameters.values())
    first = parameters[0] if parameters else None
    found = []
    for way in variants(schema):
        shown = way.applied(signature)
        if not builtin_names:  # `bool` is an element type there
            shown = _renamed(shown)
        if len(way.counts) > 1:  # whatever is not decided
            found.append(_changed(shown, {}, _result(way, "Tensor | Batch")))
            continue
        if first is not None and first.kind is Parameter.POSITIONAL_ONLY:
            of_batches = {first.name: first.replace(annotation=SourceText("Batch"), default=_EMPTY)}
            found.append(_changed(shown, of_batches, _result(way, "Batch")))
            found.append(_of_tensors(shown, first.name, _result(way, "Tensor")))
        if first is None or first.default is not _EMPTY or first.kind is Parameter.KEYWORD_ONLY:
            size = signature.parameters["batch_size"]
            sized = {size.name: size.replace(annotation=SourceText("int"), default=_EMPTY)}
            found.append(_changed(shown, sized, _result(way, "Batch")))
        found.append(_changed(shown, {}, _result(way, "Tensor | Batch")))
    texts = [definition(name, one, None) for one in found[:-1]]
    texts.append(definition(name, found[-1], docstring_for(schema, "dynamic")))
    return "".join(f"@overload\n{text}" for text in texts)


def _of_tensors(signature: Signature, first: str, returned: SourceText) -> Signature:
    """The signature for a tensor and arguments that are the same for all samples."""
    changed = {}
    for name, parameter in signature.parameters.items():
        text = re.sub(r"Tensor \| Batch( \| TensorLike)?", "Tensor", str(parameter.annotation))
        if name == "batch_size":
            text = "None"
        default = _EMPTY if name == first else parameter.default
        changed[name] = parameter.replace(
            annotation=SourceText("Tensor" if name == first else text), default=default
        )
    return _changed(signature, changed, returned)


def _changed(
    signature: Signature, parameters: dict[str, Parameter], returned: SourceText
) -> Signature:
    changed = [parameters.get(p.name, p) for p in signature.parameters.values()]
    return signature.replace(parameters=changed, return_annotation=returned)


def _renamed(signature: Signature) -> Signature:
    return signature.replace(
        parameters=[
            p.replace(annotation=SourceText(re.sub(r"\bbool\b", "_bool", str(p.annotation))))
            for p in signature.parameters.values()
        ]
    )


def _result(way: Variant, kind: str) -> SourceText:
    """What a call returns, of values of one kind."""
    texts = {
        "None"
        if count == 0
        else kind
        if count == 1
        else f"tuple[{kind}, ...]"
        if count is None
        else f"tuple[{', '.join([kind] * count)}]"
        for count in way.counts
    }
    return SourceText(" | ".join(sorted(texts, key=len)))


def _reader(schema: OpSchema, definition: Definition, docstring: Callable[..., str]) -> str:
    signature = signature_of(schema)
    shown = signature.replace(return_annotation=SourceText("None"))
    count = schema.num_outputs
    step = "tuple[Batch, ...]" if callable(count) else str(_result(Variant((count,)), "Batch"))
    if schema.output_names is not None:
        step = "dict[str, Batch]"
    single = step.replace("Batch", "Tensor")
    if not step.startswith(("tuple", "dict")):
        step, single = f"tuple[{step}]", f"tuple[{single}]"
    steps = "".join(
        "    @overload\n"
        f"    def next_epoch(\n        self,\n        batch_size: {kind},\n"
        "        ctx: EvalContext | None = None,\n        capture: bool = False,\n"
        f"    ) -> Iterator[{result}]: ...\n"
        for kind, result in (("int", step), ("int | None = None", f"{step} | {single}"))
    )
    doc = docstring(docstring_for(schema, "dynamic"), indent="    ")
    constructor = definition("__init__", shown, None, method=True)
    return f"class {class_name(schema)}(Reader):\n{doc}\n{constructor}{steps}"


def _math(definition: Definition) -> str:
    found = []
    for operation in OPERATIONS.values():
        if operation.math_name is None:
            continue
        values = [
            Parameter(
                name, Parameter.POSITIONAL_OR_KEYWORD, annotation=SourceText("TensorLike | Any")
            )
            for name in operation.parameters
        ]
        for kind in (*_only("Batch", values), values):
            result = "Batch" if kind is not values else "Any"
            text = definition(
                operation.math_name,
                Signature(kind, return_annotation=SourceText(result)),
                operation.doc if kind is values else None,
            )
            text = re.sub(r'"""([^\n"]+)\n +"""\n', r'"""\1"""\n', text)
            found.append(_spaced(f"@overload\n{text}"))
    return "".join(found)


def _only(kind: str, values: list[Parameter]) -> list[list[Parameter]]:
    """The parameters, the first of them of one class."""
    return [[values[0].replace(annotation=SourceText(kind)), *values[1:]]]

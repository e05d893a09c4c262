"""Write the .pyi files of ``fn``, ``ops``, dynamic mode and `pipeline_def` from declarations.

    python packages/core/stubs              beside the sources
    python packages/core/stubs FOLDER       below FOLDER, as a wheel has them

These modules are made when they are imported, so that type checkers and editors see nothing of
them without these files. The build makes them (`hatch_build.py`): they are not kept.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING

from definition_stub import definition_files
from dynamic_stubs import dynamic_files
from stub_variants import Variant, variants

from headrace.operators.support.composite import Composite
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.signature import (
    Api,
    SourceText,
    call_signature_for,
    class_name,
    default_text,
    signature_for,
)

if TYPE_CHECKING:
    from headrace.operators.support.schema import OpSchema

PACKAGE = Path(__file__).parents[1] / "src" / "headrace"

# What an interface has beside the generated operators: module, and its names there.
HAND_WRITTEN: dict[Api, dict[str, tuple[str, ...]]] = {
    "fn": {},
    "ops": {
        "headrace.api.class_lists": (
            *("cpu_ops", "gpu_ops", "mixed_ops", "register_cpu_op", "register_gpu_op"),
        ),
        "headrace.api.classes": ("Compose", "python_op_factory"),
    },
}

_LONGEST = 85
_IMPORTS = {
    "Any": "from typing import Any",
    "TensorLike": "from headrace.types.tensor_like import TensorLike",
    "ConstantLike": "from headrace.types.tensor_like import ConstantLike",
    "Callable": "from collections.abc import Callable",
    "DALIDataType": "from headrace.types import DALIDataType",
    "DALIImageType": "from headrace.types import DALIImageType",
    "DALIInterpType": "from headrace.types import DALIInterpType",
    "DataTypeLike": "from headrace.types import DataTypeLike",
    "DataNode": "from headrace.graph.data_node import DataNode",
    "FunctionInstance": "from headrace.api.classes import FunctionInstance",
    "Iterable": "from collections.abc import Iterable",
    "Literal": "from typing import Literal",
    "Mapping": "from collections.abc import Mapping",
    "OperatorInstance": "from headrace.api.classes import OperatorInstance",
    "PathLike": "from os import PathLike",
    "Sequence": "from collections.abc import Sequence",
    "SourceWithTraits": "from headrace.operators.support.external.traits import SourceWithTraits",
    "TypeVar": "from typing_extensions import TypeVar",
    "overload": "from typing import overload",
}
_NODES = '''_Nodes = TypeVar("_Nodes", bound=DataNode | list[DataNode], default=DataNode)
"""A node, or a list of them, for each of which an operator runs."""

'''


@dataclass
class Module:
    """One module below ``fn`` or ``ops``."""

    schemas: list[OpSchema] = field(default_factory=list)
    children: dict[str, Module] = field(default_factory=dict)


def tree() -> Module:
    """Every public operator, by module."""
    root = Module()
    for schema in all_schemas():
        *path, last = schema.name.split(".")
        if schema.hidden or any(part.startswith("_") for part in (*path, last)):
            continue
        module = root
        for part in path:
            module = module.children.setdefault(part, Module())
        module.schemas.append(schema)
    return root


def stub_files(api: Api) -> dict[Path, str]:
    """Text of every stub of one interface, by path."""
    files: dict[Path, str] = {}

    def visit(module: Module, path: tuple[str, ...]) -> None:
        if module.children or not path:
            target = PACKAGE.joinpath(api, *path, "__init__.pyi")
        else:
            target = PACKAGE.joinpath(api, *path[:-1], f"{path[-1]}.pyi")
        files[target] = module_text(module, api, path)
        for name, child in module.children.items():
            visit(child, (*path, name))

    visit(tree(), ())
    return files


def module_text(module: Module, api: Api, path: tuple[str, ...]) -> str:
    """Text of one stub."""
    body = ""
    for schema in module.schemas:
        # A blank line behind a body, none behind `...`: the formatter's rule for stubs.
        body += "\n" if body.endswith('"""\n') or api == "ops" else ""
        body += function_text(schema) if api == "fn" else class_text(schema)
    body = body.lstrip("\n")
    if "_Nodes" in body:
        body = _NODES + body
    dotted = ".".join(("headrace", api, *path))
    lines = {
        line
        for name, line in _IMPORTS.items()
        if re.search(rf"\b{name}\b", re.sub(r'"""(.|\n)*?"""', "", body))
    }
    lines |= {f"from {dotted} import {child} as {child}" for child in module.children}
    if not path:
        lines |= {
            f"from {source} import {name} as {name}"
            for source, names in HAND_WRITTEN[api].items()
            for name in names
        }
    ours = _merged(line for line in lines if line.startswith("from headrace"))
    numpy = _merged(line for line in lines if line.startswith("from numpy"))
    standard = _merged(
        line for line in lines if not line.startswith(("from numpy", "from headrace"))
    )
    # A flag that is not known is one that is `True` as well.
    head = (
        "# Generated from the operators' declarations: do not edit.\n"
        '# mypy: disable-error-code="overload-overlap"\n'
    )
    blocks = ["\n".join(block) for block in (standard, numpy, ours) if block]
    return "\n\n".join([head.rstrip(), *blocks, *([body.rstrip("\n")] if body else [])]) + "\n"


def function_text(schema: OpSchema) -> str:
    """Stub of ``fn.<name>``."""
    signature = signature_for(schema, "fn")
    name = schema.name.rpartition(".")[2]
    ways = variants(schema)
    first = next(iter(signature.parameters.values()), None)
    by_position = first is not None and first.kind is Parameter.POSITIONAL_ONLY
    node = "DataNode"
    if by_position and schema.num_outputs and not issubclass(schema.cls, Composite):
        signature, node = _for_each(signature), "_Nodes"
    found = [w.applied(signature).replace(return_annotation=_returned(node, w)) for w in ways]
    if schema.output_names is not None:
        found = [found[0].replace(return_annotation=SourceText("dict[str, DataNode]"))]
    texts = [_definition(name, found[0], docstring_for(schema, "fn"))]
    texts += [_definition(name, one, None) for one in found[1:]]
    if len(texts) == 1:
        return texts[0]
    # A blank line behind a body, none behind `...`: the formatter's rule for stubs.
    return "".join(
        f"@overload\n{text}" + ("\n" if text.endswith('"""\n') else "") for text in texts
    )


def _returned(node: str, variant: Variant) -> SourceText:
    """What a call returns, a node being what is given: one, a list of them, or nothing."""
    if not variant.counts:
        return SourceText("Any")
    kinds = {"None" if c == 0 else node if c == 1 else f"list[{node}]" for c in variant.counts}
    return SourceText(" | ".join(sorted(kinds, key=len)))


def _for_each(signature: Signature) -> Signature:
    """The signature of an operator that runs once for each node of a list.

    There is one for nodes and lists of them: type checkers say what is wrong with a call where
    there are not several of which none fits.
    """
    first, *others = signature.parameters.values()
    text = str(first.annotation).replace("DataNode | TensorLike", "_Nodes | ConstantLike")
    first = first.replace(annotation=SourceText(text))
    return signature.replace(parameters=[first, *others])


def class_text(schema: OpSchema) -> str:
    """Stub of the operator's class."""
    constructor = _definition("__init__", signature_for(schema, "ops"), None, method=True)
    doc = _docstring(docstring_for(schema, "ops"), indent="    ")
    base = "FunctionInstance" if schema.calls_user else "OperatorInstance"
    return f"class {class_name(schema)}({base}):\n{doc}\n{constructor}{_calls(schema)}"


def _calls(schema: OpSchema) -> str:
    """Stub of calling an instance; what it returns may be decided where it was made."""
    signature = call_signature_for(schema)
    first = next(iter(signature.parameters.values()), None)
    by_position = first is not None and first.kind is Parameter.POSITIONAL_ONLY
    if by_position and schema.num_outputs and not callable(schema.num_outputs):
        returned = _returned("_Nodes", variants(schema)[0])
        signature = _for_each(signature).replace(return_annotation=returned)
    return _definition("__call__", signature, None, method=True)


def _definition(name: str, signature: Signature, doc: str | None, *, method: bool = False) -> str:
    indent = "    " if method else ""
    lines = [f"{indent}def {name}("]
    if method:
        lines.append(f"{indent}    self,")
    lines += [f"{indent}    {text}," for text in _parameters(signature, method=method)]
    end = f"{indent}) -> {signature.return_annotation}:"
    if doc is None:
        lines.append(f"{end} ...")
        return "\n".join(lines) + "\n"
    lines.append(end)
    return "\n".join([*lines, _docstring(doc, indent=indent + "    ")]) + "\n"


def _parameters(signature: Signature, *, method: bool) -> list[str]:
    texts: list[str] = []
    parameters = list(signature.parameters.values())
    starred = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    positional = [p for p in parameters if p.kind is Parameter.POSITIONAL_ONLY]
    for parameter in parameters:
        if parameter.kind is Parameter.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        prefix = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(
            parameter.kind, ""
        )
        text = f"{prefix}{parameter.name}: {parameter.annotation}"
        if parameter.default is not Parameter.empty:
            default = default_text(parameter.default)
            text += f" = {default if len(text) + len(default) < _LONGEST else '...'}"
        texts.append(text)
        if positional and parameter is positional[-1]:
            texts.append("/")
    return texts


def _docstring(doc: str, *, indent: str) -> str:
    prefix = "r" if "\\" in doc else ""
    lines = doc.replace('"""', "'''").splitlines()
    indented = [f"{indent}{line}" if line else "" for line in lines[1:]]
    return "\n".join([f'{indent}{prefix}"""{lines[0]}', *indented, f'{indent}"""'])


def _merged(lines: Iterable[str]) -> list[str]:
    """Sorted imports; ``from x import a`` and ``from x import b`` as one, unless they rename."""
    merged: dict[str, list[str]] = {}
    others: list[str] = []
    for line in lines:
        _, module, _, name = line.split(maxsplit=3)
        if " as " in name:
            others.append(line)
        else:
            merged.setdefault(module, []).append(name)
    plain = [f"from {module} import {', '.join(sorted(n))}" for module, n in merged.items()]
    return sorted([*plain, *others], key=lambda line: (line.split()[1], line))


def write(folder: Path) -> None:
    """Write all stubs below `folder`, and remove those of operators that are gone."""
    dynamic = dynamic_files(PACKAGE, _definition, _docstring, _merged)
    files = {**stub_files("fn"), **stub_files("ops"), **dynamic, **definition_files(PACKAGE)}
    wanted = {folder / path.relative_to(PACKAGE): text for path, text in files.items()}
    for left_over in set(folder.rglob("*.pyi")) - wanted.keys():
        left_over.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=PACKAGE)
    write(parser.parse_args().folder)

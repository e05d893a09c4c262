"""Reference pages of classes and functions that are not operators, from their docstrings."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from headrace.operators.support.docs import split_sections
from headrace.plugin.state_methods import with_methods

_TABLES = ("Parameters", "Raises", "Attributes")


@dataclass(frozen=True)
class Page:
    """A page of the reference.

    Attributes
    ----------
    file
        Its name below ``docs/reference``, without the suffix.
    title, about
        Its heading, and a sentence below it.
    parts
        Modules, and of each the names to describe; all public ones where none are given.
    """

    file: str
    title: str
    about: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]


PAGES = (
    Page(
        "pipeline",
        "Pipelines",
        "What defines a pipeline and runs it. Operators have [pages of their own](index.md).",
        (
            ("headrace", ("pipeline_def", "Pipeline")),
            ("headrace.pipeline", ("DataNode", "do_not_convert")),
            ("headrace.pipeline.debug_node", ("DataNodeDebug",)),
        ),
    ),
    Page(
        "iterators",
        "Iterators",
        "What hands the batches of pipelines to a framework, epoch by epoch.",
        (
            (
                "headrace.plugin.pytorch",
                (
                    "DALIGenericIterator",
                    "DALIClassificationIterator",
                    "DALIRaggedIterator",
                    "LastBatchPolicy",
                    "DatasetSource",
                    "IterableDatasetSource",
                    "feed_ndarray",
                ),
            ),
            (
                "headrace.plugin.jax",
                (
                    "DALIGenericIterator",
                    "DALIGenericPeekableIterator",
                    "data_iterator",
                    "peekable_data_iterator",
                ),
            ),
        ),
    ),
    Page(
        "modules",
        "Loaders, files, servers",
        "What surrounds pipelines: loaders of PyTorch, files with operators, Triton, TFRecord.",
        (
            ("headrace.plugin.pytorch.experimental.proxy", ("DALIServer", "DataLoader")),
            ("headrace.plugin.pytorch.loader_evaluator", ("LoaderEvaluator",)),
            ("headrace.plugin_manager", ("load_library", "load_directory")),
            ("headrace.plugin.triton", ("autoserialize", "invoke_autoserialize")),
            ("headrace.tfrecord", ("FixedLenFeature", "VarLenFeature", "Feature")),
        ),
    ),
    Page(
        "data",
        "Batches and tensors",
        "What pipelines return, what shows it, and page-locked arrays for sources.",
        (
            ("headrace.backend", ("TensorListCPU", "TensorListGPU", "TensorCPU", "TensorGPU")),
            ("headrace", ("show", "contact_sheet", "empty_pinned")),
        ),
    ),
    Page(
        "types",
        "Types",
        "Element types, colour spaces, interpolations and what goes with them: `headrace.types`.",
        (
            (
                "headrace.types",
                (
                    "DALIDataType",
                    "DALIImageType",
                    "DALIInterpType",
                    "Constant",
                    "SampleInfo",
                    "BatchInfo",
                    "TensorLayout",
                    "StreamPolicy",
                    "OperatorConcurrency",
                    "PipelineAPIType",
                    "CUDAStream",
                    "as_data_type",
                    "to_numpy_type",
                    "to_dali_type",
                ),
            ),
        ),
    ),
    Page(
        "errors",
        "Errors",
        "Every exception that is raised on purpose, each a builtin one as well: `headrace.errors`.",
        (("headrace.errors", ()),),
    ),
    Page(
        "dynamic",
        "Dynamic mode",
        "The classes and functions of `headrace.experimental.dynamic` besides the operators, which "
        "it has under the names of [the reference](index.md). [A guide](../dynamic.md) shows them "
        "at work.",
        (
            (
                "headrace.experimental.dynamic",
                (
                    "Tensor",
                    "Batch",
                    "tensor",
                    "as_tensor",
                    "batch",
                    "as_batch",
                    "EvalMode",
                    "EvalContext",
                    "Device",
                    "DType",
                    "Stream",
                    "ThreadPool",
                    "ExternalSource",
                    "capture",
                    "imread",
                    "set_num_threads",
                ),
            ),
            ("headrace.experimental.dynamic.random", ("RNG", "set_seed", "get_default_rng")),
            ("headrace.experimental.dynamic.reader", ("Reader",)),
            ("headrace.experimental.dynamic.checkpoint", ("Checkpoint",)),
        ),
    ),
)


def api_pages() -> dict[str, str]:
    """The text of every page by its file's name."""
    return {f"{page.file}.md": _page_text(page) for page in PAGES}


def index_rows() -> list[str]:
    """A line for each page."""
    return [f"- [{page.title}]({page.file}.md). {page.about.split(': `')[0]}" for page in PAGES]


def documented() -> list[tuple[str, Any]]:
    """Everything that the pages describe, by its full name."""
    return [
        (f"{module}.{name}", getattr(importlib.import_module(module), name))
        for page in PAGES
        for module, names in page.parts
        for name in (names or dir(importlib.import_module(module)))
    ]


def _page_text(page: Page) -> str:
    lines = [f"# {page.title}", "", page.about]
    here: dict[type, str] = {}
    for module, names in page.parts:
        home = importlib.import_module(module)
        for name in names or dir(home):
            title = f"{module}.{name}"
            found = getattr(home, name)
            lines += ["", f"## `{title}`", ""]
            lines += _class(found, name, here) if inspect.isclass(found) else _function(found, name)
            if inspect.isclass(found):
                here[found] = title
    return "\n".join(lines) + "\n"


def _function(function: Any, name: str) -> list[str]:
    return [*_call(function, name), "", *_doc(inspect.getdoc(function) or "", function)]


def _class(cls: type, name: str, here: dict[type, str]) -> list[str]:
    lines: list[str] = []
    if issubclass(cls, BaseException):
        bases = ", ".join(f"`{base.__name__}`" for base in cls.__bases__)
        lines += [f"Bases: {bases}.", ""]
    elif not issubclass(cls, enum.Enum):
        lines += [*_call(cls, name), ""]
    lines += _doc(inspect.getdoc(cls) or "", cls)
    fields = _fields(cls)
    if fields and "| attribute | |" not in lines:
        lines += ["", "| member | |", "|---|---|"]
        lines += [f"| `{field}` | {_cell(text)} |" for field, text in fields.items()]
    if issubclass(cls, (enum.Enum, BaseException)):
        return lines
    known = [base for base in cls.__mro__[1:] if base in here]
    if hasattr(cls, "_state_methods"):  # what iterators have that can
        cls = with_methods(cls, cls._state_methods)
    names = _members(cls, known)
    values = [n for n in names if _is_value(inspect.getattr_static(cls, n))]
    if values:
        lines += ["", "| property | |", "|---|---|"]
        for value in values:
            text = split_sections(inspect.getdoc(inspect.getattr_static(cls, value)) or "")[0]
            lines.append(f"| `{value}` | {_cell(text)} |")
    for method in names:
        if method not in values:
            lines += ["", f"### `{name}.{method}`", "", *_function(getattr(cls, method), method)]
    if known:
        links = ", ".join(f"[`{here[b].rpartition('.')[2]}`](#{_anchor(here[b])})" for b in known)
        lines += ["", f"And what {links} has."]
    return lines


def _members(cls: type, known: list[type]) -> list[str]:
    """Public methods and properties, in the order of their definition, that `known` have not."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("headrace") or base in known:
            continue
        if any(issubclass(other, base) for other in known):
            continue
        for name, value in vars(base).items():
            if inspect.isclass(value):
                continue
            public = not name.startswith("_") and f"{base.__name__}.{name}" not in _FOR_THE_ENGINE
            described = callable(value) or _is_value(value) or isinstance(value, _WRAPPED)
            if public and described and inspect.getdoc(value):
                found.setdefault(name)
    return list(found)


_FOR_THE_ENGINE = {
    "DatasetSource.load_batch",
    "DatasetSource.plan_batch",
    "IterableDatasetSource.iterate_part",
    "RNG.advance",
    "RNG.draw_seed",
    "RNG.snapshot",
    "RNG.take",
    "ThreadPool.after_fork",
    "ThreadPool.call",
}
"""What other modules call, though its name has no underscore."""

_WRAPPED = (classmethod, staticmethod)


def _is_value(found: Any) -> bool:
    return isinstance(found, property) or inspect.isgetsetdescriptor(found)


def _fields(cls: type) -> dict[str, str]:
    """Members of an enumeration, or fields of a record, with the text below each."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        tree = ast.Module([], [])
    definition = next(iter(tree.body), None)
    # For a class whose __module__ names another module than its own, Python 3.13 returns lines of
    # that other module; earlier versions find nothing.
    if not isinstance(definition, ast.ClassDef) or definition.name != cls.__name__:
        return dict.fromkeys(getattr(cls, "__members__", ()), "")
    found: dict[str, str] = {}
    for node, below in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        else:
            continue
        text = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text = str(below.value.value)
        if not name.startswith("_") and (text or issubclass(cls, enum.Enum)):
            found[name] = text
    return found


def _call(function: Any, name: str) -> list[str]:
    """How it is called, as code."""
    try:
        parameters = [str(p) for p in _parameters(function)]
    except (TypeError, ValueError):
        return []
    text = f"{name}({', '.join(parameters)})"
    if len(text) > 96:
        text = f"{name}(\n    " + ",\n    ".join(parameters) + ",\n)"
    return ["```python", text, "```"]


def _parameters(function: Any) -> list[inspect.Parameter | str]:
    """Parameters without annotations, as they are written, with the marks between their kinds."""
    found: list[inspect.Parameter | str] = []
    before = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not before:
            found.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            found.append("*")
        default = parameter.default
        if isinstance(default, enum.Enum):
            default = _Written(f"{type(default).__name__}.{default.name}")
        found.append(parameter.replace(annotation=parameter.empty, default=default))
        before = parameter.kind
    return found


class _Written:
    """A default, as users type it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _doc(doc: str, owner: Any) -> list[str]:
    """A docstring as Markdown, its sections as tables where they are lists of names."""
    text, sections = split_sections(doc)
    lines = _prose(text)
    for title, body in sections.items():
        if title in _TABLES:
            head = {"Parameters": "parameter", "Raises": "raises", "Attributes": "attribute"}[title]
            lines += ["", f"| {head} | |", "|---|---|", *_rows(body)]
        elif title in ("Returns", "Yields") and "\n    " in body.partition("::")[0]:
            rows = [f"- {head}: {text}" for head, text in _entries(body)]
            lines += ["", f"**{title}**", "", *rows]
        else:
            lines += ["", f"**{title}**", "", *_prose(body)]
    return lines


def _rows(body: str) -> list[str]:
    """A line of a table for each name, or names, with the indented text below it."""
    return [f"| {_names(head)} | {text} |" for head, text in _entries(body)]


def _entries(body: str) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line and not line.startswith(" "):
            found.append((line, []))
        elif found:
            found[-1][1].append(line.strip())
    return [(head, _cell(" ".join(text))) for head, text in found]


def _names(head: str) -> str:
    names, _, kind = head.partition(" : ")
    text = ", ".join(f"`{name}`" for name in names.split(", "))
    return f"{text}: {_marked(kind)}".replace("|", "\\|") if kind else text


def _cell(text: str) -> str:
    return _marked(" ".join(text.split())).replace("|", "\\|")


def _marked(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def _prose(text: str) -> list[str]:
    """Paragraphs; tables, literal blocks and interactive examples as blocks of code."""
    lines: list[str] = []
    for block in _blocks(text):
        rows = block.split("\n")
        if rows[0].startswith(">>> ") or rows[0].startswith("    "):
            lines += ["```python", *textwrap.dedent(block).split("\n"), "```", ""]
        elif rows[0].startswith("==="):
            lines += ["```text", *rows, "```", ""]
        else:
            lines += [*_marked(re.sub(r"::$", ":", block)).split("\n"), ""]
    return lines[:-1]


def _blocks(text: str) -> list[str]:
    """Paragraphs; indented ones that follow one another, as of a literal block, are one."""
    blocks: list[str] = []
    for block in re.split(r"\n(?:[ \t]*\n)+", text):
        if block.startswith("    ") and blocks and blocks[-1].startswith("    "):
            blocks[-1] += f"\n\n{block}"
        else:
            blocks.append(block)
    return blocks


def _anchor(title: str) -> str:
    return title.replace(".", "").lower()

"""The syntax tree of a function, from the file or the notebook's cell that it was defined in."""

from __future__ import annotations

import ast
import linecache
from types import CodeType
from typing import NamedTuple

Definition = ast.FunctionDef | ast.Lambda


class FunctionSource(NamedTuple):
    """A function in its source.

    `node`: its tree, which must not be changed. `class_name`: the class whose private names
    (``self.__x``) it uses.
    """

    node: Definition
    class_name: str | None


class _File(NamedTuple):
    lines: list[str]
    functions: dict[int, list[FunctionSource]]
    """By line: that of `def` or `lambda`, and that of the first decorator."""


_files: dict[str, _File] = {}


def find_source(code: CodeType) -> FunctionSource | None:
    """The source of the function with `code`; `None` where there is none or it has changed."""
    functions = _functions(code.co_filename)
    found = [s for s in functions.get(code.co_firstlineno, ()) if _fits(s.node, code)]
    if len(found) > 1:  # lambdas of one line are told apart by their columns
        positions = set(code.co_positions())
        found = [s for s in found if _position(s.node) in positions]
    return found[0] if len(found) == 1 else None


def _functions(filename: str) -> dict[int, list[FunctionSource]]:
    linecache.checkcache(filename)
    lines = linecache.getlines(filename)
    known = _files.get(filename)
    if known is not None and known.lines is lines:
        return known.functions
    try:
        tree = ast.parse("".join(lines), filename)
    except (SyntaxError, ValueError):
        return {}
    functions: dict[int, list[FunctionSource]] = {}
    _collect(tree, None, functions)
    _files[filename] = _File(lines, functions)
    return functions


def _collect(node: ast.AST, class_name: str | None, found: dict[int, list[FunctionSource]]) -> None:
    for child in ast.iter_child_nodes(node):
        inner = class_name
        if isinstance(child, ast.ClassDef):
            inner = child.name
        elif isinstance(child, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(child, "decorator_list", [])
            for line in {child.lineno, *(d.lineno for d in decorators[:1])}:
                found.setdefault(line, []).append(FunctionSource(child, class_name))
        _collect(child, inner, found)


def _fits(node: Definition, code: CodeType) -> bool:
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    names += [arg.arg for arg in (a.vararg, a.kwarg) if arg is not None]
    given = code.co_varnames[: len(names)]
    return (
        name == code.co_name
        and len(given) == len(names)
        and all(
            # Private names are known by their class, too.
            known == name or (name.startswith("__") and known.endswith(name))
            for name, known in zip(names, given, strict=True)
        )
    )


def _position(node: Definition) -> tuple[int | None, int | None, int | None, int | None]:
    body = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    return body.lineno, body.end_lineno, body.col_offset, body.end_col_offset

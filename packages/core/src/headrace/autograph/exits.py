"""`return` and `continue` within an `if`, moved to where they do not leave a branch.

What follows an `if` of which one branch always returns is the other branch::

    if small:                    if small:
        return a                     result = a
    b = f(a)            ->       else:
    return b                         b = f(a)
                                     result = b
                                 return result

and likewise for `continue` in the body of a loop. Both forms mean the same in Python, whatever the
condition is; but where it is data, the samples of one branch can be joined with those of the other
only in the second form.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from headrace.autograph.places import contains

_N = TypeVar("_N", bound=ast.AST)

RESULT = "_headrace_result"
"""Name of the variable for the return value."""


def move_returns(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function with `return` moved after each `if` that always returns."""
    if not _has_conditional(body, ast.Return):
        return body
    if not _always(body, ast.Return):
        last = body[-1]
        body = [*body, _copied(ast.Return(ast.Constant(None)), last)]
    return _moved(body)


def move_continues(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop without any `continue` at the end of a branch."""
    if not _has_conditional(body, ast.Continue):
        return body
    return _without_continue(body)


def _has_conditional(body: list[ast.stmt], kind: type[ast.stmt]) -> bool:
    return any(not isinstance(s, kind) and contains([s], kind) for s in body)


def _moved(body: list[ast.stmt]) -> list[ast.stmt]:
    """`body` with `return` moved out of its `if` statements and of those within."""
    for place, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            return body
        if not contains([statement], ast.Return):
            continue
        if not isinstance(statement, ast.If):
            for block in _blocks(statement):
                block[:] = _moved(block)
            continue
        rest = body[place + 1 :]
        joined = _with_rest(statement, rest)
        if joined is None:
            statement.body = _moved(statement.body)
            statement.orelse = _moved(statement.orelse)
            continue
        for block in (joined.body, joined.orelse):
            block[:] = _assigned(_moved(block))
        result = _copied(ast.Return(ast.Name(RESULT, ast.Load())), statement)
        # What cannot be reached stays: it may make variables local.
        unreachable = rest if _always([statement], ast.Return) else []
        return [*body[:place], joined, result, *unreachable]
    return body


def _with_rest(statement: ast.If, rest: list[ast.stmt]) -> ast.If | None:
    """The `if` with `rest` in the branch that goes on; `None` if one may or may not return."""
    leaves = [_always(block, ast.Return) for block in (statement.body, statement.orelse)]
    if not any(leaves) or (not all(leaves) and not _always(rest, ast.Return)):
        return None
    body, orelse = (
        list(block) if always else [*block, *rest]
        for block, always in zip((statement.body, statement.orelse), leaves, strict=True)
    )
    return _copied(ast.If(statement.test, body, orelse), statement)


def _assigned(block: list[ast.stmt]) -> list[ast.stmt]:
    """A block that always returns, with an assignment in the place of its `return`."""
    last = block[-1]
    if not isinstance(last, ast.Return):
        return block  # raises
    value = last.value if last.value is not None else _copied(ast.Constant(None), last)
    if isinstance(value, ast.Name) and value.id == RESULT:
        return block[:-1]
    target = ast.Name(RESULT, ast.Store())
    return [*block[:-1], _copied(ast.Assign([target], value), last)]


def _without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    for place, statement in enumerate(body):
        if isinstance(statement, ast.Continue):
            return body[:place] or [_copied(ast.Pass(), statement)]
        if not isinstance(statement, ast.If) or not contains([statement], ast.Continue):
            continue
        rest = body[place + 1 :]
        ends = [_always(block, ast.Continue) for block in (statement.body, statement.orelse)]
        if rest and not any(ends):
            continue
        first, second = (
            _without_continue(block if end else [*block, *rest])
            for block, end in zip((statement.body, statement.orelse), ends, strict=True)
        )
        return [*body[:place], _copied(ast.If(statement.test, first, second), statement)]
    return body


def _always(block: list[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Return True if `block` always ends in a statement of `kind`, or raises."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _always(last.body, kind) and _always(last.orelse, kind)
    return isinstance(last, (kind, ast.Raise))


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    for inner in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
        found += [inner.body]
    return [block for block in found if block]


def _copied(new: _N, old: ast.AST) -> _N:
    return ast.fix_missing_locations(ast.copy_location(new, old))

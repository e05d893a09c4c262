"""Join of two branches: data is merged, equal values stay, other variables have no value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import DivergentBranchesError, HeadraceError, UsageError

if TYPE_CHECKING:
    from headrace.autograph.tracing import Branches


RETURNED = "what the function returns"
"""The name of what `return` gives."""

_INCONSISTENT = (
    "Encountered inconsistent outputs out of the `if/else` control flow statement. Variables need "
    "to be initialized in every code path (both `if` branches)."
)
_DIVERGENT = (
    "Divergent data found in different branches of `if/else` control flow statement. Variables in "
    "all code paths are merged into common output batches. The values assigned to a given variable "
    "need to have the same nesting structure in every code path (both `if` branches)."
)


class Missing:
    """The value of a variable that cannot be read, with the reason."""

    __slots__ = ("error", "message")

    def __init__(self, error: type[HeadraceError], message: str) -> None:
        self.error = error
        self.message = message

    def __repr__(self) -> str:
        return f"<no value: {self.message}>"


def unset(name: str) -> Missing:
    """A variable that had no value before an `if`, and has not got any in its branch yet."""
    return Missing(UsageError, f"The variable {name!r} has no value in this branch.")


def join(
    branches: Branches, condition: Any, if_true: Any, if_false: Any, name: str, line: str
) -> Any:
    """Return variable `name` after an `if` at `line`, given its value in each branch.

    Tuples, lists and dictionaries of the same structure are joined element by element.
    """
    if if_true is if_false:
        return if_true
    for value, branch in ((if_true, "if"), (if_false, "else")):
        if isinstance(value, Missing):
            return Missing(
                UsageError,
                f"{_INCONSISTENT} Variable {name} must also be initialized in the `{branch}` "
                f"branch. Or initialize it before the `if`. Its condition, at {line}, is data: "
                "each sample takes one of the branches.",
            )
    if branches.is_data(if_true) or branches.is_data(if_false):
        return _merged(branches, condition, if_true, if_false, name, line)
    if _is_nested(if_true) and type(if_true) is type(if_false):
        return _join_nested(branches, condition, if_true, if_false, name, line)
    if _same(if_true, if_false):
        return if_true
    return _merged(branches, condition, if_true, if_false, name, line)


def _merged(
    branches: Branches, condition: Any, if_true: Any, if_false: Any, name: str, line: str
) -> Any:
    for value, branch in ((if_true, "if"), (if_false, "else")):
        if value is None and name == RETURNED:
            return Missing(
                DivergentBranchesError,
                f"{_INCONSISTENT} The `{branch}` branch must also have a return statement. The "
                f"condition, at {line}, is data: each sample takes one of the branches.",
            )
        if not branches.is_data(value) and not branches.is_constant(value):
            return Missing(
                DivergentBranchesError,
                f"{_DIVERGENT} Here, {name} is {_kind(branches, if_true)} where the condition at "
                f"{line} holds, and {_kind(branches, if_false)} where it does not. It must be data "
                "or numbers in both.",
            )
    try:
        return branches.merge(condition, if_true, if_false, name)
    except HeadraceError as error:
        # A variable that is not read after the branches may be anything.
        return Missing(type(error), str(error))


def extents_differ(name: str, if_true: Any, if_false: Any, line: str) -> str:
    """The words for lists or dictionaries of other lengths or keys."""
    return (
        f"{_DIVERGENT} Here, {name} has {_extent(if_true)} where the condition at {line} holds, "
        f"and {_extent(if_false)} where it does not."
    )


def _is_nested(value: object) -> bool:
    return isinstance(value, (tuple, list, dict))


def _join_nested(
    branches: Branches, condition: Any, if_true: Any, if_false: Any, name: str, line: str
) -> Any:
    keys, other_keys = (
        list(v) if isinstance(v, dict) else list(range(len(v))) for v in (if_true, if_false)
    )
    if len(keys) != len(other_keys) or set(keys) != set(other_keys):
        return Missing(DivergentBranchesError, extents_differ(name, if_true, if_false, line))
    found = {
        key: join(
            branches, condition, if_true[key], if_false[key], f"{name}, element {key!r}", line
        )
        for key in keys
    }
    missing = next((v for v in found.values() if isinstance(v, Missing)), None)
    if missing is not None:
        return missing
    if isinstance(if_true, dict):
        new = if_true.copy()
        new.update(found)
        return new
    values = list(found.values())
    if all(value is old for value, old in zip(values, if_true, strict=True)):
        return if_true
    if hasattr(if_true, "_fields"):  # a named tuple
        return type(if_true)(*values)
    return type(if_true)(values)


def _same(if_true: object, if_false: object) -> bool:
    """Return True if both are the same plain value, which need not become data."""
    if type(if_true) is not type(if_false):
        return False
    try:
        same = if_true == if_false
    except Exception:  # any class may define `==` as it likes
        return False
    return isinstance(same, bool) and same and repr(if_true) == repr(if_false)


def _kind(branches: Branches, value: object) -> str:
    if branches.is_data(value):
        return "data"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def _extent(value: Any) -> str:
    if isinstance(value, dict):
        return f"the keys {sorted(map(str, value))}"
    return f"{len(value)} elements"

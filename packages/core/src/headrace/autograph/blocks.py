"""The branches of an `if` statement: which ones run, and the variables in and after them."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.autograph.changes import Changes, join_changes
from headrace.autograph.exits import RESULT
from headrace.autograph.joining import RETURNED, join, unset
from headrace.errors import ConditionalExitError
from headrace.graph.user_line import user_line

if TYPE_CHECKING:
    from headrace.autograph.tracing import Branches


class PlainBlocks(contextlib.nullcontext[None]):
    """An `if` on a plain value: one of its branches runs, as ever."""

    is_data = False

    def __init__(self, *, runs_body: bool) -> None:
        super().__init__()
        self.runs_body = runs_body
        self.runs_orelse = not runs_body

    def refuse(self, what: str) -> None:
        """Refuse nothing."""


class DataBlocks:
    """An `if` on data: both branches run, each for its samples.

    It is entered once for each branch.
    """

    is_data = True
    runs_body = True
    runs_orelse = True

    def __init__(
        self,
        branches: Branches,
        condition: Any,
        names: tuple[str, ...],
        frame: FrameType,
    ) -> None:
        self._branches = branches
        self._condition = condition
        self._names = names
        self._line = user_line()
        self._before = self._state(frame)
        self._if_true: dict[str, Any] | None = None
        self._values = self._before
        self.changes = Changes()
        """Items and attributes that the branch at hand changes."""
        self._changes_if_true = self.changes
        self._guard: contextlib.AbstractContextManager[Any, Any] | None = None

    def __enter__(self) -> None:
        self._guard = self._branches.guarded(self._condition, holds=self._if_true is None)
        self._guard.__enter__()

    def __exit__(self, *error: object) -> None:
        guard, self._guard = self._guard, None
        assert guard is not None
        guard.__exit__(*error)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Any:
        """Return the current value of variable `name`."""
        return self._values[name]

    def next_branch(self) -> None:
        """Go from the first branch to the other one: everything is as it was before both."""
        self._if_true = self._state(sys._getframe(1))
        self.changes.undo()
        self.changes = Changes()

    def join(self) -> None:
        """Leave both branches: variables get the joined values."""
        if_true, if_false = self._if_true, self._state(sys._getframe(1))
        changes = self._changes_if_true, self.changes
        self.changes.undo()
        if if_true is None:  # there is no second branch
            if_true, if_false = if_false, self._before
            changes = self.changes, Changes()
        join_changes(*changes, self._join)
        self._values = {
            name: self._join(if_true[name], if_false[name], _NAMES.get(name, repr(name)))
            for name in self._names
        }

    def _join(self, if_true: Any, if_false: Any, name: str) -> Any:
        return join(self._branches, self._condition, if_true, if_false, name, self._line)

    def refuse(self, what: str) -> None:
        """Refuse a statement that leaves a branch."""
        raise ConditionalExitError(
            f"`{what}` at {user_line()} would leave a branch of the condition at {self._line}, "
            "which is data: each sample takes its own branch, but the definition runs once for "
            "all. Assign variables in the branches, or end both of them with it."
        )

    def _state(self, frame: FrameType) -> dict[str, Any]:
        """Return the current values of the variables."""
        local, code = frame.f_locals, frame.f_code
        own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        found: dict[str, Any] = {}
        for name in self._names:
            scope = local if name in own else frame.f_globals
            found[name] = scope[name] if name in scope else unset(name)
        return found


_NAMES = {RESULT: RETURNED}

"""The branches of an `if` statement: which ones run, and what variables are in and behind them."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.autograph.exits import RESULT
from headrace.autograph.joining import RETURNED, Missing, join, unset
from headrace.errors import ConditionalExitError
from headrace.graph.user_line import user_line

if TYPE_CHECKING:
    from headrace.autograph.places import Place
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

    Parameters
    ----------
    branches
        What runs them.
    condition
        The data that it depends on.
    names, places
        What the branches may assign.
    frame
        That of the function with the `if`.
    """

    is_data = True
    runs_body = True
    runs_orelse = True

    def __init__(
        self,
        branches: Branches,
        condition: Any,
        names: tuple[str, ...],
        places: tuple[Place, ...],
        frame: FrameType,
    ) -> None:
        self._branches = branches
        self._condition = condition
        self._names = names
        self._places = places
        self._line = user_line()
        self._before = self._state(frame)
        self._if_true: dict[Any, Any] | None = None
        self._values: dict[Any, Any] = self._before
        self._guard: contextlib.AbstractContextManager[Any, Any] | None = None

    def __enter__(self) -> None:
        self._guard = self._branches.guarded(self._condition, holds=self._if_true is None)
        self._guard.__enter__()

    def __exit__(self, *error: object) -> None:
        guard, self._guard = self._guard, None
        assert guard is not None
        guard.__exit__(*error)  # type: ignore[arg-type]

    def __getitem__(self, name: str) -> Any:
        """What the variable `name` is now."""
        return self._values[name]

    def next_branch(self) -> None:
        """Go from the first branch to the other one: everything is as it was before both."""
        frame = sys._getframe(1)
        self._if_true = self._state(frame)
        for place in self._places:
            _set(frame, place, self._before[place], self._if_true[place])

    def join(self) -> None:
        """Leave both branches: everything is what the branches made of it."""
        frame = sys._getframe(1)
        if_true, if_false = self._if_true, self._state(frame)
        if if_true is None:  # there is no second branch
            if_true, if_false = if_false, self._before
        keys: tuple[str | Place, ...] = (*self._names, *self._places)
        self._values = {
            key: join(
                self._branches,
                self._condition,
                if_true[key],
                if_false[key],
                _shown(key),
                self._line,
            )
            for key in keys
        }
        for place in self._places:
            value = self._values[place]
            if isinstance(value, Missing):
                if value is self._before[place]:
                    continue
                raise value.error(value.message)
            _set(frame, place, value, if_false[place])

    def refuse(self, what: str) -> None:
        """Refuse a statement that leaves a branch.

        Raises
        ------
        ConditionalExitError
            Always.
        """
        raise ConditionalExitError(
            f"`{what}` at {user_line()} would leave a branch of the condition at {self._line}, "
            "which is data: each sample takes its own branch, but the definition runs once for "
            "all. Assign variables in the branches, or end both of them with it."
        )

    def _state(self, frame: FrameType) -> dict[Any, Any]:
        """What variables and places are now."""
        local, code = frame.f_locals, frame.f_code
        own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        found: dict[Any, Any] = {}
        for name in self._names:
            scope = local if name in own else frame.f_globals
            found[name] = scope[name] if name in scope else unset(name)
        for place in self._places:
            found[place] = _get(frame, place)
        return found


def _base(frame: FrameType, place: Place) -> Any:
    """The object whose attribute or item a place is; `Missing` if it is not there."""
    name = place[0]
    value = frame.f_locals.get(name, frame.f_globals.get(name, _NOTHING))  # type: ignore[arg-type]
    for step in place[1:-1]:
        value = _step(value, step)
    return value


def _get(frame: FrameType, place: Place) -> Any:
    return _step(_base(frame, place), place[-1])


def _step(value: Any, step: Any) -> Any:
    if isinstance(value, Missing):
        return value
    try:
        return value[step[1]] if isinstance(step, tuple) else getattr(value, step)
    except (AttributeError, LookupError, TypeError):
        return _NOTHING


def _set(frame: FrameType, place: Place, value: Any, now: Any) -> None:
    """Make a place what it was or is to be, where it is not."""
    if value is now:
        return
    base, step = _base(frame, place), place[-1]
    if isinstance(value, Missing):
        if isinstance(step, tuple):
            del base[step[1]]
        else:
            delattr(base, step)
    elif isinstance(step, tuple):
        base[step[1]] = value
    else:
        setattr(base, step, value)


_NOTHING = unset("it")


def _shown(key: str | Place) -> str:
    if isinstance(key, str):
        return _NAMES.get(key, repr(key))
    steps = (f"[{s[1]!r}]" if isinstance(s, tuple) else f".{s}" for s in key[1:])
    return repr("".join((str(key[0]), *steps)))


_NAMES = {RESULT: RETURNED}

"""The forms a source may have, brought to one: a function of the position in the epoch."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, CheckpointError
from headrace.operators.support.external.adapted import adapted
from headrace.operators.support.external.plain_state import keeps_state, plain
from headrace.types import BatchInfo, SampleInfo


def cycle_policy(cycle: Any) -> str:
    """``"no"``, ``"quiet"`` or ``"raise"``."""
    if cycle is None or cycle is False:
        return "no"
    if cycle is True:
        return "quiet"
    if isinstance(cycle, str) and cycle in ("no", "quiet", "raise"):
        return cycle
    raise ArgumentValueError(
        f'`cycle` is {cycle!r}; it can be False or "no" (stop at the end), True or "quiet" '
        '(start over), or "raise" (stop, and start over after a reset).'
    )


def kind_of(source: Any, cycle: Any) -> str:
    """``"iterable"``, ``"function"`` (without argument) or ``"position"`` (a function of it)."""
    policy = cycle_policy(cycle)
    if inspect.isgenerator(source) and policy != "no":
        raise ArgumentTypeError(
            "Cannot cycle through a generator, it can be run only once. If it comes from a "
            "generator function, pass that function instead as `source`."
        )
    if _is_generator_function(source) or _is_iterable(source):
        return "iterable"
    if not callable(source):
        raise ArgumentTypeError(
            f"`source` is {source!r}; it must be callable, iterable or a "
            "generator function without parameters."
        )
    if cycle is not None:
        raise ArgumentValueError(
            "`cycle` can only be given if `source` is iterable; a function is called "
            "until it raises StopIteration."
        )
    return "position" if takes_one_argument(source) else "function"


def batches_of_epoch(
    source: Any, kind: str, cycle: Any, size: int, *, batch: bool, is_first: bool
) -> float | None:
    """Number of batches of `size` samples in an epoch: infinity without an end, `None` if unknown.

    Of an iterator, whose length may be what is left, or, as in DALI's tutorials, a number of
    samples, nothing is known.
    """
    policy = cycle_policy(cycle)
    if kind == "iterable":
        if policy == "quiet":
            return math.inf
        if hasattr(source, "__next__") or (policy == "no" and not is_first):
            return None
    count = getattr(source, "count_batches", None)
    if callable(count):
        return count(size)  # type: ignore[no-any-return]
    try:
        length = len(source)
    except TypeError:
        return None
    return length if batch else length // size


class Callback:
    """Calls a source; knows what to pass to it and how to rewind it."""

    def __init__(self, source: Any, cycle: Any, *, batch: bool, batch_info: bool) -> None:
        self._batch = batch
        self._batch_info = batch_info
        self._cycle = cycle_policy(cycle)
        self._cycle_is_open = cycle is None
        self._iterable: Iterable[Any] | Callable[[], Iterable[Any]] | None = None
        self._iterator: Iterator[Any] | None = None
        self._function: Callable[..., Any] | None = None
        self._takes_position = False
        self._restarts = 0
        """Times that an iterable was started over."""
        self._passes = 0
        """Times that it was started over after something had been taken from it."""
        self._taken = 0
        """Items taken from it since."""
        self._source = source
        self._keeps_state = keeps_state(source)
        self._classify(adapted(source), cycle)

    def batches(self, size: int, *, is_first: bool) -> float | None:
        """As `batches_of_epoch` says."""
        kind = "function" if self._iterable is None else "iterable"
        return batches_of_epoch(
            self._source, kind, self._cycle, size, batch=self._batch, is_first=is_first
        )

    @property
    def ends_for_good(self) -> bool:
        """True if the source is an iterable for which no `cycle` says what follows its end."""
        return self._iterable is not None and self._cycle_is_open

    def _classify(self, source: Any, cycle: Any) -> None:
        kind = kind_of(source, cycle)
        if kind == "iterable":
            self._iterable = source
            self._begin()
        else:
            self._function = source
            self._takes_position = kind == "position"

    def _restart(self) -> None:
        self._restarts += 1
        self._passes += self._taken > 0
        self._taken = 0
        self._begin()

    def _begin(self) -> None:
        source = self._iterable
        assert source is not None
        self._iterator = iter(source()) if _is_generator_function(source) else iter(source)  # type: ignore[operator,arg-type]

    def begin_anew(self) -> None:
        """Begin an iterable as if nothing had been taken from it."""
        self._restarts = self._passes = self._taken = 0
        if self._iterable is not None:
            self._begin()

    def __call__(self, info: SampleInfo | BatchInfo) -> Any:
        """Get the source's data for position `info`."""
        if self._function is not None:
            if not self._takes_position:
                return self._function()
            if self._batch and not self._batch_info:
                return self._function(info.iteration)
            return self._function(info)
        return self._next()

    def _next(self) -> Any:
        assert self._iterator is not None
        try:
            value = next(self._iterator)
        except StopIteration:
            if self._cycle != "quiet":
                raise
            self._restart()
            value = next(self._iterator)
        self._taken += 1
        return value

    def new_epoch(self) -> None:
        """Rewind what can be rewound."""
        if self._iterable is not None and self._cycle == "raise":
            self._restart()

    # -- checkpoints -----------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """``"own state"`` if the source keeps one, else as `kind_of` says."""
        if self._keeps_state:
            return "own state"
        if self._function is None:
            return "iterable"
        return "position" if self._takes_position else "function"

    def state(self) -> dict[str, Any]:
        """State of the source for `restore`, in types that JSON keeps."""
        if self._keeps_state:
            return {"own": plain(self._source.state_dict(), self._source)}
        if self._function is not None:
            return {}
        return {"restarts": self._restarts, "passes": self._passes, "taken": self._taken}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken, with a source that is at its beginning."""
        if "own" in state:
            self._source.load_state_dict(state["own"])
            if self._iterable is not None:
                self._begin()
        elif self._iterable is not None:
            self.resume(state["restarts"], state["passes"], state["taken"])

    @property
    def is_under_way(self) -> bool:
        """True if the source is a generator that cannot be started over."""
        return has_begun(self._iterable)

    def resume(self, restarts: int, passes: int, taken: int) -> None:
        """Take from an iterable what was taken before, to go on after it."""
        self._restarts, self._passes, self._taken = restarts, passes, 0
        begin_at_pass = getattr(self._iterable, "begin_at_pass", None)
        if begin_at_pass is not None:
            begin_at_pass(passes)
            self._begin()
        else:
            # What draws an order when it is begun, draws it as often as before.
            for number in range(restarts):
                if number < passes and self._iterator is not None:
                    next(self._iterator, None)
                self._begin()
        for _ in range(taken):
            try:
                self._next()
            except StopIteration:
                raise CheckpointError(
                    f"The source has come to its end after {self._taken} of the {taken} "
                    f"{'batches' if self._batch else 'samples'} that were taken before the "
                    "checkpoint. Is it the same data?"
                ) from None


def has_begun(source: Any) -> bool:
    """True if `source` is a generator that has already given items."""
    return inspect.isgenerator(source) and inspect.getgeneratorstate(source) != inspect.GEN_CREATED


def _is_iterable(source: Any) -> bool:
    """True if `iter` takes `source`; a class does not count as its instances."""
    if isinstance(source, type):
        return False
    return hasattr(source, "__iter__") or hasattr(source, "__getitem__")


def _is_generator_function(source: Any) -> bool:
    while True:
        if inspect.isgeneratorfunction(source):
            return True
        inner = getattr(source, "func", None)  # functools.partial
        if inner is None:
            break
        source = inner
    call = getattr(type(source), "__call__", None)  # noqa: B004 - its kind matters
    return (
        not inspect.isfunction(source)
        and not inspect.ismethod(source)
        and inspect.isgeneratorfunction(call)
    )


def takes_one_argument(function: Callable[..., Any]) -> bool:
    """True if a function takes one argument, false if it takes none; others are refused."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins without a signature take nothing of ours
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = [p for p in parameters if p not in positional]
    if isinstance(function, functools.partial):
        # What it was given by name shows as arguments that can be given by name only.
        others = [p for p in others if p.kind is not p.KEYWORD_ONLY or p.default is p.empty]
    if len(positional) > 1 or others:
        if len(positional) > 1:
            found = "more than one positional argument,"
        else:
            kind = others[0].kind
            stars = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "")
            found = f"{kind.name.lower().replace('_', '-')} argument `{stars}{others[0].name}`"
        raise ArgumentTypeError(
            "The `source` callable must accept either 0 or 1 positional arguments to indicate "
            "whether it accepts the batch or sample indexing information. Found "
            f"{found} which is not allowed. Wrap it in a function that takes what is."
        )
    return len(positional) == 1

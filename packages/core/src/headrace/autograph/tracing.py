"""The tracer of conditions on data that is active on this thread, if any."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Protocol


class Branches(Protocol):
    """Interface of a tracer: recognises data, and runs and joins branches on it."""

    def is_data(self, value: object) -> bool:
        """Return True if `value` differs from sample to sample."""
        ...

    def is_constant(self, value: object) -> bool:
        """Return True if `value` can become data that is the same for all samples."""
        ...

    def guarded(
        self, condition: Any, *, holds: bool
    ) -> contextlib.AbstractContextManager[Any, Any]:
        """Run the calls in the block for the samples for which `condition` is `holds`."""
        ...

    def merge(self, condition: Any, if_true: Any, if_false: Any, name: str) -> Any:
        """The samples of `if_true` where `condition` is true, those of `if_false` elsewhere.

        Both are data or constants; `name` says in messages what is merged.
        """
        ...

    def operand(self, value: Any, operation: str, side: str) -> Any:
        """Data for the `side` (``"left"``, ``"right"``) of ``and`` or ``or``, checked."""
        ...

    def negated(self, value: Any) -> Any:
        """Return ``not value`` for data."""
        ...


_local = threading.local()


def current() -> Branches | None:
    """Return the tracer that is active on this thread, or `None`."""
    return getattr(_local, "branches", None)


def package() -> str:
    """The top-level package of the function that is traced."""
    return getattr(_local, "package", "")


@contextlib.contextmanager
def tracing(branches: Branches | None, package: str = "") -> Iterator[None]:
    """Trace conditions on data in rewritten functions that the block calls."""
    before = (current(), getattr(_local, "package", ""))
    _local.branches, _local.package = branches, package
    try:
        yield
    finally:
        _local.branches, _local.package = before

"""Values that are described and not computed yet: what operators hand to a fused consumer."""

from __future__ import annotations

from typing import Any, ClassVar


class LazyValue:
    """A sample on the CPU that is computed when it is asked for.

    An operator that returns such values names their class in `Operator.returns_lazy`. The engine
    passes a value on where the only reader names the class in its `Operator.takes`; for all other
    readers it calls `materialise`. On the GPU, `LazyBatch` is the same for a batch.
    """

    __slots__ = ()

    layout: ClassVar[str] = ""
    """The layout of the data; empty where any will do."""

    def materialise(self, c: Any) -> Any:
        """Compute the value, in memory of `c`, the context that it was returned under."""
        raise NotImplementedError

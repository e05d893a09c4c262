"""Values that are described and not computed yet: what operators hand to a fused consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np


class LazyValue:
    """A sample on the CPU that is computed when it is asked for.

    An operator that returns such values names their class in `Operator.returns_lazy`. The engine
    passes a value on where the only reader names the class in its `Operator.takes`; for all other
    readers it calls `materialise`. On the GPU, `LazyBatch` is the same for a batch.
    """

    __slots__ = ()

    layout: ClassVar[str] = ""
    """The layout of the data; empty where any will do."""

    @property
    def shapes(self) -> np.ndarray:
        """Shapes of the samples, int64 ``(samples, ndim)``, of a value for those of a chunk."""
        raise NotImplementedError

    def materialise(self, c: Any) -> Any:
        """Compute the value, in memory of `c`, the context that it was returned under."""
        raise NotImplementedError


def computed(result: Any, c: Any) -> Any:
    """Result of an operator under the context `c`, its first output computed if it is lazy."""
    if isinstance(result, LazyValue):
        return result.materialise(c)
    if type(result) is tuple and result and isinstance(result[0], LazyValue):
        return result[0].materialise(c), *result[1:]
    return result

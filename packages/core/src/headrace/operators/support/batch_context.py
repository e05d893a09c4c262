"""Context of an operator that works on a batch on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.planning import PlanContext, TensorArguments
from headrace.tensors.gpu.batch import DeviceBatch, as_shapes
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class BatchContext(PlanContext):
    """Context of an operator that queues work on one batch, besides its inputs.

    Parameters
    ----------
    node
        The operator's `OpNode`, for error messages.
    args
        Its constant arguments, not to be changed.
    tensors
        Each argument that is given as a tensor: a batch, an object with `rows` and maybe `dense`,
        all of them as one array; and what converts a row.
    queue
        Where kernels, uploads and scratch memory go.
    indices
        Positions of the samples in the batch of the iteration.
    seed, iteration
        What the random stream depends on.
    sources
        Where each sample came from, if known.
    threads
        Number of CPU threads that the operator may use; 0 if not set.
    """

    of_frames = False
    """True if samples are frames of sequences, which lazy values cannot be assembled into."""

    __slots__ = ("queue", "threads")

    def __init__(
        self,
        node: Any,
        args: SimpleNamespace,
        tensors: TensorArguments,
        queue: Queue,
        indices: Sequence[int],
        seed: int = 0,
        iteration: int = 0,
        sources: list[str] | None = None,
        threads: int = 0,
    ) -> None:
        super().__init__(args, tensors, indices, seed, iteration, sources)
        self.queue = queue
        self.threads = threads
        self.node = node

    def array(self, name: str, dtype: DTypeLike) -> np.ndarray | None:
        """Argument `name` of all samples, as of `PlanContext.array`."""
        found = super().array(name, dtype)
        if found is None or name not in self._tensors or self.queue is None:
            return found
        return self.queue.argument(self, name, found)

    def empty(self, shapes: Any, dtype: DTypeLike, output: int = 0) -> DeviceBatch:
        """Uninitialised memory for an output.

        `shapes` is one shape for all samples, or int64 ``(samples, ndim)``.
        """
        if type(shapes) is tuple:
            return self.queue.empty(shapes, dtype, self.size)
        return self.queue.empty(as_shapes(shapes, self.size), dtype)

    def temp(self, shapes: Any, dtype: DTypeLike) -> DeviceBatch:
        """Uninitialised memory for what lies between input and output."""
        return self.empty(shapes, dtype)

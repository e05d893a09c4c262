"""What an operator is handed while it works on a batch on the GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from penstock.errors import located
from penstock.operators.support.planning import ArgumentColumns, TensorArguments
from penstock.tensors.gpu.batch import DeviceBatch, as_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from penstock.graph.nodes import OpNode
    from penstock.tensors.gpu.queue import Queue


class GpuContext(ArgumentColumns):
    """The `BatchContext` of one step in one iteration.

    Parameters
    ----------
    node
        The operator's node, for error messages.
    args
        Its constant arguments, not to be changed.
    tensors
        Each argument that is given as a tensor: a batch, an object with `rows` and maybe `dense`,
        all of them as one array; and what converts a row.
    queue
        Where the work goes.
    indices
        Positions of the samples in the batch of the iteration.
    seed, iteration
        What the random stream depends on.
    sources
        Where each sample came from, if known.
    threads
        How many threads of the CPU the operator may use; 0 where nobody said.
    """

    of_frames = False

    __slots__ = (
        "_node",
        "_sources",
        "indices",
        "iteration",
        "queue",
        "seed",
        "threads",
    )

    def __init__(
        self,
        node: OpNode,
        args: SimpleNamespace,
        tensors: TensorArguments,
        queue: Queue,
        indices: Sequence[int],
        seed: int = 0,
        iteration: int = 0,
        sources: list[str] | None = None,
        threads: int = 0,
    ) -> None:
        super().__init__(args, tensors, len(indices))
        self.indices = indices
        self.queue = queue
        self.seed = seed
        self.iteration = iteration
        self.threads = threads
        self._node = node
        self._sources = sources

    def empty(self, shapes: Any, dtype: DTypeLike, output: int = 0) -> DeviceBatch:
        """Uninitialised memory for an output."""
        if type(shapes) is tuple:
            return self.queue.empty(shapes, dtype, self.size)
        return self.queue.empty(as_shapes(shapes, self.size), dtype)

    def temp(self, shapes: Any, dtype: DTypeLike) -> DeviceBatch:
        """Uninitialised memory for what lies between input and output."""
        return self.empty(shapes, dtype)

    def source(self, index: int) -> str:
        """File or key that sample `index` of the first input was read from."""
        return self._sources[index] if self._sources is not None else ""

    def located(self, error: BaseException, index: int) -> BaseException:
        """`error` with the place of this operator and sample `index`."""
        return located(error, self._node.where(self.indices[index], self.source(index)))

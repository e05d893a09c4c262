"""What an operator is handed while it works on a batch on the GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError, located
from penstock.tensors.gpu.batch import DeviceBatch, as_shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from penstock.graph.nodes import OpNode
    from penstock.tensors.gpu.queue import Queue


class GpuContext:
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
    size
        Number of samples.
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
        "_tensors",
        "args",
        "iteration",
        "queue",
        "seed",
        "size",
        "threads",
    )

    def __init__(
        self,
        node: OpNode,
        args: SimpleNamespace,
        tensors: dict[str, tuple[Any, Callable[[np.ndarray], Any]]],
        queue: Queue,
        size: int,
        seed: int = 0,
        iteration: int = 0,
        sources: list[str] | None = None,
        threads: int = 0,
    ) -> None:
        self.args = args
        self.queue = queue
        self.size = size
        self.seed = seed
        self.iteration = iteration
        self.threads = threads
        self._node = node
        self._tensors = tensors
        self._sources = sources

    def values(self, name: str) -> list[Any]:
        """Argument `name` of each sample, converted as for `cpu`."""
        found = self._tensors.get(name)
        if found is None:
            return [getattr(self.args, name)] * self.size
        batch, convert = found
        try:
            return [convert(row) for row in batch.rows]
        except (TypeError, ValueError) as error:
            raise ArgumentValueError(f"Argument `{name}`: {error}") from error

    def array(self, name: str, dtype: DTypeLike) -> np.ndarray | None:
        """Argument `name` of all samples as one array ``(samples, ...)``, without conversion."""
        found = self._tensors.get(name)
        if found is None:
            constant = getattr(self.args, name)
            if constant is None:
                return None
            value = np.asarray(constant, dtype)
            return np.broadcast_to(value, (self.size, *value.shape))
        whole: np.ndarray | None = getattr(found[0], "dense", None)
        if whole is not None:
            return whole.astype(dtype, copy=False)
        return stacked(name, found[0].rows, dtype)

    def raw(self, name: str) -> list[np.ndarray]:
        """Argument `name`, given as a tensor, of each sample, without conversion."""
        return self._tensors[name][0].rows  # type: ignore[no-any-return]

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
        return located(error, self._node.where(index, self.source(index)))


def stacked(name: str, rows: list[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    """The values of argument `name`, one a sample, as one array."""
    if not rows:
        return np.empty(0, dtype)
    first = rows[0]
    if first is rows[-1] and all(row is first for row in rows):
        return np.broadcast_to(np.asarray(first, dtype), (len(rows), *first.shape))
    if any(row.shape != first.shape for row in rows):
        raise ShapeError(
            f"Argument `{name}` has values of different shapes: "
            f"{sorted({row.shape for row in rows})}. Give all samples values of one shape."
        )
    return np.array(rows, dtype)

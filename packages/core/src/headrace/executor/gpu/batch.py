"""A batch on the GPU between the stages of an iteration, with the event to wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.operators.support.schema import Spec
from headrace.tensors.gpu import tensor_list as _tensor_lists
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.gpu.runtime import Event
from headrace.types import storage_dtype


def no_samples(device: GpuDevice, spec: Spec) -> GpuBatch:
    """A batch of no samples."""
    shapes = np.zeros((0, spec.ndim or 0), np.int64)
    dtype = storage_dtype(spec.dtype)
    batch = DeviceBatch(device.runtime, (), np.zeros(0, np.uint64), shapes, dtype)
    return GpuBatch(batch, spec, None, None, None)


class GpuBatch:
    """Counterpart on the GPU of `BatchBuffer`; complete from the start.

    `batch`: the samples. `spec`: their type and layout. `sources`: file that each was read from, if
    known. `event`, `stream`: event after which the samples are ready, and its stream; `None` if
    they are.
    """

    __slots__ = ("_rows", "batch", "event", "sources", "spec", "stream")

    def wait(self) -> None:
        """Do nothing: readers on the GPU wait on their streams, and the host reads no samples."""

    dense = None
    """There is no array of all samples in host memory."""
    external = False
    """Other writers to the memory are ordered by the stream."""

    def __init__(
        self,
        batch: DeviceBatch,
        spec: Spec,
        sources: list[str] | None,
        event: Event | None,
        stream: int | None,
    ) -> None:
        self.batch = batch
        self.spec = spec
        self.sources = sources
        self.event = event
        self.stream = stream
        self._rows: list[np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.batch)

    def replaced(self, replacements: Mapping[int, int]) -> GpuBatch:
        """The batch with other samples in the place of failed ones, which share their memory."""
        order = [replacements.get(index, index) for index in range(len(self))]
        batch = self.batch.taken(np.array(order))
        sources = self.sources
        if sources is not None:
            sources = [sources[index] for index in order]
        return GpuBatch(batch, self.spec, sources, self.event, self.stream)

    def taken(self, places: np.ndarray) -> GpuBatch:
        """The samples at these places, in the same memory: see `headrace.executor.guards`."""
        sources = self.sources
        if sources is not None:
            sources = [sources[index] for index in places.tolist()]
        return GpuBatch(self.batch.taken(places), self.spec, sources, self.event, self.stream)

    @property
    def rows(self) -> list[np.ndarray]:
        """Arrays with type and shape of the samples, for operators that look at nothing else.

        They have no memory: all elements are one and the same.
        """
        if self._rows is None:
            element = np.zeros((), self.batch.dtype)
            self._rows = [
                np.broadcast_to(element, tuple(shape)) for shape in self.batch.shapes.tolist()
            ]
        return self._rows

    def tensor_list(self) -> Any:
        """The batch as users see it."""
        return _tensor_lists.TensorListGPU._from_batch(
            self.batch, self.spec.layout, self.spec.dtype, self.sources, self.event, self.stream
        )

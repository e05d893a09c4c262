"""Values passed between operators of dynamic mode: finished batches, and references to later
ones.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.operators.support.schema import Spec
from headrace.tensors.tensor_list import TensorListCPU

if TYPE_CHECKING:
    from headrace.executor.cpu.batch import BatchBuffer


class HostValue:
    """A finished batch in host memory.

    Attributes
    ----------
    rows
        One C-contiguous array a sample. Never changed.
    spec
        Element type, number of axes and layout of the samples.
    sources
        Where each sample was read from, if known.
    dense
        The whole batch as one array ``(samples, ...)``, if it is one.
    external
        True if others may write to the memory: it was wrapped and not copied.
    """

    __slots__ = ("dense", "external", "rows", "sources", "spec")

    event = None
    """Return at once: a finished batch needs no wait."""
    batch = None
    """There is no batch in device memory."""
    scanned = None
    """Headers of encoded images have not been read."""
    segments = None
    """No page-locked memory is known to hold all samples."""

    def __init__(
        self,
        rows: list[np.ndarray],
        spec: Spec,
        sources: Sequence[str] | None = None,
        dense: np.ndarray | None = None,
        *,
        external: bool = False,
    ) -> None:
        self.rows = rows
        self.spec = spec
        self.sources = sources
        self.dense = dense
        self.external = external

    def note_upload(self) -> None:
        """Nothing is to be learned from it."""

    @classmethod
    def of_buffer(cls, buffer: BatchBuffer) -> HostValue:
        """The finished batch that an execution has filled."""
        if buffer.event is not None:
            batch = buffer.tensor_list()  # copied out of page-locked memory, once it is there
            return cls(batch._memory.rows, buffer.spec, buffer.sources, batch._memory.dense)
        batch = buffer.tensor_list()
        spec = buffer.spec
        rows = batch._memory.rows
        if spec.ndim is None and rows:
            spec = spec._replace(ndim=rows[0].ndim)
        return cls(rows, spec, buffer.sources, batch._memory.dense)

    @classmethod
    def of_list(cls, batch: TensorListCPU, *, external: bool = False) -> HostValue:
        """The samples of a batch of `headrace.tensors`, shared."""
        memory = batch._memory
        spec = Spec(batch._dtype, batch._ndim, batch._layout)
        return cls(memory.rows, spec, batch._sources, memory.dense, external=external)

    def tensor_list(self) -> TensorListCPU:
        """The batch as a `headrace.tensors.TensorListCPU` that shares memory."""
        spec = self.spec
        if self.dense is not None:
            return TensorListCPU._from_dense(self.dense, spec.layout, self.sources, spec.dtype)
        return TensorListCPU._from_samples(
            list(self.rows), spec.layout, spec.dtype, self.sources, spec.ndim
        )

    def wait(self) -> None:
        """Return at once: the samples are there."""

    def __len__(self) -> int:
        return len(self.rows)


class ValueProducer(Protocol):
    """Producer of values: a call under way, a reader that reads ahead, ..."""

    def ensure(self) -> None:
        """Return when the values of all references are there."""


class ValueReference:
    """One output of a call: the value, or who makes it.

    Attributes
    ----------
    owner
        Who makes the value; `None` once it is there.
    value
        A `HostValue`, or a `GpuBatch` on a GPU; `None` until it is there.
    spec
        What is known of the value from the start.
    size
        Number of samples; `None` for a single tensor, whose value has one.
    device
        ``"cpu"``, or the number of a GPU.
    uses
        One entry for each call that reads the reference.
    handle
        Weak reference to the user's `Tensor` or `Batch`. A value without a holder need not be kept.
    """

    __slots__ = ("__weakref__", "device", "handle", "owner", "size", "spec", "uses", "value")

    def __init__(
        self,
        spec: Spec,
        size: int | None,
        value: Any = None,
        owner: ValueProducer | None = None,
        device: int | str = "cpu",
    ) -> None:
        self.owner = owner
        self.value = value
        self.spec = spec
        self.size = size
        self.device = device
        self.uses: list[None] = []
        self.handle: weakref.ref[Any] | None = None

    def get(self) -> Any:
        """The value, when it is there."""
        if self.value is None:
            owner = self.owner
            if owner is not None:  # else the value has come this very moment
                owner.ensure()
        return self.value

    @property
    def is_held(self) -> bool:
        """True if a user may still ask for the value."""
        return self.handle is not None and self.handle() is not None


class DerivedValue:
    """Makes the value of a reference from those of others, with hardly any work."""

    __slots__ = ("_function", "_reference", "_sources")

    def __init__(self, sources: Sequence[ValueReference], function: Callable[..., Any]) -> None:
        self._sources = tuple(sources)
        self._function = function
        self._reference: weakref.ref[ValueReference] | None = None

    def ensure(self) -> None:
        """Return when the value is there."""
        reference = self._reference() if self._reference is not None else None
        sources = self._sources
        if reference is None or reference.value is not None:
            return
        reference.value = self._function(*[source.get() for source in sources])
        reference.owner = None


def derived(
    sources: Sequence[ValueReference],
    function: Callable[..., Any],
    spec: Spec,
    size: int | None,
    device: int | str,
) -> ValueReference:
    """A reference whose value is made from those of others: now, if they are there."""
    if all(source.value is not None for source in sources):
        return ValueReference(spec, size, function(*[s.value for s in sources]), None, device)
    owner = DerivedValue(sources, function)
    reference = ValueReference(spec, size, None, owner, device)
    owner._reference = weakref.ref(reference)
    for source in sources:
        source.uses.append(None)
    return reference


def part_of(value: Any, numbers: Sequence[int]) -> Any:
    """The batch of some samples of a value, shared."""
    sources = None if value.sources is None else [value.sources[n] for n in numbers]
    batch = value.batch
    if batch is None:
        value.wait()
        rows = [value.rows[n] for n in numbers]
        external = getattr(value, "external", False)
        dense = None
        whole = value.dense
        if whole is not None and len(numbers) == 1:
            dense = whole[numbers[0] : numbers[0] + 1]
        return HostValue(rows, value.spec, sources, dense, external=external)
    from headrace.executor.gpu.batch import GpuBatch

    part = batch.taken(np.array(list(numbers), np.intp))
    return GpuBatch(part, value.spec, sources, value.event, value.stream)


def repeated(value: Any, size: int) -> Any:
    """A batch whose samples are all the only one of `value`, shared."""
    batch = value.batch
    if batch is None:
        value.wait()
        sources = None if value.sources is None else [value.sources[0]] * size
        external = getattr(value, "external", False)
        return HostValue([value.rows[0]] * size, value.spec, sources, external=external)
    from headrace.executor.gpu.batch import GpuBatch

    part = batch.taken(np.zeros(size, np.intp))
    sources = None if value.sources is None else [value.sources[0]] * size
    return GpuBatch(part, value.spec, sources, value.event, value.stream)


def with_spec(value: Any, spec: Spec) -> Any:
    """The same data with another layout."""
    batch = value.batch
    if batch is None:
        value.wait()
        external = getattr(value, "external", False)
        return HostValue(value.rows, spec, value.sources, value.dense, external=external)
    from headrace.executor.gpu.batch import GpuBatch

    return GpuBatch(batch, spec, value.sources, value.event, value.stream)


def on_host(value: Any) -> HostValue:
    """A value in host memory in memory that users may keep, when it is there."""
    if isinstance(value, HostValue):
        return value
    return HostValue.of_buffer(value)

"""The supply line of an external source that runs in processes or threads of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError
from headrace.operators.support.external.callback import batches_of_epoch, has_begun
from headrace.operators.support.external.data import check_uniform, common_layout_of, own_copies
from headrace.operators.support.external.device_data import batch_on_gpu
from headrace.operators.support.external.input_queue import (
    AnyOutputBatch,
    Declared,
    InputQueue,
    OutputBatch,
    empty_batch,
)
from headrace.operators.support.external.parallel.ahead import ForwardAhead, IndexedAhead
from headrace.operators.support.external.parallel.tasks import traits_of
from headrace.tensors.gpu.tensor_list import TensorListGPU

if TYPE_CHECKING:
    from headrace.operators.support.external.parallel.wire_format import OutputSamples
    from headrace.operators.support.external.parallel.workers import Workers


class ParallelInputQueue(InputQueue):
    """Delivers batches that workers make."""

    def __init__(
        self,
        source: Any,
        outputs: list[Declared],
        *,
        threads: bool,
        depth: int | None,
        bytes_per_sample: int,
        **how: Any,
    ) -> None:
        cycle, single = how.pop("cycle"), how["single"]
        super().__init__(None, outputs, cycle=None, repeat_last=False, **how)
        self.source = source
        self.traits = traits_of(
            source,
            cycle=cycle,
            batch=how["batch"],
            batch_info=how["batch_info"],
            num_outputs=None if single else len(outputs),
            dtypes=tuple(declared.dtype for declared in outputs),
            bytes_per_sample=bytes_per_sample,
        )
        self.threads = threads
        """True if the workers are threads, and not processes."""
        self._depth = depth
        self._ahead: IndexedAhead | ForwardAhead | None = None

    @property
    def has_source(self) -> bool:
        """True."""
        return True

    def batches(self, size: int, *, is_first: bool) -> float | None:
        """As `batches_of_epoch` says."""
        traits = self.traits
        return batches_of_epoch(
            self.source, traits.kind, traits.cycle, size, batch=traits.batch, is_first=is_first
        )

    @property
    def kind(self) -> str:
        """As `kind_of` says; workers cannot tell the states that their sources keep."""
        return self.traits.kind

    def state(self) -> dict[str, Any]:
        """State of the source, as the consumer sees it."""
        return {} if self._ahead is None else self._ahead.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken; workers do it, before anything else."""
        assert self._ahead is not None
        self._ahead.restore(state)

    @property
    def ends_for_good(self) -> bool:
        """True if the source is an iterable for which no `cycle` says what follows its end."""
        return self.traits.kind == "iterable" and self.traits.cycle is None

    @property
    def is_under_way(self) -> bool:
        """True if the source is a generator that cannot be started over."""
        return has_begun(self.source)

    def attach(self, workers: Workers, number: int, places: list[int]) -> None:
        """Take `workers`, to which this is source `number`."""
        depth = self._depth
        if depth is None:
            depth = workers.size if self.traits.indexed and self.traits.batch else 1
        if self.traits.indexed:
            self._ahead = IndexedAhead(workers, number, self.source, self.traits, depth)
        else:
            self._ahead = ForwardAhead(workers, number, self.traits, depth, places)

    @property
    def copies_to(self) -> list[Any] | None:
        """Memory pool that worker threads copy the data to; None for no copies."""
        return None if self._no_copy else self._pools

    def drop(self) -> None:
        """Let go of batches that were made ahead: the pipeline has ended."""
        if self._ahead is not None:
            self._ahead.drop()

    def take_from_gpu(self, data: Any) -> TensorListGPU:
        """Take the data that a thread's source returned on a GPU, ordered after the work that this
        thread has queued.
        """
        copy = self._on_gpu and not self._no_copy
        batch = batch_on_gpu(data, self._cuda_stream, copy=copy)
        assert batch is not None
        return batch

    def begin_anew(self) -> None:
        """Let go of the workers: those that come next begin at the beginning."""
        self._ahead = None

    def new_epoch(self) -> None:
        """Rewind the source."""
        if self._ahead is not None:
            self._ahead.new_epoch()

    def collect(self, size: int, iteration: int, epoch: int) -> list[AnyOutputBatch]:
        """The batch of each output; as of `InputQueue`."""
        assert self._ahead is not None
        partials = self._ahead.collect(size, iteration, epoch)
        return [self._delivery(k, [p[k] for p in partials]) for k in range(len(self.outputs))]

    def _delivery(self, output: int, parts: list[OutputSamples]) -> AnyOutputBatch:
        if any(part.on_gpu is not None for part in parts):
            return self._delivery_from_gpu(output, _joined(parts), None)
        samples = [sample for part in parts for sample in part.samples]
        if not samples:
            raise empty_batch()
        dense = parts[0].dense if len(parts) == 1 else None
        if len(parts) > 1:
            check_uniform(samples)
        spec = self._checked_host(output, samples, None, common_layout_of(p.layout for p in parts))
        pool = self._pools[output]
        if not self.threads and not pool.is_ordinary:
            samples, dense = own_copies(samples, pool)
        return OutputBatch(samples, dense, spec)


def _joined(parts: list[OutputSamples]) -> TensorListGPU:
    """Batches on a GPU, one after the other."""
    if len(parts) == 1:
        whole: TensorListGPU = parts[0].on_gpu
        return whole
    samples: list[Any] = []
    for part in parts:
        batch = part.samples if part.on_gpu is None else part.on_gpu
        samples += [batch[k] for k in range(len(batch))]
    joined = batch_on_gpu(samples, None, copy=False)  # it says so if some are on the host
    assert joined is not None
    return joined


def check_parallel(value: Any) -> bool | str:
    """Check `parallel`: processes (`True`) for a source that several can share, processes or
    threads by name, or neither (`False`).
    """
    if isinstance(value, str) and value in ("threads", "processes"):
        return value
    if isinstance(value, (bool, int)) or value is None:
        return bool(value)
    raise ArgumentTypeError(f'expected True or "processes", "threads", or False, got {value!r}')

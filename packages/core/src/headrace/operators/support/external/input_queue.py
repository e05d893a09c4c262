"""The input queue of one external source: what it delivers to each iteration."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    DataTypeError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
    UsageError,
)
from headrace.layout import check_layout
from headrace.operators.support.external.callback import Callback
from headrace.operators.support.external.data import (
    as_arrays,
    check_uniform,
    common_layout,
    own_copies,
    per_output,
    samples_of,
)
from headrace.operators.support.external.device_data import batch_on_gpu, check_device
from headrace.operators.support.schema import Spec
from headrace.tensors.gpu.tensor_list import TensorListGPU
from headrace.tensors.pool import HOST_POOL, HostPool
from headrace.types import BatchInfo, DALIDataType, SampleInfo
from headrace.types.dtypes import DALI_OF_NUMPY, SIDE_TYPES


@dataclass(slots=True)
class OutputBatch:
    """One batch of one output, on the host."""

    samples: list[np.ndarray] | None
    dense: np.ndarray | None
    """All of them as one array, if they lie in one piece; `samples` may be `None` then."""
    spec: Spec

    def __len__(self) -> int:
        return len(self.dense if self.samples is None else self.samples)  # type: ignore[arg-type]


@dataclass(slots=True)
class DeviceOutputBatch:
    """One batch of one output, on a GPU."""

    batch: TensorListGPU
    spec: Spec
    size: int

    def __len__(self) -> int:
        return self.size


AnyOutputBatch = OutputBatch | DeviceOutputBatch


@dataclass(slots=True)
class Declared:
    """Properties that the user declared for one output."""

    layout: str | None = None
    dtype: DALIDataType | None = None
    ndim: int | None = None
    seen: Spec | None = None
    """Properties found in the first batch; later ones must agree."""
    seen_as: tuple[DALIDataType, int, str | None, str] | None = None
    """Properties of the last batch: type, number of axes, layout given with it, and its own."""


class InputQueue:
    """Batches of an external source: what its `source` returns, or `feed_input` has put in."""

    def __init__(
        self,
        source: Any,
        outputs: list[Declared],
        *,
        single: bool,
        cycle: Any,
        batch: bool,
        batch_info: bool,
        no_copy: bool,
        repeat_last: bool,
        blocking: bool = False,
        cuda_stream: Any = None,
    ) -> None:
        self.outputs = outputs
        self.name = ""
        self._single = single
        self._batch = batch
        self._no_copy = no_copy
        self._cuda_stream = cuda_stream
        self._device_id: int | None = None
        self._on_gpu = False
        self._pools: list[HostPool] = [HOST_POOL] * len(outputs)
        self._repeat_last = repeat_last
        self._expect_batch_size = getattr(source, "expect_batch_size", None)
        self.describes = False
        """True if frames of videos are described in place of decoded, for a GPU's decoders."""
        self._callback = (
            None if source is None else Callback(source, cycle, batch=batch, batch_info=batch_info)
        )
        self.blocking = blocking
        """True if `run` waits for the next batch to be fed."""
        self._queue: deque[list[AnyOutputBatch]] = deque()
        self._last: list[AnyOutputBatch] | None = None

    @property
    def has_source(self) -> bool:
        """True if data comes from a source, and not by `feed_input`."""
        return self._callback is not None

    def batches(self, size: int, *, is_first: bool) -> float | None:
        """Number of batches in an epoch, as `batches_of_epoch` says; `None` for data that
        is fed.
        """
        return None if self._callback is None else self._callback.batches(size, is_first=is_first)

    def ready(self) -> bool:
        """True if a batch is available now."""
        return (
            self.has_source or bool(self._queue) or (self._repeat_last and self._last is not None)
        )

    def place(self, device_id: int | None, on_gpu: bool, pools: list[HostPool]) -> None:
        """Tell where the data is wanted."""
        self._device_id = device_id
        self._on_gpu = on_gpu
        self._pools = pools

    def prepare(
        self, data: Any, layout: str | None = None, cuda_stream: Any = None
    ) -> list[AnyOutputBatch]:
        """Check a batch to be fed; the result is for `append`."""
        if self.has_source:
            raise UsageError(
                f'Cannot use `feed_input` on the external source "{self.name}", which has a '
                "`source` of its own."
            )
        if data is None:
            raise DataTypeError(
                f'None was fed to the external source "{self.name}"; `feed_input` takes an array '
                "whose outermost dimension is the batch, or a list of samples."
            )
        stream = self._cuda_stream if cuda_stream is None else cuda_stream
        try:
            return [self._batch_delivery(0, data, layout, stream)]
        except Exception as error:
            error.add_note(f'raised for what was fed to the external source "{self.name}"')
            raise

    def append(self, batch: list[AnyOutputBatch]) -> None:
        """Append a batch to the queue."""
        self._queue.append(batch)

    def waiting(self) -> list[np.ndarray]:
        """The data on the host that was fed and not used yet, or may be used again."""
        batches = [*self._queue, self._last or ()]
        given = [each for batch in batches for each in batch]
        hosts = [each for each in given if isinstance(each, OutputBatch)]
        return [
            array
            for each in hosts
            for array in ([each.dense] if each.dense is not None else each.samples or ())
        ]

    def clear(self) -> None:
        """Forget everything that was fed and not used."""
        self._queue.clear()

    def new_epoch(self) -> None:
        """Rewind the source."""
        if self._callback is not None:
            self._callback.new_epoch()

    def begin_anew(self) -> None:
        """Forget what was fed, and begin a source at its beginning, where it has one."""
        self._queue.clear()
        self._last = None
        if self._callback is not None:
            self._callback.begin_anew()

    @property
    def kind(self) -> str:
        """Origin of the data: ``"fed"``, or the kind of source, as `Callback.kind`."""
        return "fed" if self._callback is None else self._callback.kind

    def state(self) -> dict[str, Any]:
        """State of the source, in types that JSON keeps; fed data is not part of it."""
        return {} if self._callback is None else self._callback.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken; as of `Callback`."""
        if self._callback is not None:
            self._callback.restore(state)

    @property
    def ends_for_good(self) -> bool:
        """True if the source is an iterable for which no `cycle` says what follows its end."""
        return self._callback is not None and self._callback.ends_for_good

    @property
    def is_under_way(self) -> bool:
        """True if the source is a generator that cannot be started over."""
        return self._callback is not None and self._callback.is_under_way

    def collect(self, size: int, iteration: int, epoch: int) -> list[AnyOutputBatch]:
        """The batch of each output for iteration number `iteration` of epoch `epoch`."""
        if self._callback is None:
            if self._queue:
                self._last = self._queue.popleft()
            elif not self._repeat_last or self._last is None:
                raise OutOfRangeError(
                    f'The external source "{self.name}" was not fed: call `feed_input` (or pass '
                    "the batch to `run`) for every iteration."
                )
            return self._last
        if self._expect_batch_size is not None:
            self._expect_batch_size(size)
        if self._batch:
            data = self._callback(BatchInfo(iteration, epoch))
            return [
                self._batch_delivery(k, each, None, self._cuda_stream)
                for k, each in enumerate(self._per_output(data))
            ]
        columns: list[list[Any]] = [[] for _ in self.outputs]
        for k in range(size):
            info = SampleInfo(iteration * size + k, k, iteration, epoch)
            for column, value in zip(columns, self._per_output(self._callback(info)), strict=True):
                column.append(value)
        return [self._sample_delivery(k, column) for k, column in enumerate(columns)]

    def _per_output(self, data: Any) -> list[Any]:
        return per_output(data, None if self._single else len(self.outputs))

    def _batch_delivery(
        self, output: int, data: Any, layout: str | None, stream: Any
    ) -> AnyOutputBatch:
        on_gpu = batch_on_gpu(data, stream, copy=self._on_gpu and not self._no_copy)
        if on_gpu is not None:
            return self._delivery_from_gpu(output, on_gpu, layout)
        samples, own_layout = samples_of(data, self.outputs[output].dtype)
        if not len(samples):
            raise empty_batch()
        if isinstance(samples, np.ndarray):
            ndim = samples.ndim - 1
            spec = self._checked(output, DALI_OF_NUMPY[samples.dtype], ndim, layout, own_layout)
            if not self._no_copy:
                samples = self._pools[output].copy_of(samples)
            return OutputBatch(None, np.ascontiguousarray(samples), spec)
        return self._host_delivery(output, samples, layout, own_layout)

    def _sample_delivery(self, output: int, values: list[Any]) -> AnyOutputBatch:
        copy = self._on_gpu and not self._no_copy
        on_gpu = batch_on_gpu(values, self._cuda_stream, copy=copy)
        if on_gpu is not None:
            return self._delivery_from_gpu(output, on_gpu, None)
        samples = as_arrays(values, self.outputs[output].dtype)
        return self._host_delivery(output, samples, None, common_layout(values))

    def _host_delivery(
        self, output: int, samples: list[np.ndarray], fed_layout: str | None, own_layout: str
    ) -> OutputBatch:
        check_uniform(samples)
        spec = self._checked_host(output, samples, fed_layout, own_layout)
        if self._no_copy:
            return OutputBatch(samples, None, spec)
        return OutputBatch(*own_copies(samples, self._pools[output]), spec)

    def _delivery_from_gpu(
        self, output: int, batch: TensorListGPU, layout: str | None
    ) -> AnyOutputBatch:
        size = len(batch)
        if not size:
            raise empty_batch()
        spec = self._checked(output, batch._dtype, batch._ndim, layout, batch._layout)
        if self._on_gpu:
            check_device(batch, self._device_id)
            return DeviceOutputBatch(batch, spec, size)
        memory = batch.as_cpu()._memory
        return OutputBatch(memory.rows, memory.dense, spec)

    def _checked_host(
        self, output: int, samples: list[np.ndarray], fed_layout: str | None, own_layout: str
    ) -> Spec:
        first = samples[0]
        dtype = DALI_OF_NUMPY[first.dtype]
        return self._checked(output, dtype, first.ndim, fed_layout, own_layout)

    def _checked(
        self, output: int, dtype: DALIDataType, ndim: int, fed_layout: str | None, own_layout: str
    ) -> Spec:
        declared = self.outputs[output]
        if declared.dtype in SIDE_TYPES:  # as which it was encoded
            dtype = declared.dtype
        told = dtype, ndim, fed_layout, own_layout
        if declared.seen is not None and declared.seen_as == told:
            return declared.seen
        if declared.dtype not in (None, DALIDataType.NO_TYPE, dtype):
            raise DataTypeError(
                f"ExternalSource expected data of type {declared.dtype.name.lower()} and got: "
                f"{dtype.name.lower()}. Make it data of that type, give another `dtype` or "
                "none, and let `fn.cast` convert it."
            )
        if declared.ndim is not None and declared.ndim != ndim:
            raise ShapeError(
                f"ExternalSource expected data with {declared.ndim} dimensions and got {ndim} "
                "dimensions."
                + (
                    f' The layout "{declared.layout}" is to name the axes of one sample; a batch '
                    "has no axis of its own in it. A source that returns one sample at a time is "
                    "given `batch=False`."
                    if declared.layout
                    else " `ndim` counts the axes of one sample, without that of the batch."
                )
            )
        if fed_layout is not None and not isinstance(fed_layout, str):
            raise ArgumentTypeError(f"The layout of a batch is a string, got {fed_layout!r}.")
        layout = fed_layout or own_layout
        if declared.layout:
            if layout and layout != declared.layout and not self.has_source:
                raise LayoutError(
                    f'Expected data with layout: "{declared.layout}" and got: "{layout}".'
                )
            layout = declared.layout
        spec = Spec(dtype, ndim, check_layout(layout, ndim))
        if declared.seen is not None and declared.seen != spec:
            _check_change(declared.seen, spec)
        declared.seen, declared.seen_as = spec, told
        return spec


def _check_change(before: Spec, now: Spec) -> None:
    """Let a layout be told late; all else must stay as it was."""
    fed = "of the data fed to the external source has changed from"
    if now.dtype != before.dtype:
        raise DataTypeError(
            f"Type {fed} the previous iteration. Type in the previous iteration was "
            f"{before.dtype.name.lower()} and the current type is {now.dtype.name.lower()}. "
            "`fn.cast` makes data of one type."
        )
    if now.ndim != before.ndim:
        raise ShapeError(
            f"Number of dimensions {fed} previous iteration. Dimensionality in the previous "
            f"iteration was {before.ndim} and the current is {now.ndim}. All batches of a source "
            "have as many dimensions."
        )
    if before.layout and now.layout != before.layout:
        raise LayoutError(
            f"Layout {fed} previous iteration. Layout in the previous iteration was "
            f'"{before.layout}" and the current is "{now.layout}". Give the external source a '
            "`layout` of its own, which goes for all batches."
        )


def empty_batch() -> ShapeError:
    """Make the error for a batch without samples."""
    return ShapeError("External data came as an empty batch; a batch has samples.")

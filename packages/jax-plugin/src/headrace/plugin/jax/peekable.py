"""Iterators that can show the next batch without handing it out, as Google's CLU wants them."""

from __future__ import annotations

import concurrent.futures
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch
from headrace.plugin.iterator_state import can_make_checkpoints, check_enabled
from headrace.plugin.jax.decorator import data_iterator, make_decorator
from headrace.plugin.jax.documentation import with_parameters_of
from headrace.plugin.jax.element_spec import register_with_clu, spec_of
from headrace.plugin.jax.iterator import DALIGenericIterator
from headrace.plugin.jax.placement import Placement
from headrace.tracebacks import public, public_methods

if TYPE_CHECKING:
    from os import PathLike
    from typing import Self

    from jax.sharding import Sharding

    from headrace.pipeline import Pipeline


@with_parameters_of(DALIGenericIterator)
@public_methods
class DALIGenericPeekableIterator(DALIGenericIterator):
    """Iterates over batches as JAX's arrays, and shows the next one without handing it out.

    All batches must have the same shapes and element types, which `element_spec` tells. Any number
    of threads may use an iterator; each batch goes to one of them. It has the methods that CLU
    (Common Loop Utils) expects of a ``PeekableDatasetIterator``, and counts as a
    ``DatasetIterator`` where CLU was imported before; CLU is not needed.

    Parameters
    ----------
    pipelines, output_map, size, reader_name, auto_reset, last_batch_padded, last_batch_policy
        See `DALIGenericIterator`.
    prepare_first_batch, sharding, pmap_compatible, devices
        See `DALIGenericIterator`.

    Raises
    ------
    ShapeError
        In a step, if an output has another shape or type than before.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: Sharding | Mapping[str, Sharding] | None = None,
        pmap_compatible: bool | None = None,
        *,
        devices: Sequence[jax.Device] | None = None,
    ) -> None:
        # Re-entrant, because the base calls `reset` and `next` from one another.
        self._lock = threading.RLock()
        self._peeked: dict[str, jax.Array] | None = None
        self._peeking: concurrent.futures.Future[dict[str, jax.Array]] | None = None
        self._before_peeked: list[bytes] = []
        """Checkpoints from before the batch that was shown."""
        self._end_was_shown = False
        self._handed_out = 0
        """Batches of this epoch that the user has got, those that were only shown left out."""
        self._element_spec: dict[str, Any] | None = None
        self._beyond: list[int] = []
        """Samples of the batch assembled last that are not the epoch's, for each pipeline."""
        self._last_beyond: list[int] | None = None
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            sharding,
            pmap_compatible,
            devices=devices,
        )
        register_with_clu(type(self))

    def __iter__(self) -> Self:
        """Begin an epoch: the next one, if the user has got anything of the current one."""
        with self._lock:
            if self._handed_out or self._peeked is None:
                self.reset()
            return self

    def __next__(self) -> dict[str, jax.Array]:
        """The next batch: the one that was shown, if any was."""
        with self._lock:
            try:
                found = self._shown()
            except StopIteration:
                self._forget()
                raise
            self._peeked = self._peeking = None
            self._handed_out += 1
            self._last_beyond = self._beyond
            return found

    def get_next(self) -> dict[str, jax.Array]:
        """The next batch; CLU's old name of `next`."""
        return self.__next__()

    def peek(self) -> dict[str, jax.Array]:
        """The next batch, which the next step gives again.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        with self._lock:
            if self._peeked is None and can_make_checkpoints(self._pipes):
                self._before_peeked = super().checkpoints()
            return self._shown()

    def peek_async(self) -> concurrent.futures.Future[dict[str, jax.Array]]:
        """Begin to `peek`, in a thread, and return at once.

        Returns
        -------
        A future of what `peek` returns or raises. All calls until the next step return the same.
        If the next step comes before the thread does, the future has the batch after it.
        """
        with self._lock:
            if self._peeking is None:
                self._peeking = concurrent.futures.Future()
                name = "headrace-peek"
                # A daemon: it must not keep a program from ending.
                threading.Thread(
                    target=_fulfil, args=(self._peeking, self.peek), name=name, daemon=True
                ).start()
            return self._peeking

    def reset(self) -> None:
        """Begin the next epoch; a batch that was shown is thrown away."""
        with self._lock:
            self._forget()
            super().reset()

    def __len__(self) -> int:
        """Number of batches in the epoch: in this one if it is under way, else in the next."""
        with self._lock:
            return super().__len__()

    @property
    def element_spec(self) -> dict[str, Any]:
        """Element types and shapes of all outputs, by their names; waits for the first batch."""
        with self._lock:
            if self._element_spec is None:
                self.peek()
            assert self._element_spec is not None
            return dict(self._element_spec)

    @property
    def is_nonpadding(self) -> jax.Array:
        """For each sample of the batch that was handed out last, whether it belongs to the epoch.

        False for samples that fill the last batch up. Before the first batch, for that one.

        Returns
        -------
        bool ``(batch,)``, sharded like the outputs.
        """
        with self._lock:
            if self._last_beyond is None:
                self.peek()
            beyond = self._beyond if self._last_beyond is None else self._last_beyond
            rows = [np.arange(self.batch_size) < self.batch_size - count for count in beyond]
            return self._assembly.flags(rows)

    def checkpoints(self) -> list[bytes]:
        """State that each pipeline needs to go on after the batches that were handed out.

        A batch that was only shown is the first one of an iterator that goes on from here. See
        `DALIGenericIterator.checkpoints`.
        """
        with self._lock:
            if self._peeked is None:
                return super().checkpoints()
            check_enabled(self._pipes)
            return list(self._before_peeked)

    def _load(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            super()._load(state)
            self._forget()
            self._last_beyond = None

    def save(self, filename: str | PathLike[str]) -> None:
        """Write `state_dict` to the file `filename`, as CLU does it."""
        Path(filename).write_text(json.dumps(self.state_dict()))

    def restore(self, filename: str | PathLike[str]) -> None:
        """Go on where the iterator stood that was saved to the file `filename`, as CLU does it.

        Raises
        ------
        ArgumentValueError
            If the file was not written by `save`.
        CheckpointError
            If it was, by an iterator over other pipelines.
        """
        try:
            state = json.loads(Path(filename).read_text())
        except ValueError:
            state = None
        if not isinstance(state, dict):
            raise ArgumentValueError(f"{filename} was not written by `save` of such an iterator.")
        self.load_state_dict(state)

    load = restore

    def _shown(self) -> dict[str, jax.Array]:
        if self._end_was_shown:  # with `auto_reset` the next epoch has begun after it
            raise StopIteration
        if self._peeked is None:
            try:
                found = super().__next__()
            except StopIteration:
                self._end_was_shown = True
                raise
            self._peeked = self._checked(found)
        return self._peeked

    def _forget(self) -> None:
        """Forget what was shown: an epoch is over."""
        self._peeked = self._peeking = None
        self._end_was_shown = False
        self._handed_out = 0

    def _checked(self, found: dict[str, jax.Array]) -> dict[str, jax.Array]:
        specs = {name: spec_of(array) for name, array in found.items()}
        if self._element_spec is None:
            self._element_spec = specs
        for name, spec in specs.items():
            if spec != self._element_spec[name]:
                raise ShapeError(
                    f'Output "{name}" is {spec} in this step, and was {self._element_spec[name]} '
                    "before. A peekable iterator promises that all batches are alike; use "
                    "`data_iterator` for others, or resize the samples, and drop or fill up the "
                    "last batch."
                )
        return found

    def _assemble(self, batches: list[PipelineBatch]) -> dict[str, jax.Array]:
        self._beyond = self._epochs.beyond(len(self._pipes))
        return super()._assemble(batches)


def _fulfil(
    future: concurrent.futures.Future[dict[str, jax.Array]],
    peek: Callable[[], dict[str, jax.Array]],
) -> None:
    """Do the work of `future`."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(peek())
    except StopIteration as end:
        # A future refuses it from a coroutine's point of view only; here it is what `peek` raises.
        future.set_exception(end)
    except BaseException as error:
        future.set_exception(error)


@with_parameters_of(data_iterator)
@public
def peekable_data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: Sequence[str] = (),
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: bool | str | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: Sharding | Mapping[str, Sharding] | None = None,
    devices: Sequence[jax.Device] | None = None,
    pmap_compatible: bool | None = None,
    *,
    split_batches: bool = False,
) -> Any:
    """Like `data_iterator`, for a `DALIGenericPeekableIterator`.

    Parameters
    ----------
    pipeline_fn, output_map, size, reader_name, auto_reset, last_batch_padded, last_batch_policy
        See `data_iterator`.
    prepare_first_batch, sharding, devices, pmap_compatible, split_batches
        See `data_iterator`.
    """
    return make_decorator(
        DALIGenericPeekableIterator,
        pipeline_fn,
        Placement(output_map, sharding, devices, split_batches),
        {
            "size": size,
            "reader_name": reader_name,
            "auto_reset": auto_reset,
            "last_batch_padded": last_batch_padded,
            "last_batch_policy": last_batch_policy,
            "prepare_first_batch": prepare_first_batch,
            "pmap_compatible": pmap_compatible,
        },
    )

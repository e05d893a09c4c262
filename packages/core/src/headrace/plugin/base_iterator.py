"""The iterator that all framework plugins build on: epochs, last batches, resetting.

It knows no framework. A plugin derives from it and says how the outputs of the pipelines become
what the user gets (`_DaliBaseIterator._assemble`).
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from headrace.errors import IteratorArgumentError, UnknownLengthError, UsageError
from headrace.plugin.epoch_counter import (
    BatchCounter,
    DrawnBatch,
    EndlessCounter,
    EpochCounter,
    LastBatchPolicy,
    ReaderCounter,
    SizeCounter,
)
from headrace.plugin.iterator_arguments import (
    as_list,
    checked_names,
    checked_size,
    reader_counter,
    to_auto_reset,
    to_policy,
)
from headrace.plugin.iterator_attributes import IteratorAttributes
from headrace.plugin.iterator_printing import iterator_html, iterator_line
from headrace.plugin.iterator_state import (
    can_make_checkpoints,
    check_enabled,
    checkpoints_in,
    dealt_anew,
    found_state,
    kind_of,
)
from headrace.plugin.state_methods import StateMethods, with_methods
from headrace.tracebacks import public, public_methods, stack_level
from headrace.types import PipelineAPIType

if TYPE_CHECKING:
    from typing import Self

    from headrace.pipeline import Pipeline
    from headrace.tensors import TensorListCPU, TensorListGPU

    Batch = TensorListCPU | TensorListGPU

    class _Base(StateMethods, IteratorAttributes): ...

else:
    _Base = IteratorAttributes

__all__ = ["LastBatchPolicy"]

_LOOKS = 3
"""Loops in a row of one batch each that are no look at the data any more."""


def __dir__() -> list[str]:
    return [*__all__]


class PipelineBatch(NamedTuple):
    """Outputs of one pipeline for one step.

    Attributes
    ----------
    outputs
        Its outputs, whole.
    kept
        The samples to hand out: that many from the front, or those with these numbers.
    """

    outputs: tuple[Batch, ...]
    kept: int | list[int]


@public_methods
class _DaliBaseIterator(_Base):
    """Iterates over batches of one or more pipelines, one epoch per ``for`` loop.

    Parameters
    ----------
    pipelines
        One pipeline or several with the same batch size, usually one for each shard or device.
    size
        Number of samples in an epoch, all pipelines together. With -1 an epoch lasts until an
        external source has no more data. Not together with `reader_name`.
    reader_name
        Name of the reader in each pipeline that says how long an epoch is. Prefer it to `size`:
        it takes account of shards and padding.
    auto_reset
        ``True`` or ``"yes"``: go on to the next epoch by itself once an epoch has ended.
        ``False``, ``None`` or ``"no"``: raise `StopIteration` until `reset` or the next loop.
    fill_last_batch
        Deprecated; ``True`` stands for ``FILL``, ``False`` for ``PARTIAL``.
    last_batch_padded
        With `size`: whether the pipelines repeat samples at the end of an epoch, so that the next
        one begins with a full batch.
    last_batch_policy
        Treatment of a last batch that has too few samples.
    prepare_first_batch
        Get the first batch right now, so that the pipelines start to work.
    output_map
        Names of the outputs of each pipeline, for plugins that hand them out by name.

    Raises
    ------
    ArgumentValueError
        If arguments do not fit together or to the pipelines.
    UsageError
        If a pipeline has been run in another way, or gives no batch at all.
    """

    _state_methods: ClassVar[type[StateMethods]] = StateMethods
    output_map: Sequence[str] | None = None

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        output_map: Sequence[str] | None = None,
    ) -> None:
        self._pipes = as_list(pipelines)
        self._num_gpus = len(self._pipes)
        self._reader_name = reader_name
        self._auto_reset = to_auto_reset(auto_reset)
        policy = to_policy(last_batch_policy, fill_last_batch)
        size = checked_size(size, reader_name, len(self._pipes), last_batch_padded)
        for pipeline in self._pipes:
            pipeline._latch_api(PipelineAPIType.ITERATOR)
            pipeline.build()
        batch_sizes = {pipeline.max_batch_size for pipeline in self._pipes}
        if len(batch_sizes) > 1:
            raise IteratorArgumentError(
                "All pipelines should have the same batch size set, got pipelines of the batch "
                f"sizes {sorted(batch_sizes)}."
            )
        self.batch_size: int = batch_sizes.pop()
        if output_map is not None:
            self.output_map = checked_names(output_map, self._pipes)
        if reader_name is None and size <= 0:
            policy = LastBatchPolicy.FILL
        self._last_batch_policy = policy
        self._epoch = size, last_batch_padded
        self._lock = threading.RLock()
        """Held by the thread that takes a batch: the next one waits for it."""
        self._prepare_first_batch = prepare_first_batch
        if can_make_checkpoints(self._pipes):
            self.__class__ = with_methods(type(self), self._state_methods)
        self._begin()

    if not TYPE_CHECKING:  # for which a misspelt name is to be an error

        @public
        def __getattr__(self, name: str) -> Any:
            if hasattr(self._state_methods, name):
                check_enabled(self._pipes)
            return object.__getattribute__(self, name)  # raises, also what a property has raised

    _looks = 0
    """Loops in a row that took one batch."""

    def _begin(self) -> None:
        """Begin where the pipelines do: at their beginning, or after their checkpoints."""
        self._epochs = self._new_counter()
        self._given = 0
        """Batches of this epoch that the user has got."""
        self._looped = False
        """True if a loop has begun in this epoch."""
        self._ended = self._exhausted = False
        self._scheduled = False
        self._interrupted = False
        """True if an exception, such as a Ctrl-C, ended a step or a reset halfway."""
        self._resumed = False
        """True if it continues in the middle of an epoch, and nothing has been taken yet."""
        state = found_state([pipeline._restored for pipeline in self._pipes], self._epochs)
        if state is not None:
            self._restore(state)
        self._first: list[PipelineBatch] | None = None
        self._before_first: list[bytes] = []
        """Checkpoints from before the first batch, which was taken ahead."""
        if self._prepare_first_batch:
            if can_make_checkpoints(self._pipes):
                self._before_first = self._checkpoints()
            if type(self)._assemble is _DaliBaseIterator._assemble:
                self._schedule()  # a sub-class that does all in `__next__` takes the batch
            else:
                self._first = self._take_first()

    def _new_counter(self) -> EpochCounter:
        size, padded = self._epoch
        policy = self._last_batch_policy
        if self._reader_name is not None:
            return reader_counter(self._pipes, self._reader_name, self.batch_size, policy)
        if size > 0:
            return SizeCounter(size, len(self._pipes), self.batch_size, policy, padded)
        return EndlessCounter()

    def _take_first(self) -> list[PipelineBatch] | None:
        """The first batch; after a checkpoint at the end of an epoch, that of the next one.

        `None` where that epoch, because of bad samples, turns out to have no batch.
        """
        for again in (self._resumed, False):
            try:
                return self._take()
            except StopIteration:
                if not again:
                    break
                if self._ended:
                    self._begin_next()
        if self._resumed:
            return None
        raise UsageError(self._why_no_data())

    def _why_no_data(self) -> str:
        reason = "It seems that there is no data in the pipeline: it gave not even one batch. "
        if isinstance(self._epochs, EndlessCounter):
            return reason + (
                "Its source came to the end of its data before there was a batch; one that gives "
                f"single samples has to give at least {self.batch_size}, the batch size."
            )
        return reason + (
            "With the last-batch policy DROP this happens if the batch size is greater than the "
            f"shard. The batch size is {self.batch_size}, the policy "
            f"{self._last_batch_policy.name}, an epoch has {self._epochs.size} samples per "
            "pipeline."
        )

    # -- iteration ---------------------------------------------------------------------------

    def __iter__(self) -> Self:
        """Begin an epoch: the next one, if a loop has taken anything from the current one.

        An epoch that was begun by `next` goes on.
        """
        with self._lock:
            self._note_look()
            if self._looped or self._ended or self._interrupted or self._epochs.steps_left() == 0:
                self.reset()
            self._looped = True
        return self

    def _note_look(self) -> None:
        """Warn of a program that takes each batch by a loop of its own, as DALI lets it: it would
        see the first one of each epoch only.
        """
        is_look = self._looped and self._given - (self._ahead is not None) == 1
        self._looks = self._looks + 1 if is_look and self._epochs.steps_left() != 0 else 0
        if self._looks == _LOOKS:
            warnings.warn(
                f"The last {_LOOKS} loops over the iterator took one batch each, and each of them "
                "began an epoch: `next(iter(loader))` gives the first batch of the next epoch. "
                "Keep one iterator, `batches = iter(loader)`, and take `next(batches)`.",
                stacklevel=stack_level(),
            )

    def next(self) -> Any:
        """The next batch of the epoch: what `__next__` gives.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        return self.__next__()

    def __next__(self) -> Any:
        """The next batch of the epoch.

        A sub-class may override it, and may then call it `next`, too.
        """
        return self._next_by(self._made_of)

    def _made_of(self, batches: list[PipelineBatch]) -> Any:
        """The user's value of one step."""
        if isinstance(self._epochs, SizeCounter):
            # Without shards, pipelines beyond the end of the data take no part in the last step.
            batches = [batch for batch in batches if batch.kept]
        return self._assemble(batches)

    def _next_by(self, make: Callable[[list[PipelineBatch]], Any]) -> Any:
        """Make the user's value of the batches of the next step."""
        with self._lock:
            self._interrupted = True
            self._resumed = False
            try:
                if self._first is None:
                    batches = self._take()
                else:
                    batches, self._first = self._first, None
                self._given += 1
                result = make(batches)
            except Exception:  # every pipeline has given its batch, or the epoch has ended
                self._interrupted = False
                raise
            self._interrupted = False
            return result

    def _assemble(self, batches: list[PipelineBatch]) -> Any:
        """Build the user's value of one step."""
        raise NotImplementedError

    def reset(self) -> None:
        """Begin the next epoch, whether the current one has come to its end or not.

        In the middle of an epoch the batches that are being prepared are thrown away and the
        readers go on to the beginning of their next epoch. Nothing happens if no batch has been
        taken since an epoch began, unless a step was interrupted, as by Ctrl-C, and its batch lost.
        Nor does anything before a batch has been taken after a checkpoint in the middle of an
        epoch: the next loop goes through the rest of it.
        """
        if self._interrupted:
            self._restart()
            return
        made_ahead = self._ahead is not None
        if not self._ended and (self._resumed or self._given == made_ahead):
            return
        self._interrupted = True
        if not self._ended and self._epochs.steps_left() == 0:
            # All batches were taken, but no further one was asked for.
            self._finish()
            self._ended = True
        if self._ended:
            self._begin_next()
            self._interrupted = False
        else:
            self._restart()

    def _take(self) -> list[PipelineBatch]:
        """The next batch of each pipeline, cut to what belongs to the epoch."""
        if self._ended:
            raise self._no_more()
        if self._epochs.steps_left() == 0:
            self._finish()
            self._end()
        try:
            outputs, deliveries = self._fetch()
        except StopIteration:
            self._exhausted = True
            self._end()
        kept = self._epochs.advance(deliveries)
        if kept is None:
            self._finish()
            self._end()
        return [PipelineBatch(o, k) for o, k in zip(outputs, kept, strict=True)]

    def _fetch(self) -> tuple[list[tuple[Batch, ...]], list[DrawnBatch]]:
        if not self._scheduled:
            self._schedule()
        outputs = []
        deliveries = []
        failure: Exception | None = None
        for pipeline in self._pipes:
            try:
                output = _called(pipeline, "share_outputs")
            except StopIteration:
                raise
            except Exception as error:
                # The iteration is lost, but the others must stay in step with it.
                failure = failure or error
                deliveries.append(DrawnBatch(self.batch_size))
                continue
            # Outputs live while they are referred to; this drops the pipeline's references.
            _called(pipeline, "release_outputs")
            outputs.append(output)
            deliveries.append(self._delivery(pipeline, output))
        self._schedule()
        if failure is not None:
            self._epochs.advance(deliveries)
            raise failure
        return outputs, deliveries

    def _delivery(self, pipeline: Pipeline, output: tuple[Batch, ...]) -> DrawnBatch:
        size = len(output[0])
        if size != self.batch_size and not isinstance(self._epochs, (EndlessCounter, BatchCounter)):
            raise UsageError(
                f"The pipeline gave a batch of {size} samples, but its batch size is "
                f"{self.batch_size}. Batches of varying size are possible only without "
                "`reader_name` and `size`, where an epoch lasts until its data ends."
            )
        return DrawnBatch(
            size,
            pipeline._skipped_in_last_outputs,
            pipeline._draw_numbers_in_last_outputs,
        )

    def _schedule(self) -> None:
        self._scheduled = True
        for pipeline in self._pipes:
            _called(pipeline, "schedule_run")

    def _finish(self) -> None:
        """Read the rest of the epoch after its last step."""
        for _ in range(self._epochs.leftover_steps()):
            self._epochs.advance(self._fetch()[1])

    def _end(self) -> NoReturn:
        self._ended, given = True, self._given
        if self._auto_reset:
            self._begin_next()
        raise self._no_more(given) from None

    def _no_more(self, given: int | None = None) -> StopIteration:
        return StopIteration(
            f"The epoch has come to its end, after {self._given if given is None else given} "
            "batches. A loop over the iterator goes through the next epoch, which `reset()` begins "
            "as well."
        )

    def _begin_next(self) -> None:
        if self._exhausted and isinstance(self._epochs, ReaderCounter):
            self._restart()
            return
        if self._exhausted:
            self._epochs.restart(None)
        else:
            self._epochs.next_epoch()
        self._begun()
        for pipeline in self._pipes:
            was_empty = pipeline.empty()
            pipeline.reset()
            if was_empty and self._scheduled:
                _called(pipeline, "schedule_run")

    def _restart(self) -> None:
        self._interrupted = True
        shards = [pipeline._restart_epoch() for pipeline in self._pipes]
        name = self._reader_name
        if name is not None and len(self._pipes) > 1:
            # An interruption may have come between the batches of two pipelines.
            epochs = [pipeline._reader_epoch(name) for pipeline in self._pipes]
            if len(set(epochs)) > 1:
                latest = {name: max(epochs)}
                shards = [pipeline._restart_epoch(latest) for pipeline in self._pipes]
        self._epochs.restart(None if name is None else [s[name] for s in shards])
        self._begun()
        self._first = None
        self._schedule()
        self._interrupted = False

    def _begun(self) -> None:
        self._given = 0
        self._looped = False
        self._ended = self._exhausted = False

    # -- checkpoints ---------------------------------------------------------------------------

    def checkpoints(self) -> list[bytes]:
        """Return the state of each pipeline to continue after the batches that were handed out.

        Make the pipelines anew, each with its own as the argument `checkpoint`, and an iterator of
        them. Its first loop goes through the rest of the epoch. Was that at its end, though not
        reset, it is a loop through the whole of the next one, or, with
        ``prepare_first_batch=False``, an empty one.

        Raises
        ------
        ArgumentValueError
            If a pipeline was not made with ``enable_checkpointing=True``.
        UsageError
            If a step was interrupted, as by Ctrl-C.
        """
        check_enabled(self._pipes)
        if self._interrupted:
            raise UsageError(
                "A step of the iterator was interrupted, and the pipelines may have given "
                "different numbers of batches. Call `reset`, which begins the next epoch, before "
                "`checkpoints`."
            )
        if self._first is not None or self._ahead is not None:
            return list(self._before_first)
        return self._checkpoints()

    def _load(self, state: Mapping[str, Any]) -> None:
        """Do what `StateMethods.load_state_dict` says."""
        counter = self._new_counter()
        saved = checkpoints_in(state, self._pipes, counter)
        pairs = list(zip(self._pipes, saved, strict=True))
        found = [pipeline._readable_checkpoint(data) for pipeline, data in pairs]
        found_state(found, counter)
        self._interrupted = True
        for pipeline, data in pairs:
            pipeline._go_to(data)
        self._begin()

    def _checkpoints(self) -> list[bytes]:
        state = {
            "epochs by": kind_of(self._epochs),
            "size": None if self._reader_name is not None else self._epochs.size,
            "counter": self._epochs.state(),
            "given": self._given,
            "ended": self._ended,
            "exhausted": self._exhausted,
        }
        return [pipeline._checkpoint(iterator=state) for pipeline in self._pipes]

    def _restore(self, state: dict[str, Any]) -> None:
        self._resumed = True
        if dealt_anew(self._pipes, self._epochs, self._reader_name):
            return  # at the beginning of what is left of an epoch
        self._epochs.restore(state["counter"])
        self._given = state["given"]
        self._ended, self._exhausted = state["ended"], state["exhausted"]

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of samples in the epoch: per pipeline with `reader_name`, else as given."""
        return self._epochs.size

    def __len__(self) -> int:
        """Number of batches in the epoch: in this one if it is under way, else in the next."""
        found = self._length()
        if found is None:
            raise UnknownLengthError(
                "The number of batches of an epoch of this iterator is unknown: it lasts until its "
                "data ends. Give the iterator the `reader_name` of the reader, or `size`; or let "
                "the source of the external source say it by `__len__`: batches, or samples with "
                "`batch=False`. Iterators and generators are not asked."
            )
        return found

    def _length(self) -> int | None:
        counter = self._epochs
        if isinstance(counter, EndlessCounter):
            (pipeline,) = self._pipes
            return pipeline._built().queues.batches_of_epoch(int(self._ended))
        if self._ended and not self._exhausted:
            counter = copy.deepcopy(counter)
            counter.next_epoch()
            return counter.steps_left() or 0
        return self._given + (self._first is not None) + (counter.steps_left() or 0)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return iterator_line(self)

    def _repr_html_(self) -> str:
        return iterator_html(self)


def _called(pipeline: Pipeline, method: str) -> Any:
    """Call a method of a pipeline as an iterator, which other ways of running refuse."""
    pipeline._in_iterator = True
    try:
        return getattr(pipeline, method)()
    finally:
        pipeline._in_iterator = False

"""Readers as objects: a data set, where one stands in it, and loops over its epochs."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MisusedArgumentError,
    NotYetSupportedError,
    UsageError,
    did_you_mean,
    located,
)
from headrace.experimental.dynamic.arguments import converted as converted_argument
from headrace.experimental.dynamic.batches import Batch
from headrace.experimental.dynamic.calling import call
from headrace.experimental.dynamic.capture.loops import Recorder, open_loop
from headrace.experimental.dynamic.contexts import EvalContext, chosen
from headrace.experimental.dynamic.devices import DeviceLike
from headrace.experimental.dynamic.devices import device as as_device
from headrace.experimental.dynamic.failures import user_frame
from headrace.experimental.dynamic.invariants import plain
from headrace.experimental.dynamic.modes import THREAD, EvalMode
from headrace.experimental.dynamic.reader_states import (
    STATE_VERSION,
    ReaderState,
    decoded,
    encoded,
)
from headrace.experimental.dynamic.reading import ReaderName, ReaderQueue
from headrace.experimental.dynamic.sizes import checked_size
from headrace.experimental.dynamic.tensors import Tensor
from headrace.graph.hardware_video import can_decode, describing, steps
from headrace.operators.readers.given_readers import device_of
from headrace.operators.support.registry import find
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from headrace.experimental.dynamic.values import ValueReference
    from headrace.operators.readers.base import Reader as Source
    from headrace.operators.support.schema import OpSchema

_FIXED_SEED = -1
"""Seed of a reader without one: DALI's, so that files come in the same order."""
_SAMPLES_AHEAD = 32
_BATCHES_AHEAD = 4
_LARGE_BATCH = 64
"""Of batches from this size on, only two are kept on their way."""
_NO_ARGUMENTS = frozenset(("preserve", "bytes_per_sample_hint"))


@public_methods
class Reader:
    """A data set that is read epoch by epoch, in batches or sample by sample.

    Reading goes on in the background, some batches ahead. A reader is used in one way only: for
    batches of one size, for samples, or by calling it.

    Parameters
    ----------
    max_batch_size
        Largest number of samples in a batch, and the size of batches where none is given.
    name
        What the reader is called in messages.
    device
        Where the data is wanted: what was read is uploaded to a GPU. If not given, that of the
        readers that a reader is given, and else the CPU.
    num_inputs
        Number of inputs; readers have none.
    enable_checkpointing
        Whether `get_state` is to work.
    **arguments
        Those of the operator.
    """

    _schema: ClassVar[OpSchema]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: DeviceLike | None = None,
        num_inputs: int | None = None,
        *,
        enable_checkpointing: bool = False,
        **arguments: Any,
    ) -> None:
        schema = self._schema
        shown = f"ndd.readers.{type(self).__name__}"
        if num_inputs:
            raise MisusedArgumentError(
                f"`num_inputs` is {num_inputs}, but `{shown}` has no inputs."
            )
        self._max_batch_size = (
            None if max_batch_size is None else checked_size(max_batch_size, "max_batch_size")
        )
        self._place = ReaderName(shown, name)
        self._args = _converted(schema, type(self).__name__, arguments)
        _check_shards(self._args)
        if device is None and schema.given_readers is not None:
            device = device_of(schema.given_readers(self._args), f"`{shown}`")
        self._check_device(device)
        self._checkpointing = bool(enable_checkpointing)
        self._source: Source | None = None
        self._ahead: ReaderQueue | None = None
        self._use = ""
        self._size: int | None = None
        self._epochs = 0
        self._captured: bool | None = None
        self._loop: weakref.ref[Recorder] | None = None
        self._state: dict[str, Any] | None = None
        """A state to begin from."""
        self._begun = False
        self._describes = False
        """True if a GPU's decoders make the first output of what the engine's reader describes."""
        self._opening = threading.Lock()

    def _check_device(self, device: DeviceLike | None) -> None:
        found = as_device(device)
        if found is not None and found.device_type not in self._schema.devices:
            raise MisusedArgumentError(
                f'`{self._place.shown}` has no "{found.device_type}" variant; it runs on: '
                f"{', '.join(self._schema.devices)}. `.gpu()` moves what it has read."
            )
        self._device = found

    @property
    def _op_backend(self) -> Any:
        """Object with the metadata, by the name it has in DALI; `None` before it is opened."""
        source = self._source
        return None if source is None else SimpleNamespace(GetReaderMeta=source.meta)

    @property
    def _num_outputs(self) -> int:
        """Number of outputs of each step."""
        return self._schema.count_outputs(self._args)

    # -- reading ---------------------------------------------------------------------------------

    def next_epoch(
        self,
        batch_size: int | None = None,
        ctx: EvalContext | None = None,
        capture: bool = False,
    ) -> Iterator[Any]:
        """Loop over one epoch of the reader's shard.

        Parameters
        ----------
        batch_size
            Number of samples in a batch, the same in every epoch. Without it and `max_batch_size`,
            samples come one by one.
        ctx
            The context whose threads help to read; the current one when not given.
        capture
            Whether to trace what the loop does in its first step and to do it ahead in the others:
            see `headrace.experimental.dynamic.capture`.

        Returns
        -------
        An iterator over tuples of `Batch`, or of `Tensor` for samples: one for each output. There
        are as many batches as it takes for all samples of the shard. Without `pad_last_batch` the
        last one goes on with samples of the next epoch, which then begins after them.

        Raises
        ------
        ArgumentValueError
            At the first step, if the size is not that of the epochs before, or too large.
        UsageError
            At the first step, if the reader was used in another way before.
        """
        if capture:
            size = self._max_batch_size if batch_size is None else batch_size
            if size is None:
                raise ArgumentValueError("`capture=True` requires a non-None batch_size.")
            return open_loop(self, Epoch(self, size, ctx, captured=True), size, ctx)
        return Epoch(self, batch_size, ctx)

    def __iter__(self) -> NoReturn:
        """Refuse: what to loop over is an epoch."""
        raise ArgumentTypeError(
            f"`{self._place.shown}` is not iterable itself: loop over an epoch of it, as in "
            "`for ... in reader.next_epoch(batch_size=32):`, or without `batch_size` over single "
            "samples."
        )

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Read on: one sample, or a batch.

        Parameters
        ----------
        batch_size
            Number of samples, which may differ from call to call; `None` for one that is no batch.

        Returns
        -------
        A tuple of `Tensor` or `Batch`: one for each output.

        Raises
        ------
        ArgumentValueError
            If it is larger than `max_batch_size`.
        UsageError
            If there were loops over epochs of the reader before.
        """
        size = None if batch_size is None else self._checked(batch_size)
        self._begin("calls")
        ahead = self._opened()
        ahead.pool = EvalContext.current().thread_pool
        return self._results(*ahead.take_alone(size), user_frame(sys._getframe(1)))

    def _next(self, size: int | None, frame: FrameType) -> Any:
        """The next step of an epoch."""
        ahead = self._ahead
        assert ahead is not None
        return self._results(*ahead.take(size, self._depth(size)), frame)

    def _results(
        self, reading: Any, references: tuple[ValueReference, ...], frame: FrameType
    ) -> Any:
        reading.code = frame.f_code
        reading.instruction = frame.f_lasti
        mode = THREAD.mode
        if mode is EvalMode.sync_cpu or mode is EvalMode.sync_full:
            reading.wait()
            if reading.error is not None:
                raise reading.error
        kind: Any = Tensor if references[0].size is None else Batch
        found = [kind._of(reference) for reference in references]
        if self._device is not None and self._device.device_type == "gpu":
            frames = [self._decoded(found[0])] if self._describes else []
            found = [*frames, *(each.to_device(self._device) for each in found[len(frames) :])]
        names = self._schema.output_names
        if names is None:
            return tuple(found)
        side = self._args.get("side_data") or ()
        return dict(zip([*names(self._args), *side], found, strict=True))

    def _decoded(self, frames: Any) -> Any:
        """The frames that a reader has described."""
        for name, _, args in steps(self._schema, self._args) or ():
            schema = find(name)
            given = {n: v for n, v in args.items() if v is not None and v != schema.args[n].default}
            frames = call(schema, (frames,), None, self._device, given)
        return frames

    def _depth(self, size: int | None) -> int:
        wanted = int(self._args["prefetch_queue_depth"])
        if size is None:
            return max(_SAMPLES_AHEAD, wanted)
        return max(_BATCHES_AHEAD if size < _LARGE_BATCH else 2, wanted)

    # -- what it is used for ---------------------------------------------------------------------

    def _begin_epoch(self, batch_size: int | None, captured: bool) -> int | None:
        """Check how an epoch is to be read; return the size of its batches."""
        if self._captured is not None and self._captured != captured:
            mode = "capture" if captured else "eager"
            raise UsageError(
                f"`{self._place.shown}` was used with `capture`={not captured} before and cannot "
                f"switch to {mode} mode: make another reader."
            )
        size = self._max_batch_size if batch_size is None else self._checked(batch_size)
        if size is not None and self._size is not None and size != self._size:
            raise MisusedArgumentError(
                f"`{self._place.shown}` cannot change batch_size to {size}: it is {self._size} "
                "since the epochs or metadata before. Make another reader."
            )
        self._begin("samples" if size is None else "batches")
        self._captured = captured
        if size is not None:
            self._size = size
        self._opened()
        return size

    def _checked(self, batch_size: Any) -> int:
        size = checked_size(batch_size, "batch_size")
        if self._max_batch_size is not None and size > self._max_batch_size:
            raise MisusedArgumentError(
                f"`batch_size`={size} is larger than the `max_batch_size`={self._max_batch_size} "
                "that the reader was made with."
            )
        return size

    def _begin(self, use: str) -> None:
        if self._use and self._use != use:
            raise UsageError(
                f"`{self._place.shown}` was used for {self._use} before and cannot be for {use}: "
                "make another reader."
            )
        self._use = use

    def _opened(self) -> ReaderQueue:
        ahead = self._ahead
        if ahead is None:
            source = self._found()
            if source.plans_batches and (self._captured or self._use == "calls"):
                raise NotYetSupportedError(
                    f"`{self._place.shown}` makes batches of varying size, by `bucket_by`: these "
                    "come in loops over `next_epoch`, without `capture`."
                )
            ahead = self._ahead = ReaderQueue(source, self._place, keep_states=self._checkpointing)
        self._begun = True
        return ahead

    def _found(self) -> Source:
        """The engine's reader, opened."""
        with self._opening:
            if self._source is None:
                try:
                    on_gpu = self._device is not None and self._device.device_type == "gpu"
                    # A captured loop copies what its reader gives.
                    schema, args = self._schema, dict(self._args)
                    self._describes = on_gpu and not self._captured and can_decode(schema, args)
                    args = describing(schema, args) if self._describes else args
                    source = cast("Any", schema.cls)(args)
                    source.checkpointing = self._checkpointing
                    seed = self._args.get("seed")
                    source.open(self._size or 1, _FIXED_SEED if seed is None else seed)
                    if source.plans_batches and self._size is None:
                        raise MisusedArgumentError(
                            "`bucket_by` makes batches of up to `batch_size` samples: give it to "
                            "`next_epoch`, or first to `get_metadata`."
                        )
                    if self._state is not None:
                        source.restore(self._state["source"])
                        self._epochs = self._state["epochs"]
                except Exception as error:
                    raise located(error, self._place.where()) from error
                self._source = source
            return self._source

    def _samples_left(self) -> int:
        """Number of samples in the epoch that comes next: those of a shard, and padding; of full
        batches where these vary in size.
        """
        meta = self._found().meta()
        if self._found().plans_batches:
            return meta["batches"] * (self._size or 1)
        size, shards = meta["epoch_size"], meta["number_of_shards"]
        if meta["pad_last_batch"]:
            return -(-size // shards)
        moves = 0 if meta["stick_to_shard"] else self._epochs
        shard = (meta["shard_id"] + moves) % shards
        return (shard + 1) * size // shards - shard * size // shards

    # -- metadata and state ----------------------------------------------------------------------

    def get_metadata(self, batch_size: int | None = None) -> dict[str, int]:
        """Size of the data set and of its shards, as `Pipeline.reader_meta` has them.

        Parameters
        ----------
        batch_size
            Size of the batches to come, if it is known.

        Returns
        -------
        dict
            ``epoch_size``, ``epoch_size_padded``, ``number_of_shards``, ``shard_id``,
            ``pad_last_batch`` and ``stick_to_shard``.
        """
        if batch_size is not None:
            size = self._checked(batch_size)
            if self._size is None and not self._use:
                self._size = size
        self._begun = True
        return self._found().meta()

    def _keep_states(self) -> None:
        """Let `get_state` work, as `enable_checkpointing=True` does; before anything is read."""
        if self._source is not None and not self._checkpointing:
            raise UsageError(
                f"`{self._place.shown}` has begun without keeping states: register it before it "
                "reads, or make it with `enable_checkpointing=True`."
            )
        self._checkpointing = True

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """Get the reader's position: after the batches that it has given.

        Parameters
        ----------
        cuda_stream
            For readers on a GPU. The position is known on the host, whatever is given.

        Raises
        ------
        UsageError
            If the reader was made without ``enable_checkpointing=True``, or nothing was read yet
            and no state set.
        """
        if not self._checkpointing:
            raise UsageError(
                f"`{self._place.shown}` keeps no states: make it with "
                "`enable_checkpointing=True`, or register it with a checkpoint, before its first "
                "iteration."
            )
        if self._state is not None and self._ahead is None:
            return encoded(self._state)
        if self._ahead is None:
            raise UsageError(
                f"`{self._place.shown}` has no state before its first step: it is at the beginning."
            )
        state = {
            "version": STATE_VERSION,
            "reader": self._schema.name,
            "epochs": self._epochs,
            "shards": self._args.get("num_shards", 1),
            "source": self._ahead.state,
        }
        return encoded(state)

    def set_state(self, state: str | bytes) -> None:
        """Go on where another reader of the same data set stood.

        The next epoch begins there, and is as long as any.

        Parameters
        ----------
        state
            What `get_state` returned, or its text.

        Raises
        ------
        UsageError
            If this reader has read something already.
        ArgumentTypeError, ArgumentValueError
            If `state` is no state of such a reader.
        """
        if self._begun:
            raise UsageError(
                f"`{self._place.shown}` cannot take a state after iteration has begun: give it to "
                "a new reader."
            )
        found = decoded(state, self._schema.name)
        shards = self._args.get("num_shards", 1)
        if found.get("shards", shards) != shards:
            raise ArgumentValueError(
                f"The state is that of a reader with `num_shards`={found['shards']}, and "
                f"`{self._place.shown}` has {shards}. An epoch that begins at a state is as long "
                "as any, so what is left of one cannot be dealt anew; a pipeline with `checkpoint` "
                "can do that."
            )
        self._state = found
        self._checkpointing = True

    def __repr__(self) -> str:
        name = "" if self._place.name is None else f" {self._place.name!r}"
        return f"<{self._place.shown}{name}>"


@public_methods
class Epoch:
    """A loop over one epoch of a reader."""

    __slots__ = ("_captured", "_context", "_left", "_reader", "_size", "_wanted")

    def __init__(
        self,
        reader: Reader,
        batch_size: int | None,
        ctx: EvalContext | None,
        *,
        captured: bool = False,
    ) -> None:
        self._captured = captured
        self._reader = reader
        self._wanted = batch_size
        self._context = ctx
        self._size: int | None = None
        self._left = -1
        """Steps that are left; negative before the first."""

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        if self._left <= 0:
            self._begin_or_end()
        self._left -= 1
        return self._reader._next(self._size, user_frame(sys._getframe(1)))

    def _begin_or_end(self) -> None:
        """Begin or end the epoch."""
        reader = self._reader
        if self._left == 0:
            reader._epochs += self._wanted != _ENDED
            self._wanted = _ENDED
            raise StopIteration(
                "The epoch of the reader has come to its end: `next_epoch(...)` begins another."
            )
        size = self._size = reader._begin_epoch(self._wanted, self._captured)
        context = chosen(self._context)
        assert reader._ahead is not None
        reader._ahead.pool = context.thread_pool
        samples = reader._samples_left()
        self._left = samples if size is None else -(-samples // size)

    def peek(self, ahead: int) -> tuple[ValueReference, ...] | None:
        """References to the outputs of a later step; `None` if the epoch ends before it."""
        if ahead >= self._left:
            return None
        reading_ahead = self._reader._ahead
        assert reading_ahead is not None
        return reading_ahead.peek(self._size, ahead)

    def unbind(self) -> None:
        """Let the reader's next epoch be captured or not, whatever this one is."""
        self._reader._captured = None

    def leave(self) -> None:
        """Nothing: what a reader is used for does not change before its epoch's end, as in DALI."""

    @property
    def has_begun(self) -> bool:
        """True if there was a step."""
        return self._left >= 0

    @property
    def left(self) -> int:
        """Steps that are left."""
        return max(self._left, 0)

    def shorten(self, left: int) -> None:
        """Begin the epoch where only `left` steps are left of it."""
        self._begin_or_end()
        self._left = min(left, self._left)

    def close(self) -> None:
        """End the loop; what is left of the epoch is read by the next one."""
        self._left = 0
        self._wanted = _ENDED


_ENDED = -1


def _converted(schema: OpSchema, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The converted values of all arguments of a reader."""
    args = {a.name: (None if a.required else a.default) for a in schema.args.values()}
    for key, value in arguments.items():
        arg = schema.args.get(key)
        if arg is None or key in _NO_ARGUMENTS:
            known = ", ".join(a for a in schema.args if a not in _NO_ARGUMENTS)
            raise ArgumentTypeError(
                f"{name}() got an unexpected keyword argument '{key}'."
                f"{did_you_mean(key, schema.args)} It takes: {known}."
            )
        value = plain(value)
        if value is not None:
            args[key] = converted_argument(schema, arg, value)
    for arg in schema.args.values():
        if arg.required and args[arg.name] is None:
            raise ArgumentTypeError(
                f"{name}() missing 1 required keyword-only argument: '{arg.name}'. {arg.doc}"
            )
    return args


def _check_shards(args: dict[str, Any]) -> None:
    shards, shard = args.get("num_shards", 1), args.get("shard_id", 0)
    if shards < 1:
        raise ArgumentValueError(f"`num_shards` is {shards}, but must be at least 1.")
    if not 0 <= shard < shards:
        raise ArgumentValueError(
            f"`shard_id` is {shard}, but must be at least 0 and less than `num_shards`, which is "
            f"{shards}."
        )

"""One pass over a pipeline, and the token that tells where in it an iterator of TensorFlow is."""

from __future__ import annotations

import json
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import CheckpointError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from headrace.plugin.epoch_counter import ReaderCounter

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.pipeline import Pipeline

ALIGNMENT_BYTES = 64
"""TensorFlow shares memory that begins at a multiple of this, and copies other memory."""


class Session(_DaliBaseIterator):
    """Iterates over the batches of a pipeline of its own, for an iterator of TensorFlow."""

    def __init__(
        self, pipeline: Pipeline, reader_name: str | None, last_batch_policy: LastBatchPolicy
    ) -> None:
        self.lock = threading.Lock()
        """Held during a step: a session serves one call after the other."""
        self.key: bytes = b""
        """Of the token that its iterator has; empty while none has."""
        super().__init__(
            pipeline,
            reader_name=reader_name,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=False,
        )

    def example(self) -> PipelineBatch:
        """The first batch, which the next step gives again."""
        if self._first is None:
            if self._pipes[0]._settings.enable_checkpointing:
                self._before_first = self._checkpoints()
            self._first = self._take_first()
        assert self._first is not None
        return self._first[0]

    def steps_of_each_epoch(self) -> int | None:
        """Number of batches of each epoch of the reader; `None` where epochs may differ in it."""
        assert isinstance(self._epochs, ReaderCounter)
        (pipeline,) = self._pipes
        whole = self._last_batch_policy is not LastBatchPolicy.FILL or not (
            self._size_no_pad % self.batch_size
        )
        same = self._epochs.padded or (whole and self._shards_num == 1)
        return len(self) if same and pipeline._settings.on_bad_sample != "skip" else None

    def close(self) -> None:
        """Stop the threads; a step that waits for them fails."""
        self._pipes[0]._shutdown()

    def _assemble(self, batches: list[PipelineBatch]) -> PipelineBatch:
        return batches[0]


class Token(NamedTuple):
    """Token that a session leaves with its iterator, as the state of the iterator."""

    key: bytes
    """16 bytes, of one step of one session."""
    checkpoint: bytes = b""
    """Position, for another session to go on from; empty if the pipeline makes none."""

    @classmethod
    def of(cls, session: Session, number: int) -> Token:
        """The token after the last batch of `session`, step `number` of all."""
        key = number.to_bytes(16, "little")
        if not session._pipes[0]._settings.enable_checkpointing:
            return cls(key)
        return cls(key, json.dumps(session.state_dict()).encode())

    @classmethod
    def read(cls, state: np.ndarray) -> Token:
        """The token in what `kept` has made."""
        data = state.tobytes()
        return cls(data[:16], data[16:])

    def kept(self, dropped: Callable[[bytes], None]) -> np.ndarray:
        """The token as an array, in memory that TensorFlow shares.

        So it is known when the iterator that has it is gone: `dropped` is called with the key.
        """
        data = self.key + self.checkpoint
        memory = np.empty(len(data) + ALIGNMENT_BYTES, np.uint8)
        begin = -memory.ctypes.data % ALIGNMENT_BYTES
        array = memory[begin : begin + len(data)]
        array[:] = np.frombuffer(data, np.uint8)
        weakref.finalize(memory, dropped, self.key).atexit = False
        return array

    def state(self) -> dict[str, Any]:
        """The state of the session, for `Session.load_state_dict`."""
        if not self.checkpoint:
            raise CheckpointError(
                "The iterator of the `DALIDataset` was restored, or copied, and its pipeline "
                "cannot go to where it was: make the pipeline with `enable_checkpointing=True`."
            )
        found: dict[str, Any] = json.loads(self.checkpoint)
        return found

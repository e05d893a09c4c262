"""Errors that cross the border between processes."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass

from penstock.errors import SourceWorkerError
from penstock.tracebacks import WorkerTraceback, user_part


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a source, on its way to the main process."""

    pickled: bytes | None
    """The error, if it survives the journey."""
    headline: str
    text: str
    """Its traceback, from the user's code on."""
    sample: int | None
    """Position in the batch."""

    @classmethod
    def of(cls, error: BaseException, sample: int | None) -> Failure:
        """Prepare `error` for the journey."""
        try:
            text = "".join(traceback.format_exception(type(error), error, user_part(error)))
            headline = "".join(traceback.format_exception_only(error)).strip()
        except Exception:  # an error that cannot be printed is an error still
            text = headline = type(error).__name__
        return cls(_pickled(error), headline, text, sample)

    def error(self, where: str) -> BaseException:
        """The error to raise, with the worker's traceback as its cause; `where` is added to it."""
        error = self.unpickled()
        if error is None:
            error = SourceWorkerError(f"{self.headline} (in {where})")
        else:
            error.add_note(f"raised in {where}")
        error.__cause__ = WorkerTraceback(self.text)
        return error

    def unpickled(self) -> BaseException | None:
        """The error itself, where it has survived the journey."""
        if self.pickled is None:
            return None
        try:
            error = pickle.loads(self.pickled)
        except Exception:
            return None
        return error if isinstance(error, Exception) else None


def _pickled(error: BaseException) -> bytes | None:
    # Taken for what it is, a SystemExit or a StopIteration would end more than this batch.
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        return None
    try:
        data = pickle.dumps(error)
        same = type(pickle.loads(data)) is type(error)
    except Exception:
        return None
    return data if same else None

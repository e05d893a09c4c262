"""Errors of samples on their way from a worker process to the parent."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import OperatorError, Where, located
from penstock.executor.sources.failure import Failure
from penstock.tracebacks import WorkerTraceback, own_folders


class PackedError(NamedTuple):
    """An error that says where it happened, and the one that it came of."""

    message: str
    where: Where
    cause: Failure
    is_ours: bool
    """Whether it was raised by the library itself, so that its traceback tells a user nothing."""

    @classmethod
    def of(cls, error: BaseException) -> PackedError:
        """Prepare `error`, which a `SampleRunner` has found, for the journey."""
        where = error.where if isinstance(error, OperatorError) else Where("unknown")
        cause = error.__cause__ or error
        trace = cause.__traceback__
        ours = True
        while trace is not None:
            ours = ours and trace.tb_frame.f_code.co_filename.startswith(own_folders())
            trace = trace.tb_next
        return cls(str(error), where, Failure.of(cause, None), ours)

    def unpacked(self) -> BaseException:
        """The error, to be raised in the parent."""
        cause = self.cause.unpickled()
        if cause is None:
            error: BaseException = OperatorError(self.message)
            error.where = self.where  # type: ignore[attr-defined]
            error.__cause__ = WorkerTraceback(self.cause.text)
            return error
        if not self.is_ours:
            cause.__cause__ = WorkerTraceback(self.cause.text)
        error = located(cause, self.where)
        error.__cause__ = cause
        return error

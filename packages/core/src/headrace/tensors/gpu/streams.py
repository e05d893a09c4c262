"""Streams as users hold them, and the numbers CUDA knows them by."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Runtime

DEFAULT_STREAM = 1
"""The legacy default stream, by the number that always means it. An event in it comes after the
work of every stream that was not made to be independent of it.
"""
_PER_THREAD_STREAM = 2


class UserStream(int):
    """The handle of a stream of another owner, which exists as long as this object.

    Memory that is read on the stream asks it for an event when the last reader is gone, and so
    keeps this object, not a plain number.
    """

    owner: Any
    """Object that destroys the stream when it is dropped."""

    @classmethod
    def of(cls, number: int, owner: Any) -> UserStream:
        """The stream `number`, which belongs to `owner`."""
        self = cls(number)
        self.owner = owner
        return self


def noted(streams: tuple[int, ...], stream: int) -> tuple[int, ...]:
    """`streams` and `stream`; of two equal numbers, one that keeps its stream stays."""
    if stream not in streams:
        return (*streams, stream)
    if isinstance(stream, UserStream) and not isinstance(
        streams[streams.index(stream)], UserStream
    ):
        return tuple([stream if other == stream else other for other in streams])
    return streams


def stream_number(stream: Any) -> int:
    """The number of a stream."""
    if isinstance(stream, UserStream):
        return stream
    number = stream if type(stream) is int else _number(stream)
    if number is None:
        raise ArgumentTypeError(
            "A CUDA stream is an integer, a ctypes.c_void_p, a stream of PyTorch or CuPy, or an "
            f"object with `__cuda_stream__`; got {stream!r} of type {type(stream).__name__}."
        )
    if number < 0:
        raise ArgumentValueError(f"A CUDA stream cannot have the number {number}.")
    if number <= _PER_THREAD_STREAM:
        return number or DEFAULT_STREAM
    is_number = (
        type(stream) is int or isinstance(stream, ctypes.c_void_p) or hasattr(stream, "__index__")
    )
    owner = _current_of_cupy(number) if is_number else stream
    return number if owner is None else UserStream.of(number, owner)


def library_stream(number: int, stream: Any) -> int:
    """The number of a stream whose library says that it is `number`."""
    if number <= _PER_THREAD_STREAM:
        return number or DEFAULT_STREAM
    return UserStream.of(number, stream)


def _current_of_cupy(number: int) -> Any:
    """CuPy's current stream, if it has this number; else None.

    Consumers of DLPack give the number of what is current, and PyTorch never destroys its own.
    """
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return None
    try:
        current = cupy.cuda.get_current_stream()
    except cupy.cuda.runtime.CUDARuntimeError:  # it has no GPU
        return None
    return current if current.ptr == number else None


def _number(stream: Any) -> int | None:
    if stream is None:
        return 0
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        found = getattr(stream, attribute, None)
        if found is not None:
            return int(found)
    if isinstance(stream, bool) or not hasattr(stream, "__index__"):
        return None
    return int(stream.__index__())


def reading_stream(stream: int) -> int:
    """The stream after whose work a reader on `stream` is surely done.

    The default stream of a thread cannot be asked from another one, but the legacy one waits for
    it.
    """
    return DEFAULT_STREAM if stream in (0, _PER_THREAD_STREAM) else stream


def likely_streams(runtime: Runtime) -> list[int]:
    """Streams on which memory is likely to be used by who does not say: the default one, and those
    that are current in CuPy and PyTorch, in the calling thread.
    """
    found = {DEFAULT_STREAM}
    cuda = getattr(runtime.xp, "cuda", None)
    if cuda is not None:
        current = cuda.get_current_stream()
        found.add(library_stream(current.ptr, current))
    torch = sys.modules.get("torch")
    if torch is not None and cuda is not None and torch.cuda.is_initialized():
        current = torch.cuda.current_stream(runtime.device_id)
        found.add(library_stream(current.cuda_stream, current))
    return sorted(found)

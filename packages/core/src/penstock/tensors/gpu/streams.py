"""Streams as users hold them, and the numbers CUDA knows them by."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from penstock.tensors.gpu.runtime import Runtime

DEFAULT_STREAM = 1
"""The legacy default stream, by the number that always means it. An event in it comes behind the
work of every stream that was not made to be independent of it.
"""
_PER_THREAD_STREAM = 2

_kept: dict[int, Any] = {}
"""Streams of users, whose numbers are asked for events long after: nobody may destroy them."""


def stream_number(stream: Any) -> int:
    """The number of a stream.

    Parameters
    ----------
    stream
        An integer, a ``ctypes.c_void_p``, None (the default stream), a stream of PyTorch or CuPy,
        or any object with ``__cuda_stream__``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If it is nothing of the kind.
    """
    if type(stream) is int and (stream in _kept or 0 <= stream <= _PER_THREAD_STREAM):
        return stream or DEFAULT_STREAM
    number = _number(stream)
    if number is None:
        raise ArgumentTypeError(
            "A CUDA stream is an integer, a ctypes.c_void_p, a stream of PyTorch or CuPy, or an "
            f"object with `__cuda_stream__`; got {stream!r} of type {type(stream).__name__}."
        )
    if number < 0:
        raise ArgumentValueError(f"A CUDA stream cannot have the number {number}.")
    if number > _PER_THREAD_STREAM and number not in _kept:
        _keep(number, stream)
    return number or DEFAULT_STREAM


def library_stream(number: int, stream: Any) -> int:
    """The number of a stream whose library says that it is `number`."""
    if number > _PER_THREAD_STREAM and number not in _kept:
        _keep(number, stream)
    return number or DEFAULT_STREAM


def _keep(number: int, stream: Any) -> None:
    if isinstance(stream, ctypes.c_void_p) or hasattr(stream, "__index__"):
        # Consumers of DLPack give the number of what is current; PyTorch never destroys its own.
        cupy = sys.modules.get("cupy")
        if cupy is None:
            return
        with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):  # it has no GPU
            current = cupy.cuda.get_current_stream()
            if current.ptr == number:
                _kept[number] = current
        return
    _kept[number] = stream


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
    """The stream behind whose work a reader on `stream` is surely done.

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
        found.add(int(cuda.get_current_stream().ptr) or DEFAULT_STREAM)
    torch = sys.modules.get("torch")
    if torch is not None and cuda is not None and torch.cuda.is_initialized():
        current = torch.cuda.current_stream(runtime.device_id)
        found.add(int(current.cuda_stream) or DEFAULT_STREAM)
    return sorted(found)

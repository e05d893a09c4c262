"""CUDA streams that contexts give their work to."""

from __future__ import annotations

import weakref
from typing import Any, Final, final

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.experimental.dynamic.devices import Device
from headrace.experimental.dynamic.modes import THREAD
from headrace.tensors.gpu.runtime import check_available, current_device, get_runtime, is_off
from headrace.tensors.gpu.streams import stream_number


class _New:
    def __repr__(self) -> str:
        return "Stream.create_new"


CREATE_NEW: Final = _New()


@final
class Stream:
    """A CUDA stream. `stream` makes one.

    Parameters
    ----------
    stream
        What to wrap: a stream of PyTorch or CuPy, an object with ``__cuda_stream__``, or the number
        CUDA knows it by. A new stream is made when not given.
    device_id
        Number of the GPU; the current one when not given.

    Raises
    ------
    ArgumentValueError
        If `stream` is `None`.
    GpuNotAvailableError
        If there is no GPU; it is a `RuntimeError`.
    """

    __slots__ = ("__weakref__", "_device_id", "_handle", "_owner")

    create_new = CREATE_NEW
    """Says that a new stream is wanted, which is the default."""

    def __init__(self, *, stream: Any = CREATE_NEW, device_id: int | None = None) -> None:
        if stream is None:
            raise ArgumentValueError(
                "`stream` must not be None. To make a new stream, leave it out."
            )
        check_available()
        own = getattr(stream, "device_id", None) if isinstance(stream, Stream) else None
        if device_id is None:
            device_id = current_device() if own is None else own
        elif own is not None and own != device_id:
            raise ArgumentValueError(
                f"`stream` belongs to GPU {own}, but `device_id` says {device_id}."
            )
        self._device_id = device_id
        self._owner = stream
        if isinstance(stream, _New):
            runtime = get_runtime(device_id)
            with runtime.active():
                self._handle = runtime.acquire_stream()
            weakref.finalize(self, runtime.release_stream, self._handle).atexit = False
        elif isinstance(stream, Stream):
            self._handle = stream.handle
        else:
            self._handle = stream_number(stream)

    @property
    def device_id(self) -> int:
        """Number of the GPU."""
        return self._device_id

    @property
    def handle(self) -> int:
        """The number CUDA knows the stream by."""
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        """The stream for other libraries: version of the protocol, and number."""
        return 0, self._handle

    def synchronize(self) -> None:
        """Wait until all work of the stream is done."""
        runtime = get_runtime(self._device_id)
        with runtime.active():
            runtime.synchronize(self._handle)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self._handle == other._handle and self._device_id == other._device_id

    def __hash__(self) -> int:
        return hash((self._handle, self._device_id))

    def __repr__(self) -> str:
        return f"Stream(handle={self._handle:#x}, device_id={self._device_id})"


def stream(*, stream: Any = CREATE_NEW, device_id: int | None = None) -> Stream | None:
    """A new stream, or the one that `stream` stands for.

    Parameters
    ----------
    stream
        As for `Stream`; `None` stays `None`, and with ``HEADRACE_GPU=never`` all become `None`.
    device_id
        Number of the GPU; the current one when not given.

    Raises
    ------
    GpuNotAvailableError
        If there is no GPU; it is a `RuntimeError`.
    """
    if stream is None or is_off():
        return None
    if isinstance(stream, Stream) and device_id in (None, stream.device_id):
        return stream
    return Stream(stream=stream, device_id=device_id)


_defaults: dict[int, Stream] = {}


def set_default_stream(cuda_stream: Any, /, device_id: int | None = None) -> None:
    """Set the stream for contexts of any thread that have none of their own.

    It is meant to be called once, before there is work.

    Parameters
    ----------
    cuda_stream
        A `Stream` or what one can be made of; `None` takes it back.
    device_id
        Number of the GPU; that of the stream, or the current one, when not given.

    Raises
    ------
    GpuNotAvailableError
        If a stream is given where there is no GPU.
    """
    if cuda_stream is None or is_off():
        if device_id is None:
            device_id = Device.current().device_id
        if device_id is not None:
            _defaults.pop(device_id, None)
        return
    found = Stream(stream=cuda_stream, device_id=device_id)
    _defaults[found.device_id] = found


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """The stream that `set_default_stream` has set; `None` if there is none.

    Parameters
    ----------
    device_id
        Number of the GPU; the current one when not given.
    """
    if device_id is None:
        device_id = Device.current().device_id
    return None if device_id is None else _defaults.get(device_id)


def set_current_stream(cuda_stream: Any, /) -> None:
    """Set the stream of the calling thread's default context, and of contexts it makes from now on.

    Nothing waits for anything by that: work of the stream before is not awaited.

    Parameters
    ----------
    cuda_stream
        A `Stream` or what one can be made of, of the current GPU; `None` takes it back.

    Raises
    ------
    ArgumentValueError
        If it belongs to another GPU.
    GpuNotAvailableError
        If a stream is given where there is no GPU.
    """
    number = Device.current().device_id
    if cuda_stream is None or is_off():
        THREAD.streams.pop(number, None)
        return
    found = Stream(stream=cuda_stream)
    if found.device_id != number:
        raise ArgumentValueError(
            f"The stream belongs to GPU {found.device_id}; the current device is "
            f"{Device.current()}. Set it inside of `with Device('gpu:{found.device_id}')`."
        )
    THREAD.streams[number] = found


def as_stream(value: Any, device_id: int | None) -> Stream | None:
    """The stream that a user gave to a context."""
    if value is None or isinstance(value, Stream):
        return value
    if is_off():
        return None
    if isinstance(value, (str, bytes)):
        raise ArgumentTypeError(f"`cuda_stream` is a Stream, got {value!r}.")
    return Stream(stream=value, device_id=device_id)


def set_stream_of(device_id: int | None) -> Stream | None:
    """The stream that the calling thread, or the process, has set for a GPU."""
    if device_id is None:
        return None
    return THREAD.streams.get(device_id) or _defaults.get(device_id)

"""Devices of dynamic mode: where data lies and where operators work on it."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, Union, final

from headrace.errors import ArgumentTypeError, ArgumentValueError, GpuNotAvailableError
from headrace.executor.fallback import absence, tell
from headrace.tensors.gpu.runtime import is_off


class _TorchDevice(Protocol):
    """A `torch.device`, as far as it is looked at."""

    type: str
    index: int | None


_THREAD = threading.local()


@final
class Device:
    """The CPU, or one GPU.

    As a context manager, it is the calling thread's current device for the length of a ``with``.

    Parameters
    ----------
    name
        ``"cpu"``, ``"gpu"``, or ``"gpu:1"`` with the number of the GPU among those that CUDA shows
        to the process. ``"cuda"`` is another word for ``"gpu"``.
    device_id
        Number of the GPU, where `name` does not say it. Without either, it is the current one
        of the calling thread.

    Raises
    ------
    ArgumentValueError
        If there is no such device, or the CPU is given a number.
    GpuNotAvailableError
        If a GPU is asked for without a number and there is none; it is a `RuntimeError`.
    """

    CPU: ClassVar[Device]
    """The CPU."""

    __slots__ = ("_hash", "_previous", "device_id", "device_type")

    device_type: Literal["cpu", "gpu"]
    device_id: int | None

    def __init__(self, name: str, device_id: int | None = None) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f'`name` is a string such as "gpu:0", got {name!r}.')
        kind, separator, number = name.partition(":")
        self.device_type = _checked_type(kind, allow_cuda=True)
        if self.device_type == "gpu" and is_off():
            tell(f"`{name if device_id is None else f'{name}:{device_id}'}`", absence())
            self.device_type, separator, device_id = "cpu", "", None
        if separator:
            if device_id is not None:
                raise ArgumentValueError(
                    f"Invalid device name for a `device_id`: {name!r} says the number of the "
                    f"device already; leave out `device_id`={device_id}."
                )
            try:
                device_id = int(number)
            except ValueError:
                raise ArgumentValueError(
                    f"`name`={name!r} must have a number after the colon."
                ) from None
        if device_id is None:
            device_id = Device.default_device_id(self.device_type)
        else:
            _check_id(self.device_type, device_id)
        self.device_id = device_id
        self._hash = hash((self.device_type, self.device_id))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Device):
            return NotImplemented
        return self.device_type == other.device_type and self.device_id == other.device_id

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return (
            self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"
        )

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"

    def __reduce__(self) -> Any:
        return Device, (self.device_type, self.device_id)

    def __enter__(self) -> Device:
        stack = getattr(_THREAD, "devices", None)
        if stack is None:
            stack = _THREAD.devices = []
        previous = None
        if self.device_id is not None:
            from headrace.tensors.gpu.runtime import current_device, get_runtime

            previous = current_device()
            get_runtime(self.device_id).activate()
        stack.append((self, previous))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _, previous = _THREAD.devices.pop()
        if previous is not None:
            from headrace.tensors.gpu.runtime import get_runtime

            get_runtime(previous).activate()

    @staticmethod
    def current() -> Device:
        """The device of the innermost ``with`` of the calling thread.

        Outside of any it is the thread's current GPU, or the CPU where there is no GPU.
        """
        stack = getattr(_THREAD, "devices", None)
        if stack:
            return stack[-1][0]  # type: ignore[no-any-return]
        return Device.CPU if _default_device_type() == "cpu" else Device("gpu")

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """Number of the device that `device_type` means without one; `None` for the CPU.

        Raises
        ------
        ArgumentValueError
            If `device_type` is neither ``"cpu"`` nor ``"gpu"``.
        GpuNotAvailableError
            If there is no GPU.
        """
        if _checked_type(device_type) == "cpu":
            return None
        from headrace.tensors.gpu.runtime import check_available, current_device

        check_available()
        return current_device()

    @staticmethod
    def type_from_dlpack(dlpack_type: int) -> Literal["cpu", "gpu"]:
        """``"cpu"`` or ``"gpu"`` for `dlpack_type`, the number of a device type: 1 or 2.

        Raises
        ------
        ArgumentValueError
            If it is any other.
        """
        if int(dlpack_type) == 1:
            return "cpu"
        if int(dlpack_type) == 2:
            return "gpu"
        raise ArgumentValueError(
            f"Device type {int(dlpack_type)} of DLPack is neither the CPU, 1, nor a CUDA device, 2."
        )

    @staticmethod
    def from_dlpack(source: Any) -> Device:
        """The device of an array that speaks DLPack, or of what its ``__dlpack_device__()`` said.

        Raises
        ------
        ArgumentValueError
            If it is neither the CPU nor a CUDA device.
        ArgumentTypeError
            If `source` is neither.
        """
        say = getattr(source, "__dlpack_device__", None)
        pair = say() if say is not None else source
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ArgumentTypeError(
                f"{source!r} is neither an array with `__dlpack_device__` nor what that returns."
            )
        kind = Device.type_from_dlpack(pair[0])
        return Device.CPU if kind == "cpu" else Device("gpu", int(pair[1]))


DeviceLike: TypeAlias = Union["Device", str, _TorchDevice]
"""Values accepted as a device."""


def device(obj: DeviceLike | None, id: int | None = None) -> Device | None:
    """The device that `obj` stands for.

    Parameters
    ----------
    obj
        A `Device`, a name such as ``"gpu:0"``, a `torch.device`, or `None`, which stays `None`.
    id
        Number of the GPU, with a name that has none.

    Raises
    ------
    ArgumentTypeError
        If `obj` is none of these.
    ArgumentValueError
        If there is no such device, or `id` is given beside anything but a name.
    GpuNotAvailableError
        If a GPU is asked for without a number and there is none.
    """
    if obj is None:
        return None
    if isinstance(obj, Device):
        if id is not None:
            raise ArgumentValueError(f"`id`={id} can go with a name only, not with {obj!r}.")
        return obj
    if isinstance(obj, str):
        if id is None and obj == "cpu":
            return Device.CPU
        return Device(obj, id)
    if type(obj).__name__ == "device" and type(obj).__module__ == "torch":
        if id is not None:
            raise ArgumentValueError(f"`id`={id} can go with a name only, not with {obj!r}.")
        return Device(obj.type, obj.index if obj.type == "cuda" else None)
    raise ArgumentTypeError(
        f"{obj!r} of type {type(obj).__name__} is no device; pass a Device, a torch.device or a "
        'name such as "cpu" or "gpu:0".'
    )


def _checked_type(kind: str, *, allow_cuda: bool = False) -> Literal["cpu", "gpu"]:
    if kind == "cpu":
        return "cpu"
    if kind == "gpu" or (allow_cuda and kind == "cuda"):
        return "gpu"
    raise ArgumentValueError(
        f'Invalid device type: there is no {kind!r}; there are "cpu" and "gpu".'
    )


def _check_id(kind: str, device_id: int) -> None:
    if isinstance(device_id, bool) or not hasattr(device_id, "__index__"):
        raise ArgumentTypeError(f"`device_id` is an integer, got {device_id!r}.")
    if kind == "cpu":
        raise ArgumentValueError(
            f"Invalid device id: there is one CPU only, leave out the number {device_id}."
        )
    if device_id < 0:
        raise ArgumentValueError(f"`device_id` is {device_id}, but must not be negative.")
    from headrace.tensors.gpu.runtime import get_runtime

    try:
        get_runtime(device_id)
    except GpuNotAvailableError as error:
        raise ArgumentValueError(
            f"Invalid device id: there is no GPU number {device_id}: {error}"
        ) from error


def _default_device_type() -> str:
    """Default device type."""
    from headrace.tensors.gpu.runtime import is_available

    return "gpu" if is_available() else "cpu"


Device.CPU = Device("cpu")

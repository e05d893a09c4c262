"""Placement of the outputs of iterators: `device` and `pin_memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from headrace.errors import ArgumentTypeError, ArgumentValueError, MisusedArgumentError
from headrace.pipeline.handed_over import hand_over_on
from headrace.plugin.iterator_arguments import as_list
from headrace.plugin.pytorch.page_locked import page_lock_outputs
from headrace.tensors.gpu.runtime import current_device, is_off

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.pipeline import Pipeline

    Device = str | int | torch.device
    """A device, as PyTorch takes it."""


def place_outputs(
    pipelines: Pipeline | Sequence[Pipeline],
    device: Device | Sequence[Device] | None,
    pin_memory: bool,
) -> bool:
    """Have pipelines, which are not built yet, hand over their outputs as the arguments say; return
    True if those on the host are to be page-locked.
    """
    pipes = as_list(pipelines)
    devices = _each(device, len(pipes))
    if pin_memory and any(number is not None for number in devices):
        raise MisusedArgumentError(
            f"`pin_memory` is True and `device` {device!r}: with `device` the engine uploads all "
            "outputs, from page-locked memory of its own. Leave out one of the two."
        )
    if device is not None:
        for pipe, number in zip(pipes, devices, strict=True):
            hand_over_on(pipe, number)
    return pin_memory and page_lock_outputs(pipes)


def _each(device: Any, count: int) -> list[int | None]:
    """The number of the GPU for each pipeline; `None`: the host."""
    if not isinstance(device, (list, tuple)):
        return [None if device is None else _number(device)] * count
    if len(device) != count:
        raise ArgumentValueError(
            f"`device` has {len(device)} devices for {count} pipelines: give one for each, or one "
            "for all."
        )
    return [_number(each) for each in device]


def _number(device: Any) -> int | None:
    try:
        found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentTypeError(
            f'`device` is {device!r}; expected a device of PyTorch, such as "cuda", "cuda:1", 1 '
            'or "cpu".'
        ) from error
    if found.type == "cpu":
        return None
    if found.type != "cuda":
        raise ArgumentValueError(f"`device` is {device!r}; batches go to CUDA devices, or the CPU.")
    if found.index is not None:
        return found.index
    if torch.cuda.is_available():
        return torch.cuda.current_device()
    return 0 if is_off() else current_device()  # which says what is missing

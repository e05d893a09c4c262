"""Queries about the pipeline for functions of `fn.python_function` and its relatives."""

from __future__ import annotations

from headrace.operators.support.current_stream import current_stream
from headrace.tensors.interop import from_dlpack as DLTensorToArray  # noqa: N812 - DALI's name
from headrace.tensors.interop import to_dlpack as ArrayToDLTensor  # noqa: N812 - DALI's name

__all__ = ["ArrayToDLTensor", "DLTensorToArray", "current_dali_stream"]


def current_dali_stream() -> int:
    """Address of the CUDA stream that the operator works on whose function calls this.

    Work that a function gives to this stream needs no synchronization, with
    ``synchronize_stream=False`` of `fn.dl_tensor_python_function` either.

    Returns
    -------
    int
        The address, for ``cupy.cuda.ExternalStream`` or ``torch.cuda.ExternalStream``. It is 0 in
        functions on the CPU and where no operator's function runs, as in other threads that such a
        function starts.
    """
    return current_stream()


def __dir__() -> list[str]:
    return [*__all__]

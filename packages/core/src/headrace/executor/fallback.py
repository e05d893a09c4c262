"""Programs written for a GPU that were asked to run on the CPU."""

from __future__ import annotations

import warnings

from headrace.config import GPU
from headrace.errors import GpuNotAvailableError
from headrace.graph.user_line import stack_level
from headrace.tensors.gpu.runtime import WITHOUT_GPU, check_available, is_off

_told = False


def absence() -> str:
    """Return the reason why GPU work runs on the CPU by the user's choice, or ""."""
    return f"the environment variable {GPU.name} is 'never'" if is_off() else ""


def why_none() -> str:
    """Return the reason why no GPU can be used, or ""."""
    if is_off():
        return absence()
    try:
        check_available()
    except GpuNotAvailableError as error:
        return str(error).removesuffix(WITHOUT_GPU).strip()
    return ""


def tell(request: str, reason: str) -> None:
    """Warn that the program runs on the CPU; once, whatever else asks for a GPU."""
    global _told
    if _told:
        return
    _told = True
    warnings.warn(
        f"{request} asks for a GPU, and the CPU does the work: {reason.rstrip('.')}. Data that "
        "would be on a GPU is in the host's memory. This is said once, for all of the program.",
        UserWarning,
        stacklevel=stack_level(),
    )

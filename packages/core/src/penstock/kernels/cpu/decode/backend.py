"""Which library decodes on the CPU: chosen once for the process."""

from __future__ import annotations

from functools import cache

from penstock._forking import no_fork
from penstock.config import DECODER
from penstock.errors import MissingDependencyError


@cache
def has_nvimagecodec() -> bool:
    """Whether nvImageCodec decodes; otherwise OpenCV does. See `penstock.config.DECODER`.

    Raises
    ------
    MissingDependencyError
        If the environment asks for nvImageCodec and it cannot be imported.
    """
    choice = DECODER.value()
    if choice == "opencv":
        return False
    with no_fork:
        from penstock.kernels.cpu.decode import nvimagecodec_library

    try:
        nvimagecodec_library.library()
    except (ImportError, OSError) as error:
        if choice == "auto":
            return False
        raise MissingDependencyError(
            f"{DECODER.name} asks for nvImageCodec, which does not load ({error}). Run "
            "`pip install nvidia-nvimgcodec-cu13`, or unset the variable."
        ) from error
    return True

"""Library that decodes on the CPU: chosen once for the process."""

from __future__ import annotations

import warnings
from functools import cache

from headrace._forking import no_fork
from headrace.config import DECODER
from headrace.errors import MissingDependencyError


@cache
def has_nvimagecodec() -> bool:
    """True if nvImageCodec decodes; otherwise OpenCV does. See `headrace.config.DECODER`."""
    choice = DECODER.value()
    if choice == "opencv":
        return False
    with no_fork:
        from headrace.kernels.cpu.decode import nvimagecodec_library

    try:
        nvimagecodec_library.library()
    except (ImportError, OSError) as error:
        way_out = "Run `pip install 'nvidia-nvimgcodec-cu13>=0.9,<0.10'`"
        if choice != "auto":
            raise MissingDependencyError(
                f"{DECODER.name} asks for nvImageCodec, which does not load ({error}). {way_out}, "
                "or unset the variable."
            ) from error
        if not isinstance(error, ModuleNotFoundError):  # it is there
            warnings.warn(
                f"{error}. OpenCV decodes images in its place, with slightly other pixels than "
                f"DALI's. {way_out}, or set {DECODER.name}=opencv.",
                RuntimeWarning,
                stacklevel=2,
            )
        return False
    return True

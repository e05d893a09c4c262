"""Environment switches: what each one means, its default, and the values it takes.

Every switch of the library is declared here and nowhere else. A switch is read when it is first
needed, not at import, so that a program may set it before its first pipeline.
"""

from __future__ import annotations

import functools
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import ArgumentValueError


@dataclass(frozen=True, slots=True)
class Switch:
    """One environment variable."""

    name: str
    default: str
    choices: tuple[str, ...]
    """Allowed values, in lower case."""
    meaning: str

    def value(self) -> str:
        """The value in force, one of `choices`."""
        given = os.environ.get(self.name, "").strip().lower() or self.default
        if given not in self.choices:
            allowed = ", ".join(self.choices)
            raise ArgumentValueError(
                f"The environment variable {self.name} is {given!r}; allowed are {allowed}."
            )
        return given


@dataclass(frozen=True, slots=True)
class NumberSwitch:
    """One environment variable of DALI's that is a number."""

    name: str
    default: float
    lowest: float
    highest: float
    general: str = ""
    """The variable that counts where this one is not set, if there is one."""

    def value(self) -> float:
        """The value in force. One that is not allowed is replaced, with a warning."""
        name = self.name if self.name in os.environ or not self.general else self.general
        given = os.environ.get(name, "").strip()
        if not given:
            return self.default
        try:
            number = float(given)
        except ValueError:
            number = math.nan
        if self.lowest <= number <= self.highest:
            return number
        used = self.default
        if not math.isnan(number):
            used = min(max(number, self.lowest), self.highest)
        warnings.warn(
            f"The environment variable {name} is {given!r}; allowed are numbers from "
            f"{self.lowest:g} to {self.highest:g}. {used:g} is used.",
            UserWarning,
            stacklevel=2,
        )
        return used


DECODER = Switch(
    "HEADRACE_DECODER",
    "auto",
    ("auto", "nvimagecodec", "opencv"),
    "Library that decodes images on the CPU. `auto` takes nvImageCodec where it is installed, "
    "which decodes to DALI's own pixels and reads regions without decoding the rest, and "
    "simplejpeg with OpenCV elsewhere.",
)

COMPILATION_NOTICE = Switch(
    "HEADRACE_COMPILATION_NOTICE",
    "on",
    ("on", "off"),
    "Whether a line is logged when kernels are being compiled and that takes longer than a second.",
)

PROGRESS = Switch(
    "HEADRACE_PROGRESS",
    "1",
    ("0", "1"),
    "Whether a line on the terminal says how far work is that takes longer than two seconds.",
)

FULL_TRACEBACK = Switch(
    "HEADRACE_FULL_TRACEBACK",
    "0",
    ("0", "1"),
    "`1` shows the library's own frames in tracebacks, and errors that others came from. By "
    "default an error shows the user's frames, and says where the operator was created.",
)

WORKERS = Switch(
    "HEADRACE_WORKERS",
    "auto",
    ("auto", "threads", "processes"),
    "What carries the samples of pipelines that are made without `workers`. `auto` takes worker "
    "processes where there are two threads and processors or more, and nothing forbids them.",
)

GPU = Switch(
    "HEADRACE_GPU",
    "auto",
    ("auto", "never"),
    "`never` runs programs that were written for a GPU on the CPU.",
)

VIDEO_DECODER = Switch(
    "HEADRACE_VIDEO_DECODER",
    "auto",
    ("auto", "cpu"),
    "What decodes videos for a GPU. `auto` takes the GPU's own decoders, where PyNvVideoCodec is "
    "installed, for what they know; `cpu` has the CPU decode and uploads frames.",
)

SWITCHES = (DECODER, COMPILATION_NOTICE, PROGRESS, FULL_TRACEBACK, GPU, VIDEO_DECODER, WORKERS)


CHECK = Switch(
    "HEADRACE_CHECK",
    "0",
    ("0", "1"),
    "whether iterations on a GPU that could be queued as they were before are compared with what "
    "their operators queue, and all memory that compiled steps of the CPU touch is checked",
)
AFFINITY_MASKS = ("HEADRACE_AFFINITY_MASK", "DALI_AFFINITY_MASK")
"""Lists of processors for worker threads, in order; the first that is set counts."""


def affinity_mask() -> tuple[str, tuple[int, ...]]:
    """The variable that lists processors for worker threads, and its list; empty without one."""
    for name in AFFINITY_MASKS:
        given = os.environ.get(name, "").strip()
        if not given:
            continue
        items = [item.strip() for item in given.split(",")]
        wrong = next((k for k in items if not (k.isascii() and k.isdigit())), None)
        if wrong is not None:
            raise ArgumentValueError(
                f"The environment variable {name} is {given!r}, in which {wrong!r} is not the "
                'number of a processor; it lists them with commas, as "0,2,4,6".'
            )
        return name, tuple(map(int, items))
    return "", ()


HOST_GROWTH = NumberSwitch(
    "DALI_HOST_BUFFER_GROWTH_FACTOR", 1.1, 1, 4, general="DALI_BUFFER_GROWTH_FACTOR"
)
DEVICE_GROWTH = NumberSwitch(
    "DALI_DEVICE_BUFFER_GROWTH_FACTOR", 1.1, 1, 4, general="DALI_BUFFER_GROWTH_FACTOR"
)
HOST_SHRINK = NumberSwitch("DALI_HOST_BUFFER_SHRINK_THRESHOLD", 0.5, 0, 1)


FILE_CACHE_BYTES = NumberSwitch("HEADRACE_FILE_CACHE_BYTES", 0, 0, 2**60)
FILE_CACHE_CHECK_SECONDS = NumberSwitch("HEADRACE_FILE_CACHE_CHECK_SECONDS", 0, 0, 1e12)
REMOTE_RETRIES = NumberSwitch("HEADRACE_REMOTE_RETRIES", 4, 0, 100)

NUMBER_SWITCHES = (
    HOST_GROWTH,
    DEVICE_GROWTH,
    HOST_SHRINK,
    FILE_CACHE_BYTES,
    FILE_CACHE_CHECK_SECONDS,
    REMOTE_RETRIES,
)


def file_cache_folder() -> Path | None:
    """Return the folder for copies of remote files, ``$HEADRACE_FILE_CACHE``; `None` if unset."""
    given = os.environ.get("HEADRACE_FILE_CACHE", "").strip()
    return Path(given) if given else None


WITHOUT_EFFECT = (
    "DALI_MALLOC_POOL_THRESHOLD",
    "DALI_RESTRICT_PINNED_MEM",
    "DALI_USE_CUDA_MALLOC_ASYNC",
    "DALI_USE_DEVICE_MEM_POOL",
    "DALI_USE_PINNED_MEM_POOL",
    "DALI_USE_VMM",
)
"""Variables that choose among DALI's allocators."""


@functools.cache
def warn_of_variables_without_effect() -> None:
    """Warn, once, of variables that are set for DALI's allocators."""
    given = [name for name in WITHOUT_EFFECT if name in os.environ]
    if given:
        warnings.warn(
            f"{', '.join(given)} of the environment {'has' if len(given) == 1 else 'have'} no "
            "effect: Headrace has one kind of memory pool, which docs/memory.md describes. "
            "`memory_limit_bytes` of a pipeline limits its memory.",
            UserWarning,
            stacklevel=2,
        )


def ram_cache_root() -> Path | None:
    """Return the file system in memory that `fn.cache` keeps samples in: ``$HEADRACE_RAM_CACHE``,
    by default ``/dev/shm``. `None` where there is none.
    """
    given = os.environ.get("HEADRACE_RAM_CACHE", "").strip()
    if given:
        return Path(given)
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else None


def chosen_cache_folder(kind: str) -> Path | None:
    """``$HEADRACE_CACHE_DIR/<kind>``; `None` if the user chose no folder."""
    given = os.environ.get("HEADRACE_CACHE_DIR", "").strip()
    return Path(given, kind) if given else None


def cache_folder(kind: str) -> Path | None:
    """Return the folder for files of this kind between runs; all of them may be deleted at any
    time.

    ``$HEADRACE_CACHE_DIR/<kind>``, by default below ``$XDG_CACHE_HOME/headrace`` or
    ``~/.cache/headrace``. `None` if the user has no home, as an arbitrary user of a container.
    """
    chosen = chosen_cache_folder(kind)
    if chosen is not None:
        return chosen
    shared = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        root = Path(shared) if shared else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "headrace" / kind

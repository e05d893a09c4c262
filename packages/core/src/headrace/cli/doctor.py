"""Facts for ``headrace doctor``, without layout: packages, devices, and suggestions."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from headrace import kernel_cache
from headrace._version import __version__
from headrace.config import (
    AFFINITY_MASKS,
    NUMBER_SWITCHES,
    SWITCHES,
    WITHOUT_EFFECT,
    cache_folder,
)
from headrace.errors import ArgumentValueError, GpuNotAvailableError, MissingDependencyError
from headrace.executor.affinity import find_affinity
from headrace.executor.processes.choice import processors
from headrace.kernels.cpu import opencv
from headrace.tensors.gpu.runtime import check_available, device_count
from headrace.tensors.pool import memory_bytes

_LIBRARIES = {
    "numpy": "",
    "numba": "compiles loops for the CPU",
    "scipy": "Fourier transforms",
    "opencv-python-headless": "images",
    "simplejpeg": "JPEG",
    "nvidia-nvimgcodec-cu13": "images, as DALI decodes them",
    "soundfile": "audio",
    "cloudpickle": "worker processes",
}
_EXTRAS = {
    "fsspec": ("s3://, gs://, https:// in readers", "headrace[remote]"),
    "astropy": ("compressed images in FITS files", "headrace[fits]"),
    "typer": ("this command line", "headrace[cli]"),
}
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
_PLUGINS = {
    "torch": ("PyTorch", "headrace-torch"),
    "jax": ("JAX", "headrace-jax"),
    "tensorflow": ("TensorFlow", "headrace-tf"),
    "squirrel-core": ("Squirrel", "headrace-squirrel"),
    "ray": ("Ray", "headrace-ray"),
}


class Line(NamedTuple):
    """One fact."""

    name: str
    value: str
    is_good: bool | None = None
    """False: something is missing or wrong. None: neither good nor bad."""


class Findings(NamedTuple):
    """All facts, and what to do about them."""

    sections: dict[str, list[Line]]
    to_do: list[str]


def examine() -> Findings:
    """Look at this installation."""
    to_do: list[str] = []
    sections = {
        "This machine": _machine(),
        "Libraries": _libraries(to_do),
        "GPUs": _gpus(to_do),
        "Decoders": _decoders(to_do),
        "Frameworks": _frameworks(to_do),
        "Caches": _caches(to_do),
        "Environment": _environment(to_do),
    }
    return Findings(sections, to_do)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _machine() -> list[Line]:
    count = processors() if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [
        Line("Headrace", __version__),
        Line("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        Line("system", platform.platform()),
        Line("processors", f"{count} that the program may use"),
        Line("memory", f"{memory_bytes() / 2**30:.1f} GiB"),
    ]


def _libraries(to_do: list[str]) -> list[Line]:
    lines = []
    for name, purpose in _LIBRARIES.items():
        version = _version(name)
        if name == opencv.OWN and version:
            lines.append(_opencv(version, to_do))
            continue
        lines.append(Line(name, version or f"missing: {purpose}", bool(version)))
        if not version and name != "nvidia-nvimgcodec-cu13":
            to_do.append(f"pip install {name}: Headrace needs it.")
    for name, (purpose, extra) in _EXTRAS.items():
        version = _version(name)
        lines.append(Line(name, version or f"not there: {purpose}", True if version else None))
        if not version:
            to_do.append(f"pip install '{extra}' for {purpose}.")
    return lines


def _opencv(version: str, to_do: list[str]) -> Line:
    """Check that OpenCV works and is the only one: its distributions overwrite each other's
    files.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        opencv.cv2.cache_clear()  # which would say it once
        try:
            opencv.cv2()
        except MissingDependencyError as error:
            to_do.append(str(error))
            return Line(opencv.OWN, f"{version}; broken", False)
    said = [str(w.message) for w in told]
    if opencv.others() and not said:
        said = [f"OpenCV works, but {opencv.way_out()}"]
    to_do += said
    beside = ", ".join(f"{name} {number}" for name, number in opencv.others().items())
    return Line(opencv.OWN, f"{version}, beside {beside}" if beside else version, not said)


def _gpus(to_do: list[str]) -> list[Line]:
    cupy = next((f"{name} {_version(name)}" for name in _CUPY if _version(name)), "")
    lines = [Line("CuPy", cupy or "not there", True if cupy else None)]
    try:
        check_available()
        count = device_count()
    except ArgumentValueError as error:  # of the environment
        return [*lines, Line("GPUs", str(error), False)]
    except GpuNotAvailableError as error:
        lines.append(Line("GPUs", str(error), None))
        if not cupy and Path("/proc/driver/nvidia").exists():
            to_do.append("pip install 'headrace[cuda13]': there is an NVIDIA driver.")
        return lines
    return [*lines, *(_gpu(number) for number in range(count))]


def _gpu(number: int) -> Line:
    found = importlib.import_module("cupy").cuda.runtime.getDeviceProperties(number)
    name, size = found["name"].decode(), found["totalGlobalMem"] / 2**30
    capability = f"{found['major']}.{found['minor']}"
    return Line(f"GPU {number}", f"{name}, {size:.0f} GiB, compute capability {capability}", True)


def _decoders(to_do: list[str]) -> list[Line]:
    from headrace.kernels.cpu.decode.backend import has_nvimagecodec

    try:
        uses = has_nvimagecodec()
    except (MissingDependencyError, ArgumentValueError) as error:
        return [Line("images on the CPU", str(error), False)]
    images = "nvImageCodec: DALI's own pixels" if uses else "simplejpeg and OpenCV"
    if not uses and platform.system() in ("Linux", "Windows"):
        to_do.append("pip install 'nvidia-nvimgcodec-cu13>=0.9,<0.10' for DALI's own pixels.")
    on_gpu = _version("nvidia-nvjpeg") or _version("nvidia-nvjpeg-cu12")
    return [
        Line("images on the CPU", images, True),
        Line("nvJPEG", on_gpu or "not there; images on a GPU need it", bool(on_gpu) or None),
        Line("audio", f"libsndfile, by soundfile {_version('soundfile')}", True),
    ]


def _frameworks(to_do: list[str]) -> list[Line]:
    lines = []
    for name, (called, plugin) in _PLUGINS.items():
        version, own = _version(name), _version(plugin)
        if version and not own:
            to_do.append(f"pip install {plugin}: {called} is here.")
        value = f"{version or 'not there'}; {plugin} {own or 'not there'}"
        lines.append(Line(called, value, bool(own) if version else None))
    return lines


def _caches(to_do: list[str]) -> list[Line]:
    lines: list[Line] = []
    for folder in kernel_cache.folders(cache_folder("kernels")):
        if any(line.name == str(folder) for line in lines):
            continue
        count, size = file_sizes(folder.rglob("*"))
        can_write = _can_write(folder)
        value = f"{count} files, {size / 1e6:.1f} MB"
        lines.append(Line(str(folder), value if can_write else f"{value}; read-only", can_write))
        if not can_write:
            to_do.append(
                f"Set HEADRACE_CACHE_DIR to a folder that can be written: {folder} cannot, and "
                "kernels are compiled anew in each run."
            )
    beside = Path(__file__).parents[1]
    count, size = file_sizes(p for p in beside.rglob("__pycache__/*") if p.suffix != ".pyc")
    lines.append(Line("beside the package", f"{count} files, {size / 1e6:.1f} MB"))
    return lines


def file_sizes(paths: Iterable[Path]) -> tuple[int, int]:
    """Return the number of `paths` that are files, and their bytes; files may vanish meanwhile."""
    sizes = []
    for path in paths:
        try:
            if path.is_file():
                sizes.append(path.stat().st_size)
        except OSError:
            continue
    return len(sizes), sum(sizes)


def _can_write(folder: Path) -> bool:
    """Return True if the folder, or its nearest existing parent, is writable."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _environment(to_do: list[str]) -> list[Line]:
    """Each variable that is read, and those of DALI's that are set for nothing."""
    lines = [_variable(s.name, s.default, s.value, to_do) for s in SWITCHES]
    lines.append(Line("HEADRACE_CACHE_DIR", os.environ.get("HEADRACE_CACHE_DIR", "not set")))
    lines += [_variable(name, "any processors", _bound, to_do) for name in AFFINITY_MASKS]
    for number in NUMBER_SWITCHES:
        lines.append(_variable(number.name, f"{number.default:g}", number.value, to_do))
        if number.general in os.environ and number.name not in os.environ:
            lines.append(_variable(number.general, "", number.value, to_do))
    read = ("DALI_DISABLE_NVML", "DALI_NUM_THREADS")
    lines += [Line(name, os.environ[name]) for name in read if name in os.environ]
    for name in sorted(set(WITHOUT_EFFECT) & set(os.environ)):
        lines.append(Line(name, f"{os.environ[name]}: without effect", False))
        to_do.append(f"Unset {name}, which chooses among allocators of DALI's.")
    return list(dict.fromkeys(lines))


def _bound() -> None:
    """Find out which processors workers would be bound to."""
    find_affinity(os.cpu_count() or 1, None)


def _variable(name: str, default: str, check: Callable[[], object], to_do: list[str]) -> Line:
    """Report the value of an environment variable; `check` raises or warns if it is invalid."""
    given = os.environ.get(name)
    if given is None:
        return Line(name, f"not set: {default}")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            check()
            said = [str(w.message) for w in told]
        except ArgumentValueError as error:
            said = [str(error)]
    # Of several variables for one thing, one is wrong.
    said = [text for text in said if name in text]
    to_do += [text for text in said if text not in to_do]
    return Line(name, given, False if said else None)

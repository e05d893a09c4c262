"""nvImageCodec's library in C: where it is, its decoders on the CPU, and records of its header.

Its Python binding takes the interpreter 50 to 80 microseconds an image. Compiled loops call the
library itself, whose functions are known to them once `library` was called.

Only what decodes JPEG and TIFF on the CPU is loaded, so that nothing is printed about libraries for
decoding on a GPU that are not there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from headrace._forking import no_fork
from headrace.kernels.cpu.decode.quiet_import import added_environment
from headrace.kernels.loaded import know_symbols

_EXTENSIONS = ("libjpeg_turbo_ext*", "libtiff_ext*", "*opencv_ext*")
_CPU_ONLY_DEVICE = -99999
_VERSION = 9
# What the OpenCV inside of it says about damaged files: we raise errors.
_SILENT = {"OPENCV_LOG_LEVEL": "SILENT"}


def _struct(*fields: Any) -> np.dtype:
    head = [("struct_type", np.int32), ("struct_size", np.uint64), ("struct_next", np.uint64)]
    return np.dtype([*head, *fields], align=True)


# As in its header `nvimgcodec.h`, version 0.9: they change with minor versions. Fields that stay 0,
# and are never read, are joined.
_ORIENTATION = _struct(("rotation_and_flips", np.int32, 3))
_PLANE = _struct(
    ("width", np.uint32),
    ("height", np.uint32),
    ("row_stride", np.uint64),
    ("num_channels", np.uint32),
    ("sample_type", np.int32),
    ("precision", np.uint8),
)
IMAGE_INFO = _struct(
    ("codec_name", np.uint8, 256),
    ("color_spec", np.int32),
    ("chroma_subsampling", np.int32),
    ("sample_format", np.int32),
    ("orientation", _ORIENTATION),
    ("num_planes", np.uint32),
    ("plane", _PLANE),
    ("other_planes", np.uint64, 31 * _PLANE.itemsize // 8),
    ("buffer", np.uint64),
    ("buffer_kind", np.int32),
    ("cuda_stream", np.uint64),
)
_REGION = _struct(
    ("ndim", np.int32),
    ("start", np.int32, 5),
    ("end", np.int32, 5),
    ("out_of_bounds", np.int32, 11),
)
CODE_STREAM_VIEW = _struct(
    ("image_idx", np.uint64), ("region", _REGION), ("bitstream_offset", np.uint64)
)
DECODE_PARAMS = _struct(("apply_exif_orientation", np.int32))
_PROPERTIES = _struct(("version", np.uint32), ("cudart_version", np.uint32))
_INSTANCE_CREATE_INFO = _struct(
    ("load_builtin_modules", np.int32),
    ("load_extension_modules", np.int32),
    ("extension_modules_path", np.uint64),
    ("create_debug_messenger", np.int32),
    ("debug_messenger_desc", np.uint64),
    ("message_severity_and_category", np.uint32, 2),
)
_EXTENSION_DESC = _struct(
    ("instance_and_id", np.uint64, 2),
    ("versions", np.uint32, 2),
    ("create_and_destroy", np.uint64, 2),
)
_BACKEND_PARAMS = _struct(("load_hint", np.float32), ("load_hint_policy", np.int32))
_BACKEND = _struct(("kind", np.int32), ("params", _BACKEND_PARAMS))
_EXECUTION_PARAMS = _struct(
    ("allocators", np.uint64, 2),
    ("max_num_cpu_threads", np.int32),
    ("executor", np.uint64),
    ("device_id", np.int32),
    ("pre_init", np.int32),
    ("skip_pre_sync", np.int32),
    ("num_backends", np.int32),
    ("backends", np.uint64),
)
_STRUCTURE_TYPES = {
    _PROPERTIES: 1,
    _INSTANCE_CREATE_INFO: 2,
    DECODE_PARAMS: 5,
    _ORIENTATION: 7,
    _REGION: 8,
    CODE_STREAM_VIEW: 9,
    IMAGE_INFO: 11,
    _PLANE: 12,
    _BACKEND: 17,
    _EXTENSION_DESC: 27,
    _BACKEND_PARAMS: 29,
    _EXECUTION_PARAMS: 30,
}
_ONLY_CPU_BACKEND, _IGNORE_LOAD_HINT = 1, 1

SAMPLE_TYPES = {
    np.dtype(name): number
    for name, number in {
        "int8": 0x0801,
        "uint8": 0x0802,
        "int16": 0x1003,
        "uint16": 0x1004,
        "int32": 0x2005,
        "uint32": 0x2006,
        "float32": 0x200B,
        "float64": 0x400D,
    }.items()
}
AS_STORED = 2
COLORS = {"RGB": (1, 8), "BGR": (1, 10), "GRAY": (2, 4), "NATIVE": (0, AS_STORED)}
"""``color_spec`` and ``sample_format`` of interleaved pixels."""
HOST_BUFFER = 2


def mark(record: Any) -> None:
    """Give a record of the header, and those in it, their types and sizes."""
    number = _STRUCTURE_TYPES.get(record.dtype)
    if number is not None:
        record["struct_type"], record["struct_size"] = number, record.dtype.itemsize
    for name in record.dtype.names:
        if record.dtype[name].names is not None:
            mark(record[name])


def _marked(dtype: np.dtype) -> np.ndarray:
    record = np.zeros(1, dtype)
    mark(record)
    return record


class Library:
    """The library, with what decodes on the CPU.

    `instance`: its handle. `version`: 900 for 0.9.0.
    """

    def __init__(self) -> None:
        folder = _folder()
        found = sorted([*folder.glob("libnvimgcodec.so*"), *folder.glob("nvimgcodec*.dll")])
        if not found:
            raise ImportError(f"There is no library of nvImageCodec in {folder}.")
        try:
            know_symbols(str(found[0]))
            self._library = ctypes.CDLL(str(found[0]))
            properties = _marked(_PROPERTIES)
            self._call("GetProperties", properties)
            self.version = int(properties["version"][0])
            if self.version // 100 != _VERSION:
                major, minor = divmod(self.version // 100, 100)
                raise RuntimeError(f"version 0.{_VERSION} is needed, and this is {major}.{minor}")
            create = _marked(_INSTANCE_CREATE_INFO)
            create["load_builtin_modules"] = 1
            self.instance = self._made("InstanceCreate", create)
            self._extensions = [self._extended(folder / "extensions", p) for p in _EXTENSIONS]
        except (OSError, RuntimeError) as error:
            raise ImportError(f"nvImageCodec does not load: {error}") from error

    def _extended(self, folder: Path, pattern: str) -> Any:
        """Load an extension, which lives as long as the instance does."""
        for path in sorted(folder.glob(pattern)):
            extension, description = ctypes.CDLL(str(path)), _marked(_EXTENSION_DESC)
            extension.nvimgcodecExtensionModuleEntry(ctypes.c_void_p(description.ctypes.data))
            handle = ctypes.c_void_p()
            self._call("ExtensionCreate", self.instance, ctypes.byref(handle), description)
            return extension, description
        raise OSError(f"there is no {pattern} in {folder}")

    def decoder(self, options: str) -> Decoder:
        """A decoder on the CPU, for one thread: one that two share returns wrong pixels."""
        backend, execution = _marked(_BACKEND), _marked(_EXECUTION_PARAMS)
        backend["kind"] = _ONLY_CPU_BACKEND
        backend["params"]["load_hint"] = 1
        backend["params"]["load_hint_policy"] = _IGNORE_LOAD_HINT
        execution["max_num_cpu_threads"] = 1
        execution["device_id"] = _CPU_ONLY_DEVICE
        execution["num_backends"], execution["backends"] = 1, backend.ctypes.data
        return Decoder(self, self._made("DecoderCreate", execution, options.encode()))

    def destroy_decoder(self, handle: int) -> None:
        """Free what `decoder` made."""
        self._call("DecoderDestroy", ctypes.c_void_p(handle))

    def _made(self, function: str, *args: Any) -> int:
        """The handle that a function makes; what is made of the instance takes it first."""
        handle = ctypes.c_void_p()
        owner = () if function == "InstanceCreate" else (self.instance,)
        self._call(function, *owner, ctypes.byref(handle), *args)
        return handle.value or 0

    def _call(self, function: str, *args: Any) -> None:
        plain = [
            ctypes.c_void_p(arg.ctypes.data)
            if isinstance(arg, np.ndarray)
            else ctypes.c_void_p(arg)
            if isinstance(arg, int)
            else arg
            for arg in args
        ]
        status = getattr(self._library, f"nvimgcodec{function}")(*plain)
        if status:
            raise RuntimeError(f"{function} of nvImageCodec failed with status {status}.")


class Decoder:
    """A decoder of the library; `handle` is what it knows it by."""

    def __init__(self, library: Library, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, library.destroy_decoder, handle).atexit = False


def _folder() -> Path:
    """Folder of nvImageCodec's Python package."""
    spec = importlib.util.find_spec("nvidia.nvimgcodec")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'nvidia.nvimgcodec'", name="nvidia.nvimgcodec")
    return Path(spec.submodule_search_locations[0])


_loading = threading.Lock()


@cache
def library() -> Library:
    """The library, loaded once for the process, whichever threads ask for it at once."""
    with no_fork, _loading:
        return _only()


@cache
def _only() -> Library:
    with added_environment(_SILENT):
        return Library()

"""The part of nvJPEG's C interface that drives the JPEG engines of a GPU.

Source: NVIDIA's `nvjpeg.h`, versions 11.9 to 13.2, and the nvJPEG documentation.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.gpu.decode import engine_loop as loop
from headrace.kernels.gpu.decode import nvimagecodec_module

if TYPE_CHECKING:
    from headrace.tensors.gpu.driver import EventFunctions

_HARDWARE = 3  # NVJPEG_BACKEND_HARDWARE
_INTERPOLATE = 1 << 5  # NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION
_CSS_444 = 0
_PLANES = 4

FORMATS = {"GRAY": 2, "RGB": 5, "BGR": 6}
"""Output formats, by colour: NVJPEG_OUTPUT_Y, _RGBI, _BGRI."""

IMAGE = np.dtype([("channel", np.uint64, _PLANES), ("pitch", np.uint64, _PLANES)])
"""`nvjpegImage_t`: where an image is to be written, and how long its rows are in bytes."""

_CREATING = {
    "nvjpegCreateEx": (c_int, c_void_p, c_void_p, c_uint, POINTER(c_void_p)),
    "nvjpegDestroy": (c_void_p,),
    "nvjpegGetHardwareDecoderInfo": (c_void_p, POINTER(c_uint), POINTER(c_uint)),
    "nvjpegJpegStateCreate": (c_void_p, POINTER(c_void_p)),
    "nvjpegJpegStateDestroy": (c_void_p,),
    "nvjpegJpegStreamCreate": (c_void_p, POINTER(c_void_p)),
    "nvjpegJpegStreamDestroy": (c_void_p,),
    "nvjpegDecodeParamsCreate": (c_void_p, POINTER(c_void_p)),
    "nvjpegDecodeParamsDestroy": (c_void_p,),
    "nvjpegDecodeBatchedPreAllocate": (c_void_p, c_void_p, *(c_int,) * 5),
}
"""Functions that may take long, and the types of their arguments."""
_QUICK = {
    "nvjpegJpegStreamParseHeader": (c_void_p, c_void_p, c_size_t, c_void_p),
    "nvjpegDecodeBatchedSupported": (c_void_p, c_void_p, POINTER(c_int)),
}
"""Functions that take a microsecond or two: to hand the interpreter to other threads meanwhile, and
to wait for it afterwards, would take far longer.
"""
_LOOPED = {
    "nvjpegDecodeBatchedInitialize": (c_void_p, c_void_p, *(c_int,) * 3),
    "nvjpegDecodeBatched": (c_void_p,) * 6,
    "nvjpegDecodeBatchedEx": (c_void_p,) * 7,
    "nvjpegDecodeParamsSetROI": (c_void_p, *(c_int,) * 4),
}
"""Functions that `engine_loop` calls, in its order."""
_STATES = 2
"""A state that is used again before its last batch is decoded makes nvJPEG 13.0 hang; with two of
them, the engines need not rest between batches.
"""


class Tables(NamedTuple):
    """Arguments of nvJPEG for a batch."""

    sources: np.ndarray
    """uint64 ``(samples,)``: addresses of encoded images on the host."""
    sizes: np.ndarray
    """uint64 ``(samples,)``: their lengths."""
    images: np.ndarray
    """`IMAGE` ``(samples,)``: where they are to be decoded to."""
    regions: np.ndarray | None
    """int64 ``(samples, 4)``: offsets to the right and down, width and height of what is to be
    decoded; 0, 0, -1, -1 for a whole image, and `None` for all of them.
    """

    def part(self, begin: int, end: int) -> Tables:
        """The images from number `begin` to before `end`."""
        sources, sizes, images, regions = self
        some = slice(begin, end)
        cut = None if regions is None else regions[some]
        return Tables(sources[some], sizes[some], images[some], cut)

    @classmethod
    def together(cls, tables: list[Tables]) -> Tables:
        """Several batches as one."""
        if len(tables) == 1:
            return tables[0]
        regions = None
        if any(table.regions is not None for table in tables):
            whole = [extents([None] * len(t.sources)) for t in tables]
            regions = np.concatenate(
                [w if t.regions is None else t.regions for t, w in zip(tables, whole, strict=True)]
            )
        return cls(
            np.concatenate([table.sources for table in tables]),
            np.concatenate([table.sizes for table in tables]),
            np.concatenate([table.images for table in tables]),
            regions,
        )


class NvJpegError(RuntimeError):
    """nvJPEG refuses to do something."""


class Functions:
    """The functions of the library, each an attribute of its name."""

    def __init__(self) -> None:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        with contextlib.suppress(ImportError):
            nvimagecodec_module.module()  # if it has found the library already, this is the one
        path = load_nvidia_dynamic_lib("nvjpeg").abs_path
        library = ctypes.CDLL(path)
        quick = ctypes.PyDLL(path, handle=library._handle)
        for owner, declared in ((library, _CREATING), (quick, _QUICK | _LOOPED)):
            for name, types in declared.items():
                function = getattr(owner, name, None)
                if function is None:
                    raise NvJpegError(f"nvJPEG in {path} is too old: it has no `{name}`.")
                function.argtypes = types
                setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@cache
def functions() -> Functions:
    """The library's functions."""
    return Functions()


class Engines:
    """A decoder of nvJPEG's for the JPEG engines of the current device, and what belongs to it.

    Used by one thread at a time; what `job` makes is done by an `EngineThread`.
    """

    def __init__(
        self,
        *,
        interpolate: bool,
        batch_size: int = 1,
        width: int = 1,
        height: int = 1,
        events: EventFunctions | None = None,
    ) -> None:
        self._made: list[tuple[Any, Any]] = []
        self._do = functions()
        handle = c_void_p()
        flags = _INTERPOLATE if interpolate else 0
        _check(self._do.nvjpegCreateEx(_HARDWARE, None, None, flags, byref(handle)))
        self._handle = handle
        self._made.append((self._do.nvjpegDestroy, handle))
        engines, cores = c_uint(), c_uint()
        _check(self._do.nvjpegGetHardwareDecoderInfo(handle, byref(engines), byref(cores)))
        if not engines.value * cores.value:
            raise NvJpegError("The GPU has no JPEG engines.")
        self._stream = self._make("JpegStream")
        record = synchronize = 0
        if events is not None:
            record, synchronize = events.record, events.synchronize
        self._states = []
        for _ in range(_STATES):
            state = self._make("JpegState")
            event = 0
            if events is not None:
                event = events.make()
                self._made.append((events.destroy, event))
            self._states.append((state.value, event))
            # NVIDIA: use the pool of memory also where sizes are unknown; it is much faster.
            _check(
                self._do.nvjpegDecodeBatchedPreAllocate(
                    handle, state, batch_size, width, height, _CSS_444, FORMATS["RGB"]
                )
            )
        self._callbacks, addresses = _addresses(self._do)
        self._functions = np.array([*addresses, record, synchronize], np.uint64)
        self._params = np.empty(0, np.uint64)
        """One for each image of a batch with regions. Images cannot share parameters, nor can
        they be used twice: nvJPEG writes the size of the image into them.
        """

    def _make(self, what: str) -> c_void_p:
        made = c_void_p()
        _check(getattr(self._do, f"nvjpeg{what}Create")(self._handle, byref(made)))
        self._made.append((getattr(self._do, f"nvjpeg{what}Destroy"), made))
        return made

    def take(self, address: int, size_bytes: int) -> bool:
        """True if the engines decode the JPEG file at an address of the host."""
        do, stream, answer = self._do, self._stream, c_int(-1)
        return (
            not do.nvjpegJpegStreamParseHeader(self._handle, address, size_bytes, stream)
            and not do.nvjpegDecodeBatchedSupported(self._handle, stream, byref(answer))
            and answer.value == 0
        )

    def job(self, tables: Tables, color: str, stream: int) -> tuple[np.ndarray, Any]:
        """A job of decoding a batch, for the loop, and what must live until it is done."""
        state, event = self._states[0]
        self._states.append(self._states.pop(0))
        count = len(tables.sources)
        regions = None
        job = np.zeros(loop.JOB_NUMBERS, np.uint64)
        job[loop.FUNCTIONS : loop.FORMAT + 1] = (
            self._functions.ctypes.data,
            self._handle.value or 0,
            state or 0,
            count,
            FORMATS[color],
        )
        job[loop.SOURCES : loop.IMAGES + 1] = [table.ctypes.data for table in tables[:3]]
        if tables.regions is not None:
            regions = np.ascontiguousarray(tables.regions)
            while len(self._params) < count:
                made = self._make("DecodeParams")
                self._params = np.append(self._params, np.uint64(made.value or 0))
            job[loop.PARAMS] = self._params.ctypes.data
            job[loop.REGIONS] = regions.ctypes.data
        job[loop.STREAM] = stream
        job[loop.EVENT] = event
        return job, (self, self._params, tables, regions)

    def close(self) -> None:
        """Give everything back."""
        while self._made:
            destroy, made = self._made.pop()
            destroy(made)

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then the driver is about to go, or has gone
            self.close()


def extents(regions: Sequence[tuple[int, int, int, int] | None] | np.ndarray) -> np.ndarray:
    """Regions, or `None` for whole images, as `Tables` has them.

    Regions have first row and column, and one past the last.
    """
    if isinstance(regions, np.ndarray):
        top, left, bottom, right = regions.T
        return np.stack((left, top, right - left, bottom - top), axis=1)
    whole = (0, 0, -1, -1)
    found = [whole if r is None else (r[1], r[0], r[3] - r[1], r[2] - r[0]) for r in regions]
    return np.array(found, np.int64).reshape(-1, 4)


def _addresses(library: Any) -> tuple[list[Any], list[int]]:
    """Addresses of the functions that the loop calls, and what keeps them valid."""
    kept: list[Any] = []
    for name, types in _LOOPED.items():
        function = getattr(library, name)
        if not hasattr(function, "argtypes"):  # one of Python's, in tests
            function = ctypes.CFUNCTYPE(c_int, *types)(function)
        kept.append(function)
    return kept, [ctypes.cast(function, c_void_p).value or 0 for function in kept]


def _check(status: int) -> None:
    if status:
        raise NvJpegError(f"nvJPEG reports error {status}.")

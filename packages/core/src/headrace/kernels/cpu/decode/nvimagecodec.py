"""Decode on the CPU with nvImageCodec: every format, whole images and regions, no driver needed.

It is the library that DALI decodes with, so pixels are equal bit for bit, and it skips what lies
outside of a region of a JPEG or TIFF image.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numba import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader
from headrace.kernels.cpu.decode.nvimagecodec_library import (
    AS_STORED,
    CODE_STREAM_VIEW,
    COLORS,
    DECODE_PARAMS,
    HOST_BUFFER,
    IMAGE_INFO,
    SAMPLE_TYPES,
    Decoder,
    library,
    mark,
)
from headrace.kernels.cpu.rows import read_only

_SUCCESS = 1

LEAST_COLUMNS = 32
"""A region of a JPEG has no fewer, where the image has as many: libjpeg-turbo upsamples chroma in
another way where it decodes hardly a column of it.
"""


def _function(name: str, *args: Any) -> Any:
    return types.ExternalFunction(f"nvimgcodec{name}", types.int32(*args))


_address = types.uintp
_create_stream = _function("CodeStreamCreateFromHostMem", *[_address] * 5)
_create_part = _function("CodeStreamGetSubCodeStream", *[_address] * 3)
_destroy_stream = _function("CodeStreamDestroy", _address)
_image_info = _function("CodeStreamGetImageInfo", *[_address] * 2)
_create_image = _function("ImageCreate", *[_address] * 3)
_destroy_image = _function("ImageDestroy", _address)
_start = _function("DecoderDecode", *[_address] * 3, types.int32, *[_address] * 2)
_wait = _function("FutureWaitForAll", _address)
_status = _function("FutureGetProcessingStatus", *[_address] * 3)
_destroy_future = _function("FutureDestroy", _address)

_CALL = np.dtype(
    [
        ("stream", np.uint64),
        ("part", np.uint64),
        ("image", np.uint64),
        ("future", np.uint64),
        ("status", np.uint64),
        ("statuses", np.uint64),
        ("params", DECODE_PARAMS),
        ("selected", CODE_STREAM_VIEW),
        ("stored", IMAGE_INFO),
        ("wanted", IMAGE_INFO),
    ],
    align=True,
)
"""Scratch of a call: handles that it makes, its settings, and records for the library."""
(_STREAM, _PART, _IMAGE, _FUTURE, _AT_STATUS, _STATUSES, _PARAMS, _SELECTED, _STORED, _WANTED) = (
    place for _, place, *_ in (_CALL.fields or {}).values()
)


class _Thread(threading.local):
    """Decoder of one thread."""

    def __init__(self) -> None:
        self._decoders: dict[bool, Decoder] = {}
        self.call = np.zeros(1, _CALL)
        mark(self.call)
        self.call["selected"]["region"]["ndim"] = 2
        self.call["wanted"]["num_planes"] = 1
        self.call["wanted"]["buffer_kind"] = HOST_BUFFER

    def decoder(self, fast_idct: bool) -> int:
        found = self._decoders.get(fast_idct)
        if found is None:
            options = ":fancy_upsampling=1 :fast_idct=1" if fast_idct else ""
            found = self._decoders[fast_idct] = library().decoder(options)
        return found.handle


_thread = _Thread()


def decode_into(
    out: np.ndarray,
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    *,
    fast_idct: bool,
    region: tuple[int, int, int, int] | None,
) -> bool:
    """Decode the image in `data` into `out`; False, with `out` undefined, if that is impossible."""
    whole = (0, 0, header.height, header.width)
    calls, handles, kinds = prepared(out.dtype, color, fast_idct)
    bytes_out = out.reshape(-1).view(U8)
    return decode_region(
        calls,
        handles,
        read_only(data),
        whole,
        region or whole,
        kinds,
        out.shape[2],
        bytes_out,
    )


def prepared(
    dtype: np.dtype, color: str, fast_idct: bool
) -> tuple[np.ndarray, tuple[int, int], tuple[int, int, int]]:
    """Sequences `handles` and `kinds` that `decode_region` needs first, in this thread."""
    handles = (library().instance, _thread.decoder(fast_idct))
    return _thread.call, handles, (SAMPLE_TYPES[dtype], *COLORS[color])


@njit(nogil=True)
def decode_region(
    calls: np.ndarray,
    handles: tuple[int, int],
    data: np.ndarray,
    whole: tuple[int, int, int, int],
    region: tuple[int, int, int, int],
    kinds: tuple[int, int, int],
    channels: int,
    out: np.ndarray,
) -> bool:
    """Decode `region` of the image in `data`, which is to be of the size `whole`, into `out`."""
    call, at, instance = calls[0], calls.ctypes.data, handles[0]
    call.stream = 0
    if _create_stream(instance, at + _STREAM, data.ctypes.data, data.size, 0) != 0:
        return False
    good = False
    stored = call.stored
    if (
        _image_info(call.stream, at + _STORED) == 0
        and stored.plane.height == whole[2]
        and stored.plane.width == whole[3]
        and stored.plane.sample_type == kinds[0]
        and (kinds[2] != AS_STORED or stored.num_planes * stored.plane.num_channels == channels)
    ):
        source = at + _STREAM
        call.part = 0
        if region != whole:
            source = at + _PART
            start, end = call.selected.region.start, call.selected.region.end
            start[0], start[1], end[0], end[1] = region
            if _create_part(call.stream, source, at + _SELECTED) != 0:
                source = 0
        if source != 0:
            good = _decode_stream(call, at, handles, source, region, kinds, channels, out)
        if call.part != 0:
            _destroy_stream(call.part)
    _destroy_stream(call.stream)
    return good


@njit(nogil=True)
def _decode_stream(
    call: Any,
    at: int,
    handles: tuple[int, int],
    source: int,
    region: tuple[int, int, int, int],
    kinds: tuple[int, int, int],
    channels: int,
    out: np.ndarray,
) -> bool:
    """Decode the stream whose handle is at address `source`; else as `decode_region`."""
    wanted = call.wanted
    plane = wanted.plane
    height, width = region[2] - region[0], region[3] - region[1]
    plane.height, plane.width, plane.num_channels = height, width, channels
    plane.row_stride = out.size // max(height, 1)
    plane.sample_type = kinds[0]
    wanted.color_spec, wanted.sample_format = kinds[1], kinds[2]
    if kinds[2] == AS_STORED:  # interleaved: formats of planes are odd, and their own follow them
        wanted.sample_format = (call.stored.sample_format + 1) // 2 * 2
    wanted.buffer = out.ctypes.data
    call.image = 0
    if _create_image(handles[0], at + _IMAGE, at + _WANTED) != 0:
        return False
    call.status = 0
    if _start(handles[1], source, at + _IMAGE, 1, at + _PARAMS, at + _FUTURE) == 0:
        _wait(call.future)
        _status(call.future, at + _AT_STATUS, at + _STATUSES)
        _destroy_future(call.future)
    _destroy_image(call.image)
    return call.status == _SUCCESS

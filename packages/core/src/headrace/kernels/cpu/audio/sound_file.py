"""Files of all kinds that libsndfile knows, read without the interpreter.

soundfile hands libsndfile Python functions for a file in memory, each call of which takes the
interpreter. Here they are compiled, so that a whole file is decoded in one call that has let go of
it. Library and declarations are soundfile's.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace._forking import no_fork
from headrace.errors import BadSampleError
from headrace.kernels.compilation import cfunc

_SFM_READ = 0x10
_SEEK_SET = 0
_MOST_PER_BYTE = 1 << 13
"""Samples of a channel that a byte may stand for: in silence, a frame of FLAC has 65,535 in 11
bytes. Damaged headers announce more, and memory would be taken for them.
"""

_memcpy: Any = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))
_BASE, _SIZE, _POSITION = 0, 1, 2
_state: Any = types.CPointer(types.int64)  # type: ignore[attr-defined]


def _length(state: Any) -> Any:
    return numba.carray(state, 3)[_SIZE]


def _seek(offset: Any, whence: Any, state: Any) -> Any:
    place = numba.carray(state, 3)
    if whence == 1:
        offset += place[_POSITION]
    elif whence == 2:
        offset += place[_SIZE]
    if offset < 0:
        return np.int64(-1)
    place[_POSITION] = offset
    return offset


def _read(target: Any, count: Any, state: Any) -> Any:
    place = numba.carray(state, 3)
    count = max(min(count, place[_SIZE] - place[_POSITION]), np.int64(0))
    _memcpy(target, np.uintp(place[_BASE] + place[_POSITION]), np.uintp(count))
    place[_POSITION] += count
    return count


def _tell(state: Any) -> Any:
    return numba.carray(state, 3)[_POSITION]


@cache
def _library() -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """Soundfile's library and declarations, and the functions of a file in memory."""
    with no_fork:
        import soundfile

    library, ffi = soundfile._snd, soundfile._ffi
    integer, place = types.int64, _state
    made = {
        "get_filelen": (_length, integer(place)),
        "seek": (_seek, integer(integer, types.int32, place)),
        "read": (_read, integer(types.uintp, integer, place)),
        "tell": (_tell, integer(place)),
    }
    compiled = {name: cfunc(kind, code) for name, (code, kind) in made.items()}
    functions = ffi.new("SF_VIRTUAL_IO*")
    for name, function in compiled.items():
        setattr(functions, name, ffi.cast(f"sf_vio_{name}", function.address))
    functions.write = ffi.NULL
    return library, ffi, functions, tuple(compiled.values())


class SoundFile:
    """A file opened by libsndfile.

    `source`: the file, uint8, 1-D, contiguous; or its path, where not all of it is wanted.
    """

    def __init__(self, source: np.ndarray | str) -> None:
        library, ffi, functions, _ = _library()
        info = ffi.new("SF_INFO*")
        if isinstance(source, str):
            size = os.stat(source).st_size
            self._file = library.sf_open(os.fsencode(source), _SFM_READ, info)
        else:
            size = source.size
            self._data = source
            self._state = np.array([source.ctypes.data, size, 0], np.int64)
            place = ffi.cast("void*", self._state.ctypes.data)
            self._file = library.sf_open_virtual(functions, _SFM_READ, info, place)
        if self._file == ffi.NULL:
            raise BadSampleError(f"The data is no audio file that can be read: {_why(ffi.NULL)}")
        self.frames = int(info.frames)
        self.channels = int(info.channels)
        self.rate = int(info.samplerate)
        if not 0 <= self.frames <= _MOST_PER_BYTE * size:
            self.close()
            raise BadSampleError(
                f"The audio file is damaged: its header announces {self.frames} samples in "
                f"{size} bytes."
            )
        if not self.frames and _has_ogg_samples(source):
            self.close()
            raise BadSampleError(
                "The audio file is damaged: none of its samples are found, though it has some."
            )

    def close(self) -> None:
        """Free what libsndfile keeps."""
        library, ffi, _, _ = _library()
        if self._file != ffi.NULL:
            library.sf_close(self._file)
            self._file = ffi.NULL

    def read(self, out: np.ndarray, first: int, frames: int) -> None:
        """Fill `out` with samples, the channels of a frame side by side."""
        library, ffi, _, _ = _library()
        name = {"int16": "short", "int32": "int", "float32": "float"}[out.dtype.name]
        target = ffi.cast(f"{name}*", out.ctypes.data)
        done = 0
        if not first or library.sf_seek(self._file, first, _SEEK_SET) == first:
            done = getattr(library, f"sf_readf_{name}")(self._file, target, frames)
        if done != frames:
            why = _why(self._file) if library.sf_error(self._file) else "its end is missing."
            raise BadSampleError(
                f"The audio file is damaged: of {frames} samples from number {first} on, {done} "
                f"could be decoded; {why}"
            )


def _has_ogg_samples(source: np.ndarray | str) -> bool:
    """True if the last page of an Ogg file ends after the first sample. Source: RFC 3533."""
    data = np.fromfile(source, np.uint8) if isinstance(source, str) else source
    content = data.tobytes()
    last = content.rfind(b"OggS")
    end = int.from_bytes(content[last + 6 : last + 14], "little", signed=True)
    return content.startswith(b"OggS") and end > 0


def _why(file: Any) -> str:
    library, ffi, _, _ = _library()
    text: str = ffi.string(library.sf_strerror(file)).decode("utf-8", "replace")
    return text

"""Samples out of a stream of MessagePack, arrays straight into the memory they stay in.

The format is that of https://github.com/msgpack/msgpack/blob/master/spec.md; arrays and NumPy's
scalars are maps with the keys ``nd``, ``type``, ``kind``, ``shape`` and ``data``, as the package
msgpack-numpy defines them. Only their headers are looked at, and a header that is the same as in
the sample before is recognised as a whole: per sample there is nothing to do but copy.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.plugin.squirrel.arrays import checked_size, filled, stored_dtype, unpickled

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.plugin.squirrel.inflate import ByteWindow

_HEADER_BYTES = 512
"""Number of bytes searched at once for an array's header."""
_DEEPEST = 100
_NUMBERS: dict[int, struct.Struct] = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}
_LENGTHS = {0: struct.Struct(">B"), 1: struct.Struct(">H"), 2: struct.Struct(">I")}
_BIN, _EXT, _STR = (0xC4, 0xC7, 0xD9)
_ARRAY, _MAP = (0xDC, 0xDE)
_ND = b"\xc4\x02nd"
_MAP_KINDS = frozenset((*range(0x80, 0x90), 0xDE, 0xDF))


class _Cut(Exception):  # noqa: N818 - told to the user in other words
    """The stream ended inside of a sample."""


class _Header:
    """One array's header as it was found: its bytes, and what they say."""

    __slots__ = ("bytes", "dtype", "scalar", "shape", "size")

    def __init__(
        self, raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], size: int, *, scalar: bool
    ) -> None:
        self.bytes = raw
        self.dtype = dtype
        self.shape = shape
        self.size = size
        self.scalar = scalar


class MessagePackSamples:
    """The samples of one shard, in order."""

    def __init__(
        self, window: ByteWindow, fields: Collection[str] | None, *, allow_pickle: bool
    ) -> None:
        self._window = window
        self._fields = fields
        self._allow_pickle = allow_pickle
        self._headers: dict[Any, _Header] = {}

    def skip(self) -> bool:
        """Move on by one sample; whether there was one."""
        if not self._window.have(1):
            return False
        try:
            self._skip_value(0)
        except _Cut as cut:
            raise _ended() from cut
        return True

    def next(self) -> Any:
        """The next sample, a dictionary of what `fields` names; `None` at the end.

        A sample that is no dictionary is returned as it is.
        """
        window = self._window
        if not window.have(1):
            return None
        try:
            if window.chunk[window.at] not in _MAP_KINDS:
                return self._value(0)
            window.look_ahead(5)
            if window.chunk.startswith(_ND, window.at + 1):
                return self._value(0)  # an array by itself
            found = {}
            wanted = self._fields
            for _ in range(self._map_size()):
                key = self._key(0)
                if wanted is None or key in wanted:
                    found[key] = self._field(key)
                else:
                    self._skip_value(1)
            return found
        except _Cut as cut:
            raise _ended() from cut

    def _field(self, key: Any) -> Any:
        window = self._window
        header = self._headers.get(key)
        window.look_ahead(_HEADER_BYTES)
        if header is not None and window.chunk.startswith(header.bytes, window.at):
            window.at += len(header.bytes)
            return self._payload(header)
        return self._value(1, key)

    def _payload(self, header: _Header) -> Any:
        if header.scalar:
            return np.frombuffer(self._raw(header.size), header.dtype)[0]
        array = filled(header.dtype, header.shape, self._window.read_into)
        if array is None:
            raise _Cut
        return array

    # -- parts ----------------------------------------------------------------------------------

    def _raw(self, count: int) -> bytes:
        window = self._window
        if len(window.chunk) - window.at < count:
            data = bytearray(min(count, 1 << 20))
            if count > len(data):  # believed only as far as there is data
                parts, left = [], count
                while left:
                    part = bytearray(min(left, 1 << 20))
                    if not window.read_into(memoryview(part)):
                        raise _Cut
                    parts.append(part)
                    left -= len(part)
                return b"".join(parts)
            if not window.read_into(memoryview(data)):
                raise _Cut
            return bytes(data)
        at = window.at
        window.at = at + count
        return window.chunk[at : at + count]

    def _byte(self) -> int:
        window = self._window
        if window.at == len(window.chunk) and not window.have(1):
            raise _Cut
        window.at += 1
        return window.chunk[window.at - 1]

    def _length(self, code: int, first: int) -> int:
        form = _LENGTHS[code - first]
        return int(form.unpack(self._raw(form.size))[0])

    def _map_size(self) -> int:
        code = self._byte()
        if 0x80 <= code <= 0x8F:
            return code & 0x0F
        return self._length(code + 1, _MAP)  # 16 bits, 32 bits

    def _key(self, depth: int) -> Any:
        key = self._value(depth + 1)
        try:
            hash(key)
        except TypeError:
            raise BadSampleError(f"a key of a map is {key!r}") from None
        return key

    def _value(self, depth: int, key: Any = None) -> Any:
        """The value ahead. The header of an array that belongs to `key` is remembered."""
        if depth > _DEEPEST:
            raise BadSampleError(f"it has more than {_DEEPEST} levels of lists and maps")
        window = self._window
        start = window.at
        code = self._byte()
        if code <= 0x7F:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code <= 0x8F or code in (0xDE, 0xDF):
            window.at -= 1
            window.look_ahead(_HEADER_BYTES)  # keeps the header in one piece, to remember it
            start = window.at
            return self._map(self._map_size(), depth, key, start)
        if code <= 0x9F:
            return self._list(code & 0x0F, depth)
        if code <= 0xBF:
            return self._text(code & 0x1F)
        if code == 0xC0:
            return None
        if code in (0xC2, 0xC3):
            return code == 0xC3
        if code in _NUMBERS:
            form = _NUMBERS[code]
            return form.unpack(self._raw(form.size))[0]
        if code in (0xC4, 0xC5, 0xC6):
            return self._raw(self._length(code, _BIN))
        if code in (0xD9, 0xDA, 0xDB):
            return self._text(self._length(code, _STR))
        if code in (0xDC, 0xDD):
            return self._list(self._length(code + 1, _ARRAY), depth)
        if code in (0xC7, 0xC8, 0xC9) or 0xD4 <= code <= 0xD8:
            size = 1 << (code - 0xD4) if code >= 0xD4 else self._length(code, _EXT)
            raise BadSampleError(
                f"it holds an extension type of MessagePack (number {self._raw(1)[0]}, {size} "
                "bytes), which Squirrel does not write"
            )
        raise BadSampleError("it is no MessagePack")

    def _text(self, size: int) -> str:
        try:
            return self._raw(size).decode()
        except UnicodeDecodeError as error:
            raise BadSampleError(f"it holds text that is not UTF-8: {error}") from error

    def _list(self, size: int, depth: int) -> tuple[Any, ...]:
        return tuple(self._value(depth + 1) for _ in range(size))

    def _map(self, size: int, depth: int, key: Any, start: int) -> Any:
        window = self._window
        chunk = window.chunk  # far enough, as the header was looked ahead for
        if not chunk.startswith(_ND, window.at):
            found = {}
            for _ in range(size):
                name = self._key(depth)
                found[name] = self._value(depth + 1)
            return _as_complex(found) if b"complex" in found else found
        described: dict[Any, Any] = {}
        for number in range(size):
            name = self._key(depth)
            last = number == size - 1
            if name == b"data" and last and "type" in map(_str, described):
                return self._array(described, key, chunk, start)
            described[name] = self._value(depth + 1)
        return self._decoded(described)

    def _array(self, described: dict[Any, Any], key: Any, chunk: bytes, start: int) -> Any:
        """The array (or scalar) whose data is ahead."""
        window = self._window
        code = self._byte()
        if code not in (0xC4, 0xC5, 0xC6):
            window.at -= 1
            described[b"data"] = self._value(0)
            return self._decoded(described)
        size = self._length(code, _BIN)
        if described.get(b"kind") in (b"O", "O"):
            return unpickled(self._raw(size), allowed=self._allow_pickle)
        scalar = described[b"nd"] is not True
        dtype = stored_dtype(described.get(b"type"))
        shape = checked_size(dtype, () if scalar else described.get(b"shape"), size)
        header = _Header(chunk[start : window.at], dtype, shape, size, scalar=scalar)
        if key is not None and window.chunk is chunk:
            self._headers[key] = header
        return self._payload(header)

    def _decoded(self, described: dict[Any, Any]) -> Any:
        """An array whose parts came in an unusual order, and hence all of them first."""
        data = described.get(b"data")
        if not isinstance(data, bytes) or b"type" not in described:
            return described  # a user's own dictionary, with a key `nd`
        if described.get(b"kind") in (b"O", "O"):
            return unpickled(data, allowed=self._allow_pickle)
        dtype = stored_dtype(described[b"type"])
        scalar = described[b"nd"] is not True
        shape = checked_size(dtype, () if scalar else described.get(b"shape"), len(data))
        array = np.frombuffer(bytearray(data), dtype).reshape(shape)
        return array[()] if scalar else array

    def _skip_value(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise BadSampleError(f"it has more than {_DEEPEST} levels of lists and maps")
        left = 1
        window = self._window
        while left:
            left -= 1
            code = self._byte()
            size = 0
            if code <= 0x7F or code >= 0xE0 or code in (0xC0, 0xC2, 0xC3):
                continue
            if code <= 0x8F:
                left += 2 * (code & 0x0F)
            elif code <= 0x9F:
                left += code & 0x0F
            elif code <= 0xBF:
                size = code & 0x1F
            elif code in _NUMBERS:
                size = _NUMBERS[code].size
            elif code in (0xC4, 0xC5, 0xC6):
                size = self._length(code, _BIN)
            elif code in (0xD9, 0xDA, 0xDB):
                size = self._length(code, _STR)
            elif code in (0xDC, 0xDD):
                left += self._length(code + 1, _ARRAY)
            elif code in (0xDE, 0xDF):
                left += 2 * self._length(code + 1, _MAP)
            elif code in (0xC7, 0xC8, 0xC9):
                size = self._length(code, _EXT) + 1
            elif 0xD4 <= code <= 0xD8:
                size = (1 << (code - 0xD4)) + 1
            else:
                raise BadSampleError("it is no MessagePack")
            if size and not window.skip(size):
                raise _Cut


def _str(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _as_complex(found: dict[Any, Any]) -> Any:
    try:
        return complex(_str(found[b"data"]))
    except (KeyError, ValueError):
        return found


def _ended() -> BadSampleError:
    return BadSampleError("it is cut: the shard ends in the middle of it")

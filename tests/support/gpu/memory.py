"""Memory for the emulated GPU: every piece by itself, between guards, never zero by chance."""

from __future__ import annotations

import bisect
import ctypes
import functools
import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.gpu.cpu_functions import KernelError, sanitizing
from tests.support.gpu.streams import HOST, LateStream

FRESH = 0xFD
"""Byte of memory that nothing has been written to: a half NaN, a huge float, 253."""
_GUARD = 0xBD
_FREED = 0xDD
_GUARD_BYTES = 256
_ALIGNMENT = 256
_KEPT_FREED_BYTES = 64 << 20


@functools.cache
def _library() -> ctypes.CDLL:
    """The C library."""
    library = ctypes.CDLL(None)
    library.posix_memalign.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    library.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return library


class Write(NamedTuple):
    """Bytes that a stream's work writes."""

    begin: int
    end: int
    stream: LateStream
    position: int
    what: str


@dataclass(slots=True)
class Piece:
    """What one call of `allocate` gave."""

    address: int
    size_bytes: int
    kind: str
    """``"device"``, ``"pinned"`` or ``"registered"``, which is page-locked memory of others."""
    base: int
    """What the C library knows it by."""
    written: list[Write] = field(default_factory=list)
    """What copies and fills write there that the host has not waited for."""

    def check_order(self, stream: LateStream, begin: int, size_bytes: int, what: str) -> None:
        """Check that work which `stream` is given next comes behind the writing of these bytes."""
        for write in self.written:
            overlaps = write.begin < begin + size_bytes and begin < write.end
            if overlaps and not stream.is_behind(write.stream, write.position):
                raise KernelError(
                    f"{what} on stream {stream.number:#x}: the {write.what} on stream "
                    f"{write.stream.number:#x} writes there, and nothing waits for it"
                )

    def note_write(self, stream: LateStream, begin: int, size_bytes: int, what: str) -> None:
        """Note that the last work of `stream` writes these bytes."""
        end = begin + size_bytes
        self.written = [
            write
            for write in self.written
            if HOST.get(write.stream, 0) < write.position
            and not (begin <= write.begin and write.end <= end)
        ]
        self.written.append(Write(begin, end, stream, stream.queued, what))


class Memory:
    """The pieces of one device, with the page-locked ones of the host.

    With the address sanitizer, which finds overruns by itself when they happen, the guards are its
    own; else they are checked when a piece is freed, and by `check`.
    """

    def __init__(self) -> None:
        self._guard = 0 if sanitizing() else _GUARD_BYTES
        self._addresses: list[int] = []
        self._pieces: dict[int, Piece] = {}
        self._freed: deque[Piece] = deque()
        self._freed_bytes = 0
        self.device_bytes = 0
        bases: set[int] = set()
        self._bases = bases
        weakref.finalize(self, _release, bases)

    def allocate(self, size_bytes: int, kind: str) -> int:
        """A new piece, aligned to 256 bytes."""
        guard = self._guard
        base = ctypes.c_void_p()
        total = max(size_bytes, 1) + 2 * guard
        if _library().posix_memalign(ctypes.byref(base), _ALIGNMENT, total):
            raise MemoryError(f"{size_bytes} bytes")
        assert base.value is not None
        address = base.value + guard
        ctypes.memset(base.value, _GUARD, guard)
        ctypes.memset(address, FRESH, size_bytes)
        ctypes.memset(address + size_bytes, _GUARD, total - guard - size_bytes)
        self._bases.add(base.value)
        bisect.insort(self._addresses, address)
        self._pieces[address] = Piece(address, size_bytes, kind, base.value)
        if kind == "device":
            self.device_bytes += size_bytes
        return address

    def register(self, address: int, size_bytes: int) -> None:
        """Take in memory of somebody else, which begins and ends where others may."""
        before, behind = self._in_use(address), self._in_use(address + size_bytes - 1)
        for other in (before, behind):
            if other is not None and other.address + other.size_bytes > address:
                raise KernelError(f"memory at {address:#x} is registered already")
        bisect.insort(self._addresses, address)
        self._pieces[address] = Piece(address, size_bytes, "registered", 0)

    def free(self, address: int, kind: str) -> None:
        """Take a piece back, after a look at its guards."""
        piece = self._pieces.get(address)
        if piece is None or piece.kind != kind:
            raise KernelError(f"{address:#x} is not the begin of {kind} memory in use")
        if kind == "registered":
            del self._pieces[address]
            del self._addresses[bisect.bisect_left(self._addresses, address)]
            return
        if piece.base not in self._bases:
            return  # garbage is collected in any order: everything is released already
        self._check_guards(piece)
        del self._pieces[address]
        del self._addresses[bisect.bisect_left(self._addresses, address)]
        if kind == "device":
            self.device_bytes -= piece.size_bytes
        if not self._guard:
            self._release(piece)
            return
        ctypes.memset(address, _FREED, piece.size_bytes)
        self._freed.append(piece)
        self._freed_bytes += piece.size_bytes
        while self._freed_bytes > _KEPT_FREED_BYTES:
            oldest = self._freed.popleft()
            self._freed_bytes -= oldest.size_bytes
            self._check_freed(oldest)
            self._release(oldest)

    def piece(self, address: int) -> Piece | None:
        """The piece that holds `address`; `None` for other memory of the process.

        Raises
        ------
        KernelError
            If the memory has been freed.
        """
        found = self._in_use(address)
        if found is None:
            for freed in self._freed.copy():  # a finalizer may free more meanwhile
                if freed.address <= address < freed.address + freed.size_bytes:
                    raise KernelError(f"{address:#x} is in {freed.kind} memory that has been freed")
        return found

    def _in_use(self, address: int) -> Piece | None:
        index = bisect.bisect_right(self._addresses, address) - 1
        if index < 0:
            return None
        piece = self._pieces[self._addresses[index]]
        # One beyond the end is named by views of no elements.
        return piece if address <= piece.address + piece.size_bytes else None

    def check_range(self, address: int, size_bytes: int) -> Piece | None:
        """The piece that holds all these bytes; `None` for other memory of the process."""
        piece = self.piece(address)
        if piece is not None and address + size_bytes > piece.address + piece.size_bytes:
            raise KernelError(
                f"{size_bytes} bytes from {address:#x} go beyond the {piece.size_bytes} bytes of "
                f"{piece.kind} memory from {piece.address:#x}"
            )
        return piece

    def check(self) -> None:
        """Look at all guards, and for writes to freed memory."""
        # Garbage may be collected at any time, which frees pieces.
        for piece in tuple(self._pieces.values()):
            if piece.base in self._bases:
                self._check_guards(piece)
        for piece in self._freed.copy():
            if piece.base in self._bases:
                self._check_freed(piece)

    def _check_guards(self, piece: Piece) -> None:
        guard = self._guard
        end = piece.address + piece.size_bytes
        if not guard:
            return
        for where, begin in (("before the begin", piece.base), ("behind the end", end)):
            found = _written(begin, guard, _GUARD)
            if found is not None:
                offset = begin + found - (piece.base + guard if begin == piece.base else end)
                raise KernelError(
                    f"something wrote {where} of {piece.size_bytes} bytes of {piece.kind} memory "
                    f"(offset {offset:+d})"
                )

    def _check_freed(self, piece: Piece) -> None:
        found = _written(piece.address, piece.size_bytes, _FREED)
        if found is not None:
            raise KernelError(
                f"something wrote to {piece.size_bytes} bytes of {piece.kind} memory after they "
                f"had been freed (offset {found})"
            )

    def _release(self, piece: Piece) -> None:
        self._bases.discard(piece.base)
        _library().free(piece.base)


def _written(address: int, size_bytes: int, value: int) -> int | None:
    """Offset of the first byte that is not `value`."""
    if not size_bytes:
        return None
    # No ufunc: memory is freed in finalizers, where `tests.support.finalizers` forbids them.
    first = ctypes.c_ubyte.from_address(address).value
    if first == value and not _library().memcmp(address, address + 1, size_bytes - 1):
        return None
    found = ctypes.string_at(address, size_bytes)
    return size_bytes - len(found.lstrip(bytes([value])))


def _release(bases: set[int]) -> None:
    while bases:
        _library().free(bases.pop())

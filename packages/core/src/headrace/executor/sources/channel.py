"""Messages between two processes over a socket, with open files in their baggage."""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = struct.Struct("<Q")
_TIMEVAL = struct.Struct("ll")
_RECEIVED_BYTES = 1 << 16


class Channel:
    """One end of a connection that carries Python objects, and open files beside them.

    Sending is safe from several threads, receiving is for one.
    """

    def __init__(self, connection: socket.socket, timeout_seconds: float | None = None) -> None:
        # Python's default timeout, which a program may set for its own sockets, is not meant.
        connection.settimeout(timeout_seconds)
        self._socket = connection
        self._sending = threading.Lock()
        """Held while a message is written, so that two threads do not mix theirs."""
        self._received = b""
        """Received bytes of messages that `answer` has not returned yet."""

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Two connected sockets, an end for each side."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def fileno(self) -> int:
        """Number of the socket, for waiting on several."""
        return self._socket.fileno()

    def shutdown(self) -> None:
        """End the connection, also for a thread that waits for a message; the number stays."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection; the other end notices."""
        self._socket.close()

    def limit(self, send_seconds: float, answer_seconds: float) -> None:
        """Have the system, at no cost to each call, end `send` and `answer` with a
        `BlockingIOError` after so long; 0 is forever.
        """
        for option, seconds in (
            (socket.SO_SNDTIMEO, send_seconds),
            (socket.SO_RCVTIMEO, answer_seconds),
        ):
            whole, rest = divmod(round(seconds * 1e6), 10**6)
            self._socket.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(whole, rest))

    def ready(self) -> bool:
        """Return True if a message, or the end of the connection, is available."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Wait for a message, or the end of the connection; whether it is there."""
        if self._received:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    @staticmethod
    def packed(message: Any) -> bytes:
        """`message` as it travels."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        return _HEADER.pack(len(body)) + body

    def send(self, message: Any, file: int | None = None) -> None:
        """Send `message`, and the open file with the number `file`; errors are those of
        `send_packed`.
        """
        self.send_packed(self.packed(message), file)

    def send_packed(self, packed: bytes, file: int | None = None) -> None:
        """Send a message that was packed before. Raises `OSError` if the other end is gone, or does
        not read in time (`TimeoutError`).
        """
        data = memoryview(packed)
        with self._sending:
            if file is not None:
                data = data[socket.send_fds(self._socket, [data], [file]) :]
            self._socket.sendall(data)

    def receive(self) -> tuple[Any, int | None]:
        """Return the next message and the descriptor of the file that came with it, which the
        receiver closes. Raises `EOFError` if the other end is gone, `OSError` if it stops in the
        middle.
        """
        header, files, _, _ = socket.recv_fds(self._socket, _HEADER.size, 1)
        for file in files:
            os.set_inheritable(file, False)
        while len(header) < _HEADER.size:
            header += self._some(_HEADER.size - len(header), bool(header))
        body = bytearray(_HEADER.unpack(header)[0])
        missing = memoryview(body)
        while missing:
            count = self._socket.recv_into(missing)
            if not count:
                raise EOFError
            missing = missing[count:]
        return pickle.loads(body), files[0] if files else None

    def answer(self) -> Any:
        """Return the next message of an end that sends no files, in one system call as a rule.
        Raises `EOFError` if that end is gone, `BlockingIOError` after the time that `limit` sets.
        """
        data, size = self._received, _HEADER.size
        while True:
            if len(data) >= _HEADER.size:
                size = _HEADER.size + _HEADER.unpack_from(data)[0]
            if len(data) >= size > _HEADER.size:
                break
            more = self._socket.recv(max(size - len(data), _RECEIVED_BYTES))
            if not more:
                raise EOFError
            data = self._received = data + more
        self._received = data[size:]
        return pickle.loads(memoryview(data)[_HEADER.size : size])

    def _some(self, most: int, begun: bool) -> bytes:
        data = self._socket.recv(most) if begun else b""
        if not data:
            raise EOFError
        return data


def wait_for_any(
    channels: Sequence[Channel], seconds: float, wakeup: int | None = None
) -> list[int]:
    """Wait until a message, or the end of the connection, is there on one of the channels at least,
    or the file `wakeup` can be read; positions of the channels where it is.
    """
    if found := [k for k, channel in enumerate(channels) if channel._received]:
        return found
    poll = select.poll()
    positions = {channel.fileno(): k for k, channel in enumerate(channels)}
    if -1 in positions:  # closed, as by a program that ends while a thread waits
        return [positions[-1]]
    for number in positions:
        poll.register(number, select.POLLIN)
    if wakeup is not None:
        poll.register(wakeup, select.POLLIN)
    return [positions[n] for n, _ in poll.poll(seconds * 1000) if n != wakeup]

"""Peers in processes of their own, so that two libraries do not share an interpreter or a context.

In one process, a library that waits for its turn still costs the other: on an H200, Headrace made
15,500 images a second beside a DALI pipeline that did nothing, and 22,900 alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from benchmarks.support.harness import Peer


class Apart:
    """A process that makes peers and runs them, one at a time.

    `name`: of the process. `tree`: the repository whose packages it imports; those that are
    installed when not given.
    """

    def __init__(self, name: str, tree: Path | None = None) -> None:
        # Not by fork: a context of CUDA does not survive it.
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, tree), name=name, daemon=True)
        self._process.start()
        theirs.close()

    def peer(self, make: Callable[..., Peer], *args: Any) -> ApartPeer:
        """The peer ``make(*args)``, made over there; the one before it is given up."""
        self._ask("make", make, *args)
        return ApartPeer(self.name, self)

    def run(self, seconds: float) -> float:
        """Samples per second of a round of the peer."""
        rate: float = self._ask("run", seconds)
        return rate

    def tell(self, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function(peer, *args)`` returns over there."""
        return self._ask("tell", function, *args)

    def _ask(self, *request: Any) -> Any:
        self._connection.send(request)
        try:
            worked, answer = self._connection.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            raise RuntimeError(f"the process of {self.name} ended with status {code}") from None
        if not worked:
            raise RuntimeError(f"in the process of {self.name}:\n{answer}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()  # it ends when nobody can ask any more
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class ApartPeer(Peer):
    """Stands for a peer in the process of an `Apart`."""

    def __init__(self, name: str, home: Apart) -> None:
        super().__init__(name, _not_here)
        self._home = home

    def run(self, seconds: float) -> float:
        """Samples per second of a round."""
        return self._home.run(seconds)

    def tell(self, function: Callable[..., Any], *args: Any) -> Any:
        """What ``function(peer, *args)`` returns where the peer is."""
        return self._home.tell(function, *args)


class Together(Peer):
    """Peers in several processes that work at the same time.

    `name`: what tables call it. `homes`: the processes. `make`, `args`: what makes the peer of
    each, the number of the process as its last argument.
    """

    def __init__(
        self, name: str, homes: Sequence[Apart], make: Callable[..., Peer], *args: Any
    ) -> None:
        super().__init__(name, _not_here)
        self._pool = ThreadPoolExecutor(len(homes))
        made = self._pool.map(lambda k: homes[k].peer(make, *args, k), range(len(homes)))
        self._peers = list(made)

    def run(self, seconds: float) -> float:
        """Samples per second of all of them."""
        return sum(self._pool.map(lambda peer: peer.run(seconds), self._peers))


def _not_here() -> int:
    raise AssertionError("this peer is in another process")


def use_tree(tree: Path) -> None:
    """Import packages of the repository at `tree`, here and in processes that are started."""
    own = Path(__file__).parents[2]
    sources = [str(path) for path in sorted(tree.glob("packages/*/src"))]
    sys.path[:] = sources + [p for p in sys.path if not Path(p).is_relative_to(own / "packages")]
    os.environ["PYTHONPATH"] = os.pathsep.join([*sources, str(own)])
    import headrace

    if not Path(headrace.__file__).is_relative_to(tree):
        raise ImportError(f"`headrace` comes from {headrace.__file__}, not from {tree}.")


def _serve(connection: Connection, tree: Path | None) -> None:
    if tree is not None:
        use_tree(tree)
    peer: Peer | None = None
    while True:
        try:
            request, *args = connection.recv()
        except EOFError:
            return
        try:
            answer = None
            if request == "make":
                peer = None  # its memory is free before there is another
                peer = args[0](*args[1:])
            elif request == "run":
                assert peer is not None
                answer = peer.run(*args)
            else:
                answer = args[0](peer, *args[1:])
        except Exception:  # the other side raises it
            connection.send((False, traceback.format_exc()))
        else:
            connection.send((True, answer))

"""A consumer of batches on the GPU that does as little as one can: a training loop of one add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.support.harness import Peer
from benchmarks.support.libraries import library, pytorch_plugin


class Consumer:
    """Takes CUDA tensors from a library's iterator, epoch after epoch.

    It waits for the GPU once an epoch. Each batch is read by a tiny kernel, on PyTorch's stream.

    Parameters
    ----------
    name
        Of the library.
    pipe
        Its pipeline: images, then maybe labels.
    names
        Names of the outputs.
    reader
        Name of the reader that says how long an epoch is; without one it never ends.
    """

    def __init__(self, name: str, pipe: Any, names: list[str], reader: str | None) -> None:
        self._iterator = pytorch_plugin(name).DALIGenericIterator(
            [pipe], names, reader_name=reader, auto_reset=True
        )
        self._seen = torch.zeros((), device="cuda")
        self._batches = self._endless()

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self._iterator
            torch.cuda.synchronize()

    def step(self) -> int:
        """Take one batch; returns the number of its samples."""
        images = next(self._batches)[0]["images"]
        self._seen += images[0, 0, 0, 0]
        return len(images)


def peer(
    name: str, graph: Any, *, batch_size: int, threads: int, reader: str | None = "reader"
) -> Peer:
    """The library `name` running `graph` of it on GPU 0, as a consumer in PyTorch sees it."""
    lib = library(name)
    pipe = lib.Pipeline(batch_size=batch_size, num_threads=threads, device_id=0, seed=42)
    with pipe:
        outputs = graph(lib)
        pipe.set_outputs(*outputs)
    consumer = Consumer(name, pipe, ["images", "labels"][: len(outputs)], reader)
    return Peer(name, consumer.step, torch.cuda.synchronize, ahead=3)

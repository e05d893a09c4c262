"""A consumer of batches on the GPU that does as little as one can: a training loop of one add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.support.harness import Peer
from benchmarks.support.libraries import library, pytorch_plugin


class Consumer:
    """Takes CUDA tensors from a library's iterator, epoch after epoch.

    It waits for its GPUs once an epoch. Each batch is read by a tiny kernel, on PyTorch's stream.

    `name`: of the library. `pipes`: its pipelines, each on a GPU of its own: images, then maybe
    labels. `devices`: numbers of these GPUs. `names`: names of the outputs. `reader`: name of the
    reader that says how long an epoch is; without one it never ends. `waits`: whether it waits for
    the GPUs after each batch.
    """

    def __init__(
        self,
        name: str,
        pipes: list[Any],
        devices: list[int],
        names: list[str],
        reader: str | None,
        *,
        waits: bool = False,
    ) -> None:
        self._iterator = pytorch_plugin(name).DALIGenericIterator(
            pipes, names, reader_name=reader, auto_reset=True
        )
        self._seen = [torch.zeros((), device=f"cuda:{k}") for k in devices]
        self._waits = waits
        self._batches = self._endless()

    def finish(self) -> None:
        """Wait for the GPUs."""
        for seen in self._seen:
            torch.cuda.synchronize(seen.device)

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self._iterator
            self.finish()

    def step(self) -> int:
        """Take one batch of each pipeline; returns the number of samples."""
        count = 0
        for seen, outputs in zip(self._seen, next(self._batches), strict=True):
            images = outputs["images"]
            seen += images.flatten()[0]
            count += len(images)
        if self._waits:
            self.finish()
        return count


def peer(
    name: str,
    graph: Any,
    *,
    batch_size: int,
    threads: int,
    reader: str | None = "reader",
    devices: tuple[int, ...] = (0,),
    waits: bool = False,
) -> Peer:
    """The library `name` running `graph` of it on GPUs, as a consumer in PyTorch sees it.

    With several devices, `graph` is called with the library and keywords for the reader of each.
    """
    lib = library(name)
    torch.cuda.set_device(devices[0])
    pipes, outputs = [], ()
    for number, device in enumerate(devices):
        pipe = lib.Pipeline(batch_size=batch_size, num_threads=threads, device_id=device, seed=42)
        shard = {"shard_id": number, "num_shards": len(devices)} if len(devices) > 1 else {}
        with pipe:
            outputs = graph(lib, **shard)
            pipe.set_outputs(*outputs)
        pipes.append(pipe)
    names = ["images", "labels"][: len(outputs)]
    consumer = Consumer(name, pipes, list(devices), names, reader, waits=waits)
    return Peer(name, consumer.step, consumer.finish, ahead=3)

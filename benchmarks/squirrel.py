"""Squirrel data sets: Headrace beside real DALI and beside transforms of PyTorch.

    hatch run bench:squirrel                         the tutorial's case: batches of 512
    hatch run bench:squirrel --samples 512 --batch-size 128 --rounds 1
    hatch run bench:squirrel --without-isal          as most have it installed

Images of 300 x 300 x 3, stored as float32 as in Squirrel's tutorial on DALI (and, where it says so,
as uint8), are cropped to 200 x 200 and rotated by 30 degrees. A round of a peer is a whole epoch of
a new pipeline, its start included. All peers get the same shards and run in turn in one process.
Figures are medians of samples per second.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.support.harness import Peer
from benchmarks.support.libraries import library

Epoch = Callable[[], int]
"""Runs through an epoch and returns the number of samples."""
TUTORIAL = "DALI, tutorial"


def _stream(folder: Path) -> Any:
    from squirrel.driver import MessagepackDriver

    return MessagepackDriver(str(folder)).get_iter()


def _as_float(sample: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(sample["image"], np.float32), sample["label"]


def _collated(samples: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    images, labels = zip(*map(_as_float, samples), strict=True)
    return list(images), list(labels)


def _epoch(
    name: str, source: Callable[[], Any], options: argparse.Namespace, **arguments: Any
) -> Epoch:
    """An epoch of a pipeline of library `name` that is fed by `source`."""

    def run() -> int:
        lib = library(name)
        pipe = lib.Pipeline(
            batch_size=options.batch_size, num_threads=options.threads, device_id=None
        )
        with pipe:
            if "reader" in arguments:
                images, labels = lib.fn.readers.squirrel(**arguments["reader"], name="reader")
            else:
                images, labels = lib.fn.external_source(source=source(), num_outputs=2, **arguments)
            images = lib.fn.crop(images, crop=(200, 200))
            images = lib.fn.rotate(images, angle=30.0, fill_value=0.0, keep_size=True)
            pipe.set_outputs(images, labels)
        pipe.build()
        batches: Iterator[int] = itertools.count()
        if "reader" in arguments:
            batches = iter(range(pipe.epoch_size("reader") // options.batch_size))
        count = 0
        try:
            for _ in batches:
                count += len(pipe.run()[0])
        except StopIteration:
            pass
        return count

    return run


def _by_torch(folder: Path, options: argparse.Namespace) -> Epoch:
    from examples.squirrel.transforms import transformed

    def one(sample: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        image = torch.from_numpy(np.array(sample["image"], np.float32)).permute(2, 0, 1)
        return transformed(image), torch.from_numpy(np.array(sample["label"]))

    def run() -> int:
        stream = _stream(folder).map(one).batched(options.batch_size)
        return sum(len(torch.utils.data.default_collate(batch)[0]) for batch in stream)

    return run


def peers(float32: Path, uint8: Path, options: argparse.Namespace) -> dict[str, Epoch]:
    """What is compared, by name."""
    from headrace.plugin import squirrel

    def tutorial() -> Any:
        return _stream(float32).map(_as_float)

    def batched() -> Any:
        return _stream(float32).batched(options.batch_size).map(_collated)

    def native(folder: Path) -> Callable[[], Any]:
        return lambda: squirrel.source(folder, ["image", "label"], last_batch="drop")

    def reader(folder: Path) -> dict[str, Any]:
        return {"path": str(folder), "fields": ["image", "label"]}

    nothing: Callable[[], Any] = lambda: None  # noqa: E731
    return {
        TUTORIAL: _epoch("DALI", tutorial, options, batch=False),
        "DALI, batched in Squirrel": _epoch("DALI", batched, options),
        "transforms of PyTorch": _by_torch(float32, options),
        "Headrace, tutorial": _epoch("Headrace", tutorial, options, batch=False),
        "Headrace, batched in Squirrel": _epoch("Headrace", batched, options),
        "Headrace, source, float32": _epoch("Headrace", native(float32), options),
        "Headrace, source, uint8": _epoch("Headrace", native(uint8), options),
        "Headrace, readers.squirrel, uint8": _epoch(
            "Headrace", nothing, options, reader=reader(uint8)
        ),
    }


def make_peer(root: Path, batch_size: int, threads: int) -> Peer:
    """The loader of Headrace; a step is an epoch of a new pipeline."""
    from examples.squirrel.imagenette import write_shards

    torch.set_num_threads(1)
    folder = write_shards(root, 8 * batch_size, 8, dtype="uint8")
    options = argparse.Namespace(batch_size=batch_size, threads=threads)
    return Peer("Headrace", peers(folder, folder, options)["Headrace, source, uint8"], ahead=0)


def _without_isal() -> None:
    """Have everybody inflate by zlib, as if isal was not installed."""
    sys.modules["isal"] = None  # type: ignore[assignment]
    import fsspec.compression

    fsspec.compression.register_compression(
        "gzip", lambda file, **how: gzip.GzipFile(fileobj=file, **how), "gz", force=True
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="names of peers; may be repeated")
    parser.add_argument("--data", type=Path, help="where the data set is, or is to be kept")
    parser.add_argument("--without-isal", action="store_true", help="inflate by zlib")
    options = parser.parse_args()
    if options.without_isal:
        _without_isal()
    from examples.squirrel.imagenette import write_shards

    torch.set_num_threads(1)  # the loader's thread is what bounds it
    with tempfile.TemporaryDirectory() as scratch:
        root = options.data or Path(scratch)
        folders = {
            dtype: write_shards(root / dtype, options.samples, options.shards, dtype=dtype)
            for dtype in ("float32", "uint8")
        }
        compared = peers(folders["float32"], folders["uint8"], options)
        if options.only:
            compared = {name: run for name, run in compared.items() if name in options.only}
        rates: dict[str, list[float]] = {name: [] for name in compared}
        for _ in range(options.rounds):
            for name, run in compared.items():
                start = time.perf_counter()
                rates[name].append(run() / (time.perf_counter() - start))
    _print(rates, options)


def _print(rates: dict[str, list[float]], options: argparse.Namespace) -> None:
    library_of = "zlib" if options.without_isal else "isal, where it is installed"
    table = Table(
        title=f"300 x 300 x 3, crop 200, rotate 30: batch {options.batch_size}, {options.threads} "
        f"threads, {options.samples} samples, inflated by {library_of}"
    )
    table.add_column("")
    table.add_column("samples/s", justify="right")
    table.add_column(f"/ {TUTORIAL}", justify="right")
    base = statistics.median(rates[TUTORIAL]) if TUTORIAL in rates else None
    for name, each in rates.items():
        rate = statistics.median(each)
        table.add_row(name, f"{rate:,.0f}", "-" if base is None else f"{rate / base:.2f}x")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

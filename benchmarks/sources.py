"""What data costs to bring in: the ways in which this project reads, beside one another.

    hatch run bench:sources                     all cases
    hatch run bench:sources --case parquet --rounds 9

Peers run in turn, in one process each, on the same photographs; figures are medians of samples per
second and their ratios to the first. The machine may be shared: `--by-processor` counts seconds of
processors.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from benchmarks.support import graphs
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from examples.demo.photographs import write_dataset

BATCH_SIZE = 64
ROW_GROUP = 100
"""Rows in a row group, as Hugging Face's library writes images."""


class _Instead:
    """The library with another reader in place of `readers.file`, for `graphs`."""

    def __init__(self, read: Callable[[], tuple[Any, Any]]) -> None:
        class Readers:
            def file(self, **_: Any) -> tuple[Any, Any]:
                return read()

        class Fn:
            readers = Readers()

            def __getattr__(self, name: str) -> Any:
                return getattr(hr.fn, name)

        self.fn, self.types = Fn(), hr.types


def _peer(name: str, graph: Callable[[], Any], args: argparse.Namespace) -> Peer:
    pipe = hr.Pipeline(
        BATCH_SIZE, num_threads=args.threads, device_id=None, seed=42, workers=args.workers
    )
    with pipe:
        outputs = graph()
        pipe.set_outputs(*(outputs if isinstance(outputs, (tuple, list)) else (outputs,)))
    pipe.build()
    return Peer(name, lambda: len(pipe.run()[0]), by_processor=args.by_processor)


def _files(root: Path) -> tuple[list[Path], list[int]]:
    files = sorted(root.glob("*/*.jpg"))
    classes = sorted({file.parent.name for file in files})
    return files, [classes.index(file.parent.name) for file in files]


def _parquet(root: Path, args: argparse.Namespace) -> dict[str, Sequence[Peer]]:
    """Photographs from Parquet beside the same in files: only read, and for training."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files, labels = _files(root)
    images = [{"bytes": file.read_bytes(), "path": file.name} for file in files]
    table = pa.table({"image": images, "label": labels})
    rows: dict[str, Sequence[Peer]] = {}
    for codec in ("snappy", "none"):
        path = str(root / f"{codec}.parquet")
        pq.write_table(table, path, compression=codec, row_group_size=ROW_GROUP)

        def read(path: str = path) -> Any:
            return tuple(
                hr.fn.readers.parquet(
                    paths=path, columns=["image", "label"], random_shuffle=True, name="reader"
                )
            )

        def by_library(path: str = path) -> Callable[[], int]:
            def batches() -> Any:
                while True:
                    for batch in pq.ParquetFile(path).iter_batches(BATCH_SIZE):
                        column = batch.column("image").field("bytes")
                        yield [np.frombuffer(v.as_buffer(), np.uint8) for v in column]

            made = batches()
            return lambda: len(next(made))

        rows[f"read, {codec}"] = [
            _peer(
                "files", lambda: hr.fn.readers.file(file_root=str(root), random_shuffle=True), args
            ),
            _peer("here", read, args),
            Peer("library", by_library(), by_processor=args.by_processor),
        ]
        rows[f"train, {codec}"] = [
            _peer("files", lambda: graphs.train(hr, str(root)), args),
            _peer("here", lambda read=read: graphs.train(_Instead(read), ""), args),
        ]
    return rows


def _mix(root: Path, args: argparse.Namespace) -> dict[str, Sequence[Peer]]:
    """Three readers of a third of the photographs each, mixed, beside one reader of all."""
    files, labels = _files(root)
    names = list(map(str, files))

    def one() -> Any:
        return tuple(hr.fn.readers.file(files=names, labels=labels, random_shuffle=True))

    def mixed() -> Any:
        parts = [
            hr.fn.readers.file(files=names[k::3], labels=labels[k::3], random_shuffle=True)
            for k in range(3)
        ]
        return tuple(hr.fn.readers.mix(parts)[:2])

    return {
        "read": [_peer("files", one, args), _peer("here", mixed, args)],
        "train": [
            _peer("files", lambda: graphs.train(_Instead(one), ""), args),
            _peer("here", lambda: graphs.train(_Instead(mixed), ""), args),
        ],
    }


CASES: dict[str, Callable[[Path, argparse.Namespace], dict[str, Sequence[Peer]]]] = {
    "parquet": _parquet,
    "mix": _mix,
}


def main() -> None:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help=f"one of {', '.join(CASES)}; default: all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", choices=["threads", "processes"])
    parser.add_argument("--by-processor", action="store_true")
    parser.add_argument("--files", type=int, default=1000, help="number of photographs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one peer")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_dataset(root, args.files)
        for case in checked_cases(args.case, list(CASES)):
            rows = CASES[case](root, args)
            for peers in rows.values():
                measure(peers, rounds=args.rounds, seconds=args.seconds, swapped=True)
            title = f"{case}: batch {BATCH_SIZE}, {args.threads} threads, medians of {args.rounds}"
            print_table(title, rows, reference="files")


if __name__ == "__main__":
    main()

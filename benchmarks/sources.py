"""What data costs to bring in: the ways in which this project reads, beside one another.

    hatch run bench:sources                     all cases
    hatch run bench:sources --case parquet --rounds 9

Peers run in turn, in one process each, on the same photographs; figures are medians of samples per
second and their ratios to the first. The machine may be shared: `--by-processor` counts seconds of
processors.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
import wave
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from benchmarks.support import graphs
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.instead import Instead
from examples.demo.photographs import write_dataset

BATCH_SIZE = 64
ROW_GROUP = 100
"""Rows in a row group, as Hugging Face's library writes images."""


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
            _peer("here", lambda read=read: graphs.train(Instead(read), ""), args),
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
            _peer("files", lambda: graphs.train(Instead(one), ""), args),
            _peer("here", lambda: graphs.train(Instead(mixed), ""), args),
        ],
    }


def _cached(root: Path, args: argparse.Namespace) -> dict[str, Sequence[Peer]]:
    """Training whose decoded and resized photographs come out of a cache, in memory or mapped."""

    def train(where: str | None) -> Any:
        fn = hr.fn
        jpegs, labels = fn.readers.file(file_root=str(root), random_shuffle=True)
        images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
        if where is not None:
            images = fn.cache(images, where=where, limit_bytes=8 << 30)
        images = fn.random_resized_crop(images, size=224)
        images = fn.crop_mirror_normalize(
            images,
            dtype=hr.types.FLOAT,
            output_layout="CHW",
            mean=graphs.MEAN,
            std=graphs.STD,
            mirror=fn.random.coin_flip(),
        )
        return images, labels

    peers = [
        _peer("files", lambda: train(None), args),
        _peer("RAM", lambda: train("ram"), args),
        _peer("mapped", lambda: train(str(root / "cache")), args),
    ]
    for peer in peers[1:]:
        for _ in range(-(-args.files // BATCH_SIZE) + 1):  # the first epoch fills it
            peer.step()
    return {"train": peers}


def _buckets(root: Path, args: argparse.Namespace) -> dict[str, Sequence[Peer]]:
    """Clips of 1 to 20 s, padded in batches: plain ones, and batches of one length; prints the
    share of padding.
    """
    rng, lines, count = np.random.default_rng(1), [], max(args.files, 4000)
    for k, seconds in enumerate(rng.uniform(1, 20, count)):
        path = root / f"{k}.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 1000, 0, "NONE", ""))
            file.writeframes(rng.integers(-9, 9, int(1000 * seconds), np.int16).tobytes())
        lines.append(json.dumps({"audio_filepath": str(path), "duration": seconds}))
    (root / "speech.json").write_text("\n".join(lines))

    def graph(**how: Any) -> Any:
        found = hr.fn.readers.nemo_asr(
            manifest_filepaths=str(root / "speech.json"), read_text=False, name="r", **how
        )
        return found[0] if isinstance(found, (list, tuple)) else found

    plain: dict[str, Any] = {"random_shuffle": True}
    for name, how in (
        ("plain", plain),
        ("buckets", {"bucket_by": "duration", "shuffle_after_epoch": True}),
    ):
        pipe = hr.Pipeline(32, num_threads=args.threads, device_id=None, seed=1)
        with pipe:
            pipe.set_outputs(graph(**how))
        pipe.build()
        used = padded = 0
        for _ in range(count // 32):
            lengths = [shape[0] for shape in pipe.run()[0].shape()]
            used, padded = used + sum(lengths), padded + len(lengths) * max(lengths)
        print(f"buckets: {name}: {1 - used / padded:.1%} of batches of 32 are padding")
    return {
        "clips": [
            _peer("files", lambda: graph(**plain), args),
            _peer("here", lambda: graph(bucket_by="duration", shuffle_after_epoch=True), args),
        ]
    }


def _libraries(root: Path, args: argparse.Namespace) -> dict[str, Sequence[Peer]]:
    """The same files read beside other libraries, as far as these are installed."""
    files, _ = _files(root)
    rows: dict[str, Sequence[Peer]] = {}

    def peer(name: str, batches: Callable[[], Any]) -> Peer:
        def forever() -> Any:
            while True:
                yield from batches()

        made = forever()
        return Peer(name, lambda: len(next(made)), by_processor=args.by_processor)

    if find_spec("webdataset"):
        import webdataset

        archive = root / "train.tar"
        with tarfile.open(archive, "w") as tar:
            for k, file in enumerate(files):
                tar.add(file, f"{k:06}.jpg")

        def by_webdataset() -> Any:
            found = webdataset.WebDataset(str(archive), shardshuffle=False, empty_check=False)
            yield from found.shuffle(1000).to_tuple("jpg").batched(BATCH_SIZE)

        rows["webdataset"] = [
            _peer(
                "files",
                lambda: hr.fn.readers.webdataset(
                    paths=str(archive), ext=["jpg"], random_shuffle=True
                ),
                args,
            ),
            peer("library", lambda: (batch[0] for batch in by_webdataset())),
        ]
    if find_spec("datasets"):
        import datasets

        table = datasets.Dataset.from_dict({"image": [file.read_bytes() for file in files]})

        def by_datasets() -> Any:
            order = np.random.default_rng(1).permutation(len(table))
            for k in range(0, len(order), BATCH_SIZE):
                yield table[order[k : k + BATCH_SIZE]]["image"]

        rows["datasets"] = [
            _peer(
                "files",
                lambda: hr.fn.readers.hf_dataset(
                    dataset=table, columns=["image"], random_shuffle=True
                ),
                args,
            ),
            peer("library", by_datasets),
        ]
    if find_spec("grain"):
        import grain.python as grain

        def by_grain() -> Any:
            found = grain.MapDataset.source(files).shuffle(1).map(lambda file: file.read_bytes())
            return iter(found.batch(BATCH_SIZE, batch_fn=list))

        rows["grain"] = [
            _peer(
                "files", lambda: hr.fn.readers.file(file_root=str(root), random_shuffle=True), args
            ),
            peer("library", by_grain),
        ]
    if find_spec("litdata"):
        from litdata import StreamingDataset
        from litdata.streaming.writer import BinaryWriter

        chunks = root / "chunks"
        chunks.mkdir()
        writer = BinaryWriter(str(chunks), chunk_bytes="16MB")
        for k, file in enumerate(files):
            writer.add_item(k, {"image": file.read_bytes()})
        writer.done()
        writer.merge()
        streamed = StreamingDataset(str(chunks), shuffle=True)

        def by_litdata() -> Any:
            batch = []
            for item in streamed:
                batch.append(item["image"])
                if len(batch) == BATCH_SIZE:
                    yield batch
                    batch = []

        rows["litdata"] = [
            _peer(
                "files", lambda: hr.fn.readers.file(file_root=str(root), random_shuffle=True), args
            ),
            peer("library", by_litdata),
        ]
    for name in ("webdataset", "datasets", "grain", "litdata"):
        if name not in rows:
            print(f"libraries: {name} is not installed, and left out")
    return rows


CASES: dict[str, Callable[[Path, argparse.Namespace], dict[str, Sequence[Peer]]]] = {
    "parquet": _parquet,
    "mix": _mix,
    "cached": _cached,
    "buckets": _buckets,
    "libraries": _libraries,
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
        for case in checked_cases(args.case, list(CASES)):
            root = Path(folder) / case
            root.mkdir()
            if case != "buckets":
                write_dataset(root, args.files)
            rows = CASES[case](root, args)
            for peers in rows.values():
                measure(peers, rounds=args.rounds, seconds=args.seconds, swapped=True)
            title = f"{case}: batch {BATCH_SIZE}, {args.threads} threads, medians of {args.rounds}"
            print_table(title, rows, reference="files")


if __name__ == "__main__":
    main()

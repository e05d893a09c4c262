"""What it takes to open large data sets, and to read small samples out of them, beside DALI.

    hatch run bench:index
    hatch run bench:index --case tar,coco --scale 0.1 --rounds 5

Each figure is the median of processes in turn, of a library each: seconds until a pipeline is
built, with the files in the page cache and nothing kept from before (`again`: with what the process
before has kept), MiB of memory that this takes beyond an imported library, and shuffled samples per
second afterwards. The machine may be shared: `--by-processor` counts seconds of processors.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import statistics
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.libraries import library

LIBRARIES = ("Headrace", "DALI")
BATCH = 64


def _write_list(root: Path, scale: float) -> None:
    count = int(5_000_000 * scale)
    with open(root / "list.txt", "w") as file:
        file.writelines(f"train/n{k % 1000:08}/{k:012}.JPEG {k % 1000}\n" for k in range(count))


def _write_tree(root: Path, scale: float) -> None:
    """Files of 3 kB in a hundred folders."""
    for k in range(int(40_000 * scale)):
        folder = root / f"{k % 100:03}"
        folder.mkdir(exist_ok=True)
        (folder / f"{k:08}.jpg").write_bytes(bytes(3000))


def _write_tar(root: Path, scale: float) -> None:
    """Archives of 3,000 samples, each 3 kB and a label."""
    for number in range(max(int(100 * scale), 1)):
        with tarfile.open(root / f"{number:03}.tar", "w") as archive:
            for k in range(3000):
                for ending, content in (("jpg", bytes(3000)), ("cls", b"%d" % (k % 10))):
                    info = tarfile.TarInfo(f"{number:03}/{k:06}.{ending}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))


def _write_coco(root: Path, scale: float) -> None:
    """Annotations as those of COCO's 118,000 images: seven objects each, with polygons."""
    count = int(118_000 * scale)
    rng = np.random.default_rng(1)
    images = [
        {"license": 3, "file_name": f"{k:012}.jpg", "coco_url": "http://images.cocodataset.org/"}
        | {"height": 480, "width": 640, "date_captured": "2013-11-14 11:18:45", "id": k}
        for k in range(count)
    ]
    points = rng.uniform(0, 400, (1000, 26)).round(2).tolist()
    boxes = rng.uniform(20, 200, (1000, 4)).round(2).tolist()
    annotations = [
        {"segmentation": [points[n % 1000]], "area": 702.1, "iscrowd": 0, "image_id": n // 7}
        | {"bbox": boxes[n % 1000], "category_id": n % 80 + 1, "id": n}
        for n in range(7 * count)
    ]
    categories = [{"supercategory": "x", "id": k + 1, "name": str(k)} for k in range(80)]
    found = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
    (root / "annotations.json").write_text(json.dumps(found))


def _write_tfrecord(root: Path, scale: float) -> None:
    """Records with 3 kB and a label, in ten files, with indices."""
    content = bytes(3000)

    def field(number: int, data: bytes) -> bytes:
        size, head = len(data), b""
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + head + bytes([size]) + data

    data = field(1, field(1, b"data") + field(2, field(1, field(1, content))))
    label = field(1, field(1, b"label") + field(2, field(3, field(1, b"\x05"))))
    message = field(1, data + label)
    record = struct.pack("<QI", len(message), 0) + message + bytes(4)  # without check sums
    for number in range(10):
        count = int(30_000 * scale)
        with open(root / f"{number}.tfrecord", "wb") as file:
            file.write(record * count)
        places = "".join(f"{k * len(record)} {len(record)}\n" for k in range(count))
        (root / f"{number}.idx").write_text(places)


def _write_mxnet(root: Path, scale: float) -> None:
    """Records with 3 kB and a label, with an index."""
    count, content = int(300_000 * scale), struct.pack("<IfQQ", 0, 5.0, 0, 0) + bytes(3000)
    record = struct.pack("<II", 0xCED7230A, len(content)) + content
    (root / "train.rec").write_bytes(record * count)
    (root / "train.idx").write_text("".join(f"{k}\t{k * len(record)}\n" for k in range(count)))


def _write_caffe(root: Path, scale: float) -> None:
    """Records with 3 kB and a label in a data base of LMDB."""
    import lmdb

    def numbered(number: int) -> bytes:
        found = b""
        while number > 127:
            found, number = found + bytes([number & 127 | 128]), number >> 7
        return found + bytes([number])

    datum = b"\x22" + numbered(3000) + bytes(3000) + b"\x28\x05\x38\x01"
    with lmdb.open(str(root / "lmdb"), map_size=1 << 33) as base, base.begin(write=True) as writes:
        for k in range(int(60_000 * scale) + 100):
            writes.put(b"%08d" % k, datum)


def _read_list(lib: Any, root: str) -> Any:
    return lib.fn.readers.file(file_list=f"{root}/list.txt", file_root="/", name="r")


def _read_tree(lib: Any, root: str) -> Any:
    return lib.fn.readers.file(file_root=root, random_shuffle=True, name="r")


def _read_tar(lib: Any, root: str) -> Any:
    paths = sorted(map(str, Path(root).glob("*.tar")))
    return lib.fn.readers.webdataset(
        paths=paths, ext=["jpg", "cls"], random_shuffle=True, initial_fill=4096, name="r"
    )


def _read_coco(lib: Any, root: str) -> Any:
    file = f"{root}/annotations.json"
    return lib.fn.readers.coco(file_root=root, annotations_file=file, name="r")


def _read_tfrecord(lib: Any, root: str) -> Any:
    tfrec = importlib.import_module(f"{lib.__name__}.tfrecord")
    features = {
        "data": tfrec.FixedLenFeature((), tfrec.string, ""),
        "label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
    }
    paths, indices = ([f"{root}/{k}.{e}" for k in range(10)] for e in ("tfrecord", "idx"))
    found = lib.fn.readers.tfrecord(
        path=paths,
        index_path=indices,
        features=features,
        random_shuffle=True,
        initial_fill=4096,
        name="r",
    )
    return list(found.values())


def _read_mxnet(lib: Any, root: str) -> Any:
    return lib.fn.readers.mxnet(
        path=[f"{root}/train.rec"],
        index_path=[f"{root}/train.idx"],
        random_shuffle=True,
        initial_fill=4096,
        name="r",
    )


def _read_caffe(lib: Any, root: str) -> Any:
    return lib.fn.readers.caffe(
        path=f"{root}/lmdb", random_shuffle=True, initial_fill=4096, name="r"
    )


CASES: dict[str, tuple[Callable[[Path, float], None], Callable[[Any, str], Any], int]] = {
    "list": (_write_list, _read_list, 0),
    "tree": (_write_tree, _read_tree, 30_000),
    "tar": (_write_tar, _read_tar, 60_000),
    "coco": (_write_coco, _read_coco, 0),
    "tfrecord": (_write_tfrecord, _read_tfrecord, 60_000),
    "mxnet": (_write_mxnet, _read_mxnet, 60_000),
    "caffe": (_write_caffe, _read_caffe, 60_000),
}
"""By name: what writes the data, what reads it, and how many samples are read."""


def _resident_mib() -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def _one(name: str, case: str, root: str, threads: int, by_processor: bool) -> None:
    """Measure in this process, and print the figures as JSON."""
    lib = library(name)
    clock = time.process_time if by_processor else time.perf_counter
    _, read, count = CASES[case]

    def made(root: str) -> Any:
        pipe = lib.Pipeline(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
        with pipe:
            found = read(lib, root)
            pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else (found,)))
        return pipe

    made(os.environ["SMALL"]).build()  # imports and kernels
    before, start = _resident_mib(), clock()
    pipe = made(root)
    pipe.build()
    opened, memory = clock() - start, _resident_mib() - before
    rate = 0.0
    if count:
        for _ in range(20):
            pipe.run()
        start = clock()
        for _ in range(count // BATCH):
            pipe.run()
        rate = count / (clock() - start)
    print(json.dumps([opened, memory, rate]))


def _measured(case: str, args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        roots = [Path(scratch) / name for name in ("large", "small")]
        for root, scale in zip(roots, (args.scale, 0.001), strict=True):
            root.mkdir()
            CASES[case][0](root, scale)
        found: dict[str, list[list[float]]] = {}
        for turn in range(args.rounds):
            caches = Path(scratch) / f"kept-{turn}"
            for name in (*LIBRARIES, "Headrace again"):
                environment = {**os.environ, "SMALL": str(roots[1]), "XDG_CACHE_HOME": str(caches)}
                words = [name.split()[0], case, str(roots[0]), str(args.threads)]
                command = [sys.executable, "-m", "benchmarks.index", "--one", *words]
                command += ["--by-processor"] * args.by_processor
                run = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
                found.setdefault(name, []).append(json.loads(run.stdout.splitlines()[-1]))
        for name, rows in found.items():
            opened, memory, rate = [statistics.median(column) for column in zip(*rows, strict=True)]
            print(f"{case:10} {name:16} {opened:8.3f} s {memory:8.0f} MiB {rate:10,.0f} samples/s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default=",".join(CASES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--by-processor", action="store_true")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, case, root, threads = args.one
        _one(name, case, root, int(threads), args.by_processor)
        return
    for case in args.case.split(","):
        _measured(case, args)


if __name__ == "__main__":
    main()

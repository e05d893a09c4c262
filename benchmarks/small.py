"""Small images and small batches on the CPU, beside DALI: what a sample and an iteration cost.

    hatch run bench:small                               all cases, 1 and 2 threads
    hatch run bench:small --case cifar one --threads 1  those whose names have one of the words

Each library has a process of its own, and both run in turn. Wall is the time of an
iteration by the clock, processor what all threads of the process take of processors meanwhile;
each is the least of the rounds, since others may use the machine. Headrace's samples are carried by
threads (`--workers auto` leaves that to the engine, whose worker processes are counted, too).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.support.apart import Apart
from benchmarks.support.graphs import MEAN, STD
from benchmarks.support.harness import Peer
from benchmarks.support.libraries import library
from benchmarks.support.processor_time import seconds_of_all
from examples.demo.photographs import photographs

_FILES, _ITERATIONS = 512, 4
_KINDS = {"grey jpg": (28, ".jpg"), "grey png": (28, ".png"), "jpg": (28, ".jpg")}
_KINDS |= {"png": (28, ".png"), "jpg 64": (64, ".jpg")}
"""Folders of small files: extent and kind."""


class Case(NamedTuple):
    """A pipeline and its batch size."""

    graph: Callable[[Any, str, int], tuple[Any, ...]]
    batch_size: int
    files: str = ""
    """Kind of the files that it reads."""


def _fed(lib: Any, extent: int, batch_size: int) -> Any:
    """A source that hands over a new part of a data set in memory each time, as a view of it."""
    random = np.random.default_rng(3)
    images = random.integers(0, 256, (64 * batch_size, extent, extent, 3), np.uint8)
    batches = [images[k * batch_size : (k + 1) * batch_size] for k in range(64)]
    place = 0

    def source() -> np.ndarray:
        nonlocal place
        place = (place + 1) % len(batches)
        return batches[place]

    return lib.fn.external_source(source=source, layout="HWC")


def _normalised(lib: Any, images: Any, **further: Any) -> Any:
    return lib.fn.crop_mirror_normalize(
        images, dtype=lib.types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, **further
    )


def _files(kind: str, lib: Any, root: str, _batch_size: int) -> tuple[Any, ...]:
    """Decode, normalise."""
    fn, types = lib.fn, lib.types
    encoded, labels = fn.readers.file(file_root=f"{root}/{kind}", random_shuffle=True)
    if not kind.startswith("grey"):
        return _normalised(lib, fn.decoders.image(encoded)), labels
    images = fn.decoders.image(encoded, output_type=types.GRAY)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[33.3], std=[78.6]), labels


def _decoded(lib: Any, root: str, _batch_size: int) -> tuple[Any, ...]:
    """Decode files, and nothing else."""
    encoded, labels = lib.fn.readers.file(file_root=f"{root}/jpg 64", random_shuffle=True)
    return lib.fn.decoders.image(encoded), labels


def _trained(lib: Any, root: str, _batch_size: int) -> tuple[Any, ...]:
    """Decode 64x64, a random window resized to 64x64, mirror at random, normalise."""
    encoded, labels = lib.fn.readers.file(file_root=f"{root}/jpg 64", random_shuffle=True)
    images = lib.fn.random_resized_crop(lib.fn.decoders.image(encoded), size=(64, 64))
    return _normalised(lib, images, mirror=lib.fn.random.coin_flip()), labels


def _trained_by_window(lib: Any, root: str, _batch_size: int) -> tuple[Any, ...]:
    """The same with a window that is decoded alone."""
    encoded, labels = lib.fn.readers.file(file_root=f"{root}/jpg 64", random_shuffle=True)
    images = lib.fn.resize(lib.fn.decoders.image_random_crop(encoded), size=(64, 64))
    return _normalised(lib, images, mirror=lib.fn.random.coin_flip()), labels


def _cifar(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Pad by four pixels, cut 32x32 at random, mirror at random, normalise."""
    fn = lib.fn
    images = fn.paste(_fed(lib, 32, batch_size), ratio=1.25, fill_value=0)
    images = fn.crop(
        images,
        crop=(32, 32),
        crop_pos_x=fn.random.uniform(range=[0.0, 1.0]),
        crop_pos_y=fn.random.uniform(range=[0.0, 1.0]),
    )
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    return (_normalised(lib, images),)


def _cifar_by_slice(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """The same by a window that leaves the image."""
    fn, types = lib.fn, lib.types
    images = fn.slice(
        _fed(lib, 32, batch_size),
        start=fn.cast(fn.random.uniform(range=[-4.0, 5.0], shape=2), dtype=types.INT32),
        shape=[32, 32],
        axes=(0, 1),
        out_of_bounds_policy="pad",
    )
    return (_normalised(lib, images, mirror=fn.random.coin_flip()),)


def _cropped(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Cut 28x28 of 32x32 at random, mirror at random, normalise."""
    fn = lib.fn
    images = fn.crop(
        _fed(lib, 32, batch_size),
        crop=(28, 28),
        crop_pos_x=fn.random.uniform(range=[0.0, 1.0]),
        crop_pos_y=fn.random.uniform(range=[0.0, 1.0]),
    )
    images = fn.flip(images, horizontal=fn.random.coin_flip())
    return (_normalised(lib, images),)


def _rotated(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Turn by a drawn angle, normalise."""
    angle = lib.fn.random.uniform(range=[-15.0, 15.0])
    images = lib.fn.rotate(_fed(lib, 32, batch_size), angle=angle, keep_size=True, fill_value=0)
    return (_normalised(lib, images, mirror=lib.fn.random.coin_flip()),)


def _resized(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Enlarge 32x32 to 40x40, cut 32x32 at random, mirror at random, normalise."""
    fn = lib.fn
    images = fn.resize(_fed(lib, 32, batch_size), size=(40, 40))
    x, y = fn.random.uniform(range=[0.0, 1.0]), fn.random.uniform(range=[0.0, 1.0])
    window = {"crop": (32, 32), "crop_pos_x": x, "crop_pos_y": y}
    return (_normalised(lib, images, mirror=fn.random.coin_flip(), **window),)


def _random_resized(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """A random window of 32x32, resized to 32x32, mirror at random, normalise."""
    images = lib.fn.random_resized_crop(_fed(lib, 32, batch_size), size=(32, 32))
    return (_normalised(lib, images, mirror=lib.fn.random.coin_flip()),)


def _erased(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Erase 8x8 at random, mirror at random, normalise."""
    fn = lib.fn
    anchor = fn.random.uniform(range=[0.0, 24.0], shape=2)
    images = fn.erase(_fed(lib, 32, batch_size), anchor=anchor, shape=[8.0, 8.0], axes=(0, 1))
    return (_normalised(lib, images, mirror=fn.random.coin_flip()),)


def _standardised(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Mirror at random, normalise by each image's own mean and deviation."""
    fn = lib.fn
    images = fn.flip(_fed(lib, 32, batch_size), horizontal=fn.random.coin_flip())
    return (fn.normalize(images, axes=(0, 1)),)


def _blurred(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Blur by a drawn width, mirror at random, normalise."""
    fn = lib.fn
    images = fn.gaussian_blur(_fed(lib, 32, batch_size), sigma=fn.random.uniform(range=[0.5, 1.5]))
    return (_normalised(lib, images, mirror=fn.random.coin_flip()),)


def _handed_on(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Hand data on as it is."""
    return (lib.fn.copy(_fed(lib, 64, batch_size)),)


def _light(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Brighten by a drawn factor."""
    factor = lib.fn.random.uniform(range=[0.7, 1.3])
    return (lib.fn.brightness(_fed(lib, 64, batch_size), brightness=factor),)


def _light_chain(lib: Any, _root: str, batch_size: int) -> tuple[Any, ...]:
    """Brighten by a drawn factor, mirror at random, normalise."""
    fn = lib.fn
    images = fn.brightness(
        _fed(lib, 64, batch_size), brightness=fn.random.uniform(range=[0.7, 1.3])
    )
    return (_normalised(lib, images, mirror=fn.random.coin_flip()),)


CASES: dict[str, Case] = {
    **{
        f"files 28, {kind}, {size}": Case(partial(_files, kind), size, kind)
        for size in (32, 128)
        for kind in _KINDS
        if kind != "jpg 64"
    },
    **{
        f"{name}, {size}": Case(graph, size)
        for size in (32, 128)
        for name, graph in (
            ("cifar", _cifar),
            ("cifar by slice", _cifar_by_slice),
            ("crop of 32x32", _cropped),
            ("rotate 32x32", _rotated),
            ("resize 32x32", _resized),
            ("random_resized_crop 32x32", _random_resized),
            ("erase 32x32", _erased),
            ("normalize 32x32", _standardised),
            ("gaussian_blur 32x32", _blurred),
        )
    },
    "training on 64x64, 128": Case(_trained, 128, "jpg 64"),
    "training on 64x64 by window, 128": Case(_trained_by_window, 128, "jpg 64"),
    **{
        f"{name}, {size}": Case(graph, number, "jpg 64" if graph is _decoded else "")
        for size, number in (("one", 1), ("eight", 8))
        for name, graph in (
            ("copy", _handed_on),
            ("brightness", _light),
            ("brightness to normalise", _light_chain),
            ("decode", _decoded),
        )
    },
}


def write_files(root: Path, kinds: Iterable[str] = tuple(_KINDS)) -> None:
    """Folders with small images of some kinds."""
    images = list(photographs().values())
    for kind in kinds:
        extent, suffix = _KINDS[kind]
        for number in range(_FILES):
            image = images[number % len(images)]
            top, left = (number * 37) % 64, (number * 53) % 64
            own = cv2.resize(image[top:, left:], (extent, extent), interpolation=cv2.INTER_AREA)
            own = cv2.cvtColor(own, cv2.COLOR_RGB2GRAY if "grey" in kind else cv2.COLOR_RGB2BGR)
            path = root / kind / str(number % 10) / f"{number}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), own)


def make(name: str, case: str, root: str, threads: int, workers: str) -> Peer:
    """A pipeline of one case."""
    os.environ["HEADRACE_WORKERS"] = workers
    lib = library(name)
    graph, batch_size, _ = CASES[case]
    pipe = lib.Pipeline(batch_size, threads, None, seed=7)
    with pipe:
        pipe.set_outputs(*graph(lib, root, batch_size))
    pipe.build()

    def step() -> int:
        pipe.run()
        return 1

    return Peer(name, step, ahead=2)


def timed(peer: Peer, seconds: float) -> tuple[float, float]:
    """Microseconds of an iteration by the clock, and of processors."""
    for _ in range(8):
        peer.step()  # what was made ready while the other one ran is not counted
    alone = os.environ["HEADRACE_WORKERS"] == "threads"
    processor = time.process_time if alone else seconds_of_all
    iterations = 0
    start, worked = time.perf_counter(), processor()
    while iterations == 0 or (took := time.perf_counter() - start) < seconds:
        for _ in range(_ITERATIONS):
            peer.step()
        iterations += _ITERATIONS
    return 1e6 * took / iterations, 1e6 * (processor() - worked) / iterations


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", help="words of their names; default: all")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one round of one library")
    parser.add_argument("--warm-up", type=float, default=1.5, help="seconds, of each library")
    parser.add_argument("--workers", choices=("threads", "auto"), default="threads")
    return parser.parse_args()


def main() -> None:
    """Measure what the command line asks for."""
    args = _arguments()
    known = {case.partition(",")[0] for case in CASES} | set(CASES)
    chosen = [c for c in CASES if not args.case or any(word in c for word in args.case)]
    if not chosen:
        raise SystemExit(f"No case has such a word in its name; there are: {', '.join(known)}.")
    table = Table(title=f"microseconds of an iteration, least of {args.rounds} rounds")
    table.add_column("case, batch")
    table.add_column("threads", justify="right")
    for name in ("DALI", "Headrace"):
        for what in ("wall", "processor"):
            table.add_column(f"{name}\n{what}", justify="right")
    table.add_column("DALI / Headrace\nwall", justify="right")
    table.add_column("processor", justify="right")
    with tempfile.TemporaryDirectory() as folder, Apart("DALI") as dali, Apart("Headrace") as own:
        write_files(Path(folder), {CASES[case].files for case in chosen} - {""})
        for case in chosen:
            for threads in args.threads:
                row = _row((dali, own), case, threads, folder, args)
                table.add_row(case, str(threads), *row)
                print(case, threads, *row, flush=True)
    Console(width=140).print(table)


def _row(
    homes: Sequence[Apart], case: str, threads: int, folder: str, args: argparse.Namespace
) -> list[str]:
    """The figures of a case, as texts."""
    best: dict[str, list[float]] = {}
    for home in homes:
        home.peer(make, home.name, case, folder, threads, args.workers)
        home.tell(timed, args.warm_up)
        best[home.name] = [float("inf")] * 2
    for _ in range(args.rounds):
        for home in homes:
            found = home.tell(timed, args.seconds)
            best[home.name] = list(map(min, best[home.name], found))
    (wall, worked), (own_wall, own_worked) = best["DALI"], best["Headrace"]
    ratios = f"{wall / own_wall:.2f}x", f"{worked / own_worked:.2f}x"
    return [*(f"{t:,.0f}" for t in (wall, worked, own_wall, own_worked)), *ratios]


if __name__ == "__main__":
    main()

"""Generic operators in pipelines of one each, beside DALI, each library in a process of its own.

    hatch run bench:generic-operators                          all cases
    hatch run bench:generic-operators --case stack --rounds 9  those whose names have the word

Both libraries are fed the same arrays; a case is what comes on top.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.support.apart import Apart
from benchmarks.support.harness import Peer, measure, print_table
from benchmarks.support.libraries import library

Graph = Callable[[Any, Any], Any]


def _numbers(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, high, shape).astype(np.uint8)


def _boxes(*shape: int) -> np.ndarray:
    """Left, top, right and bottom, each from 0 to 1."""
    corners = np.random.default_rng(0).random((*shape, 2, 2), np.float32)
    return np.sort(corners, axis=-2).reshape(*shape, 4)


_IMAGES = (255, 32, 240, 320, 3)
_PLANES = (255, 32, 240, 320)
_VIDEOS = (255, 64, 8, 64, 64, 3)
_MASKS = (21, 32, 128, 128)
_LABELS = (10, 256, 1)
_ANCHORS = _boxes(2000).reshape(-1).tolist()

_SPECTRA = np.random.default_rng(0).standard_normal((32, 80, 600), np.float32)
_MEAN = np.full((3, 3), 1 / 9, np.float32)


def _moments(lib: Any, x: Any) -> Any:
    mean = lib.fn.reductions.mean(x, axes=[0, 1])
    return mean, lib.fn.reductions.std_dev(x, mean, axes=[0, 1])


def _reduced(name: str, axes: list[int]) -> Graph:
    return lambda lib, x: getattr(lib.fn.reductions, name)(x, axes=axes)


CASES: dict[str, tuple[tuple[int, ...] | np.ndarray, Graph]] = {
    "cat, rows": (_IMAGES, lambda lib, x: lib.fn.cat(x, x)),
    "cat, columns": (_IMAGES, lambda lib, x: lib.fn.cat(x, x, axis=1)),
    "cat, channels": (_IMAGES, lambda lib, x: lib.fn.cat(x, x, axis=2)),
    "cat, labels": (_LABELS, lambda lib, x: lib.fn.cat(x, x)),
    "stack, images": (_IMAGES, lambda lib, x: lib.fn.stack(x, x)),
    "stack, planes to pixels": (_PLANES, lambda lib, x: lib.fn.stack(x, x, x, axis=2)),
    "stack, labels": (_LABELS, lambda lib, x: lib.fn.stack(x, x)),
    "one_hot, labels, 10": (_LABELS, lambda lib, x: lib.fn.one_hot(x, num_classes=10)),
    "one_hot, labels, 1000": (_LABELS, lambda lib, x: lib.fn.one_hot(x, num_classes=1000)),
    "one_hot, masks, last axis": (_MASKS, lambda lib, x: lib.fn.one_hot(x, num_classes=21)),
    "one_hot, masks, first axis": (
        _MASKS,
        lambda lib, x: lib.fn.one_hot(x, num_classes=21, axis=0),
    ),
    "element_extract": (_VIDEOS, lambda lib, x: lib.fn.element_extract(x, element_map=[0, 4])),
    "sequence_rearrange": (
        _VIDEOS,
        lambda lib, x: lib.fn.sequence_rearrange(x, new_order=list(range(7, -1, -1))),
    ),
    "permute_batch": (
        _IMAGES,
        lambda lib, x: lib.fn.permute_batch(x, indices=lib.fn.batch_permutation()),
    ),
    "permute_batch, behind flip": (
        _IMAGES,
        lambda lib, x: lib.fn.permute_batch(
            lib.fn.flip(x, horizontal=1), indices=lib.fn.batch_permutation()
        ),
    ),
    "paste": (_IMAGES, lambda lib, x: lib.fn.paste(x, ratio=2, fill_value=(1, 2, 3))),
    "grid_mask": (_IMAGES, lambda lib, x: lib.fn.grid_mask(x, tile=50, angle=0.3)),
    "noise.gaussian": (_IMAGES, lambda lib, x: lib.fn.noise.gaussian(x, stddev=10.0)),
    "noise.salt_and_pepper": (_IMAGES, lambda lib, x: lib.fn.noise.salt_and_pepper(x, prob=0.1)),
    "bbox_paste": (_boxes(64, 10), lambda lib, x: lib.fn.bbox_paste(x, ratio=2)),
    "equalize": (_IMAGES, lambda lib, x: lib.fn.equalize(x)),
    "lookup_table": (
        _IMAGES,
        lambda lib, x: lib.fn.lookup_table(x, keys=[1], values=[3], dtype=lib.types.UINT8),
    ),
    "filter, 3 x 3": (
        _IMAGES,
        lambda lib, x: lib.fn.filter(lib.fn.reshape(x, layout="HWC"), _MEAN),
    ),
    "erase, one region": (
        _IMAGES,
        lambda lib, x: lib.fn.erase(x, anchor=(40, 60), shape=(80, 90), axes=[0, 1]),
    ),
    "erase, four drawn regions": (
        _IMAGES,
        lambda lib, x: lib.fn.erase(
            x,
            anchor=lib.fn.random.uniform(range=(0.0, 1.0), shape=8),
            shape=(0.1, 0.2) * 4,
            axes=[0, 1],
            normalized=True,
        ),
    ),
    "reductions, mean and std_dev of channels": (_IMAGES, _moments),
    **{
        f"reductions.{name}, {what}": (data, _reduced(name, axes))
        for name in ("max", "sum", "mean", "rms")
        for what, data, axes in (
            ("channels of images", _IMAGES, [0, 1]),
            ("pixels of images", _IMAGES, [2]),
            ("rows of spectra", _SPECTRA, [1]),
            ("columns of spectra", _SPECTRA, [0]),
        )
    },
    "random_bbox_crop": (
        _boxes(64, 10),
        lambda lib, x: lib.fn.random_bbox_crop(
            x,
            np.arange(10, dtype=np.int32),
            scaling=[0.3, 1.0],
            aspect_ratio=[0.5, 2.0],
            thresholds=[0.0, 0.1, 0.3],
            num_attempts=10,
        ),
    ),
    "box_encoder": (
        _boxes(64, 10),
        lambda lib, x: lib.fn.box_encoder(x, np.arange(10, dtype=np.int32), anchors=_ANCHORS),
    ),
}


def pipeline(name: str, case: str, threads: int, by_processor: bool = False) -> Peer:
    """A pipeline of one operator."""
    lib = library(name)
    feed, graph = CASES[case]
    batch = feed if isinstance(feed, np.ndarray) else _numbers(*feed)
    pipe = lib.Pipeline(batch_size=len(batch), num_threads=threads, device_id=None)
    with pipe:
        outputs = graph(lib, lib.fn.external_source(source=lambda: batch))
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    pipe.build()

    def step() -> int:
        pipe.run()
        return len(batch)

    return Peer(name, step, ahead=2, by_processor=by_processor)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="a word of their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each peer in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="seconds are those of processors")
    options = parser.parse_args()
    rows = {}
    with Apart("DALI") as dali, Apart("Headrace") as headrace:
        for case in CASES:
            if options.case and not any(word in case for word in options.case):
                continue
            peers = [
                home.peer(pipeline, home.name, case, options.threads, options.processor)
                for home in (dali, headrace)
            ]
            measure(peers, rounds=options.rounds, seconds=options.seconds)
            rows[case] = peers
    print_table(f"pipelines of one operator, {options.threads} threads", rows)


if __name__ == "__main__":
    main()

"""Automatic augmentation and conditionals beside DALI, each library in a process of its own.

    hatch run bench:auto-aug                            all cases
    hatch run bench:auto-aug --case rand --rounds 9     those whose names have the word

A second table sets each conditional beside the pipeline that does the same for all samples, or for
none: what half of the samples take is to cost half.
"""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Callable
from typing import Any

import cv2

from benchmarks.images import decoded
from benchmarks.support.apart import Apart
from benchmarks.support.harness import Peer, measure, print_table
from benchmarks.support.libraries import library

Graph = Callable[[Any], Any]
_BATCH = 32


@functools.cache
def _photographs(extent: int) -> Any:
    return decoded(_BATCH, extent)


def _images(lib: Any) -> Any:
    photographs = _photographs(224)
    return lib.fn.external_source(source=lambda: photographs, layout="HWC", no_copy=True)


def _suite(module: str, function: str, *args: Any, **kwargs: Any) -> Graph:
    def graph(lib: Any) -> Any:
        suite = importlib.import_module(f"{lib.__name__}.auto_aug.{module}")
        return getattr(suite, function)(_images(lib), *args, **kwargs)

    return graph


def _efficientnet(lib: Any) -> Any:
    auto_augment = importlib.import_module(f"{lib.__name__}.auto_aug.auto_augment")
    photos = [cv2.imencode(".jpg", image)[1] for image in _photographs(500)]
    encoded = lib.fn.external_source(source=lambda: photos)
    images = lib.fn.decoders.image_random_crop(encoded, random_area=[0.08, 1.0])
    images = lib.fn.resize(images, size=[224, 224], antialias=False)
    images = lib.fn.flip(images, horizontal=lib.fn.random.coin_flip())
    images = auto_augment.auto_augment_image_net(images, shape=[224, 224])
    return lib.fn.crop_mirror_normalize(
        images, dtype=lib.types.FLOAT, output_layout="CHW", mean=[124.0] * 3, std=[57.0] * 3
    )


def _blurred(probability: float | None) -> Graph:
    def graph(lib: Any) -> Any:
        images = _images(lib)
        if probability is None:
            return lib.fn.gaussian_blur(images, sigma=3.0)
        if lib.fn.random.coin_flip(probability=probability, dtype=lib.types.BOOL):
            images = lib.fn.gaussian_blur(images, sigma=3.0)
        return images

    return graph


SUITES: dict[str, Graph] = {
    "auto_augment, image_net": _suite("auto_augment", "auto_augment", "image_net"),
    "auto_augment, reduced_image_net": _suite("auto_augment", "auto_augment", "reduced_image_net"),
    "rand_augment, 2 of magnitude 9": _suite("rand_augment", "rand_augment", n=2, m=9),
    "trivial_augment_wide": _suite("trivial_augment", "trivial_augment_wide"),
    "EfficientNet: decode to normalise": _efficientnet,
}
CONDITIONALS: dict[str, Graph] = {
    "blur of all, without a condition": _blurred(None),
    "blur of all": _blurred(1.0),
    "blur of half": _blurred(0.5),
    "blur of none": _blurred(0.0),
}


def pipeline(name: str, case: str, threads: int, by_processor: bool = False) -> Peer:
    """A pipeline of one case."""
    lib = library(name)
    graph = (SUITES | CONDITIONALS)[case]
    pipe = lib.pipeline_def(
        graph,
        batch_size=_BATCH,
        num_threads=threads,
        device_id=None,
        enable_conditionals=True,
        seed=7,
    )(lib)
    pipe.build()

    def step() -> int:
        pipe.run()
        return _BATCH

    return Peer(name, step, ahead=2, by_processor=by_processor)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="a word of their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each peer in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="seconds are those of processors")
    options = parser.parse_args()
    for title, cases in (("automatic augmentation", SUITES), ("conditionals", CONDITIONALS)):
        rows = {}
        with Apart("DALI") as dali, Apart("Headrace") as headrace:
            for case in cases:
                if options.case and not any(word in case for word in options.case):
                    continue
                peers = [
                    home.peer(pipeline, home.name, case, options.threads, options.processor)
                    for home in (dali, headrace)
                ]
                measure(peers, rounds=options.rounds, seconds=options.seconds)
                rows[case] = peers
        if rows:
            print_table(f"{title}, {options.threads} threads", rows)


if __name__ == "__main__":
    main()

"""What one call of dynamic mode on a small tensor takes, in microseconds, beside DALI.

    hatch run bench:calls                          all cases
    hatch run bench:calls --case flip --library Headrace

Cases whose name ends in ``by tensors`` have arguments that are tensors, so that nothing that was
worked out for a call serves the next one. All is done in the calling thread (`EvalMode.sync_cpu`).
Cases take turns, and the quickest of many short rounds counts: what other programs on the
machine take is not of interest here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.support.audio_chain import dynamic_module
from benchmarks.support.harness import Peer, checked_cases

CALLS = 40
"""In one round of one case."""


def cases(ndd: Any) -> dict[str, Callable[[], Any]]:
    """The calls of a library, by name."""
    random = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return ndd.as_tensor(random.random(shape, dtype=np.float32))

    image = ndd.as_tensor(random.integers(0, 255, (32, 32, 3), dtype=np.uint8), layout="HWC")
    number, angle = ndd.as_tensor(np.float32(1.1)), ndd.as_tensor(np.float32(20))
    size = ndd.as_tensor(np.array([16, 16], np.float32))
    flag = ndd.as_tensor(np.int32(1))
    points, matrix, clip, few = numbers(5, 2), numbers(2, 2), numbers(400), numbers(64)
    half = ndd.as_tensor(np.float32(0.5))
    return {
        "x + 1": lambda: number + 1,
        "64 numbers + 1": lambda: few + 1,
        "flip": lambda: ndd.flip(image),
        "flip by tensors": lambda: ndd.flip(image, horizontal=flag),
        "crop": lambda: ndd.crop(image, crop=(16, 16)),
        "crop by tensors": lambda: ndd.crop(image, crop=(16, 16), crop_pos_x=half),
        "resize": lambda: ndd.resize(image, size=(16, 16)),
        "resize by tensors": lambda: ndd.resize(image, size=size),
        "rotate by tensors": lambda: ndd.rotate(image, angle=angle),
        "brightness_contrast": lambda: ndd.brightness_contrast(image, brightness=1.1),
        "brightness_contrast by tensors": lambda: ndd.brightness_contrast(
            image, brightness=number, contrast=number
        ),
        "hue by tensors": lambda: ndd.hue(image, hue=angle),
        "color_twist by tensors": lambda: ndd.color_twist(image, hue=angle, contrast=number),
        "coord_transform by tensors": lambda: ndd.coord_transform(points, M=matrix),
        "audio_resample by tensors": lambda: ndd.audio_resample(clip, scale=half),
        "pad": lambda: ndd.pad(image),
    }


def make_peer() -> Peer:
    """All cases of Headrace one after the other, as one step."""
    ndd = dynamic_module("Headrace")
    calls = list(cases(ndd).values())

    def step() -> int:
        with ndd.EvalMode.sync_cpu:
            for call in calls:
                call()
        return len(calls)

    return Peer("Headrace", step)


def measured(ndd: Any, chosen: list[str] | None, rounds: int) -> dict[str, float]:
    """Microseconds of a call, by case."""
    calls = cases(ndd)
    found = dict.fromkeys(checked_cases(chosen, tuple(calls)), float("inf"))
    with ndd.EvalMode.sync_cpu:
        for _ in range(rounds):
            for name in found:
                call = calls[name]
                start = time.perf_counter()
                for _ in range(CALLS):
                    call()
                found[name] = min(found[name], (time.perf_counter() - start) / CALLS * 1e6)
    return found


def main() -> None:
    """Measure the cases that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="may be repeated; default: all")
    parser.add_argument("--library", action="append", help="only these; default: both")
    parser.add_argument("--rounds", type=int, default=150)
    args = parser.parse_args()
    libraries = args.library or ["DALI", "Headrace"]
    found = {name: measured(dynamic_module(name), args.case, args.rounds) for name in libraries}
    table = Table(title=f"one call on a small tensor, us, least of {args.rounds} rounds")
    table.add_column("call")
    for name in libraries:
        table.add_column(name, justify="right")
    for case in found[libraries[0]]:
        table.add_row(case, *(f"{found[name][case]:.1f}" for name in libraries))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

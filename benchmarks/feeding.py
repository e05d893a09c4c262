"""Batches of a CPU pipeline on their way to a GPU that computes: how much the copies hold it up.

    hatch run bench:feeding                       or: python -m benchmarks.feeding
    hatch run bench:feeding --case device DALI --workers processes --seconds 10

Each step takes a float32 batch of 256x3x224x224 (154 MB) to the GPU, reads it there, and then
multiplies matrices for about `--load-ms`, as a network would compute. The host runs two steps ahead
of the GPU at most. Cases, each in a process of its own, in turn:

    nothing    one batch that is on the GPU already: what the load alone takes
    DALI       its CPU pipeline, tensors taken by .to(device, non_blocking=True)
    plain      the same here
    pinned     the same with pin_memory=True
    device     device="cuda" of the iterator
    fed        float32 arrays of a source with no_copy=True, in ordinary memory, to device="cuda"
    fed_pinned the same in arrays of headrace.empty_pinned

Printed are medians of rounds: steps a second, GB/s of batches, and how long the program's thread
was in the copy and in the iterator. Each batch holds one number, and the mean that the GPU finds
tells that it came whole.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CASES = ("nothing", "DALI", "plain", "pinned", "device", "fed", "fed_pinned")
_SIZE = 224
_MEAN, _STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
_DIFFERENT = 8
"""Batches that a source gives in turn."""
_AHEAD = 2
_WARM_UP_STEPS = 12
_MATRIX = 8192


def _number(k: int) -> int:
    return k % _DIFFERENT * 29 + 3


def _normalised(k: int) -> float:
    """The mean of all elements of batch `k`."""
    return float(np.mean([(_number(k) - m) / s for m, s in zip(_MEAN, _STD, strict=True)]))


def _images(size: int) -> Callable[[int], Any]:
    """A source of uint8 images HWC."""
    batches = [np.full((size, _SIZE, _SIZE, 3), _number(k), np.uint8) for k in range(_DIFFERENT)]
    return lambda k: batches[k % _DIFFERENT]


def _floats(size: int, make: Callable[..., np.ndarray]) -> Callable[[int], Any]:
    """A source of float32 batches CHW, which are never written to again."""
    batches = []
    for k in range(_DIFFERENT):
        batch = make((size, 3, _SIZE, _SIZE), np.float32)
        batch[...] = _normalised(k)
        batches.append(batch)
    return lambda k: batches[k % _DIFFERENT]


def _loader(case: str, args: argparse.Namespace) -> Iterator[Any]:
    """Tensors, on whatever device the case has them."""
    from benchmarks.support.libraries import library, pytorch_plugin

    name = "DALI" if case == "DALI" else "Headrace"
    lib, plugin = library(name), pytorch_plugin(name)
    own: dict[str, Any] = {} if name == "DALI" else {"workers": args.workers}
    pipe = lib.Pipeline(
        args.batch_size, args.threads, None, seed=1, prefetch_queue_depth=args.depth, **own
    )
    with pipe:
        if case.startswith("fed"):
            make = lib.empty_pinned if case == "fed_pinned" else np.empty
            source = _floats(args.batch_size, make)
            pipe.set_outputs(lib.fn.external_source(source, no_copy=True))
        else:
            images = lib.fn.external_source(_images(args.batch_size), layout="HWC", no_copy=True)
            pipe.set_outputs(
                lib.fn.crop_mirror_normalize(
                    images,
                    dtype=lib.types.FLOAT,
                    output_layout="CHW",
                    mean=_MEAN,
                    std=_STD,
                    mirror=lib.fn.random.coin_flip(),
                )
            )
    placed: dict[str, Any] = {}
    if case == "pinned":
        placed["pin_memory"] = True
    elif case not in ("DALI", "plain"):
        placed["device"] = "cuda"
    for (batch,) in plugin.DALIGenericIterator(pipe, ["images"], **placed):
        yield batch["images"]


def _load(milliseconds: float) -> Callable[[], None]:
    """Work for the GPU that takes about so long."""
    import torch

    a = torch.randn(_MATRIX, _MATRIX, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(_MATRIX, _MATRIX, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        torch.mm(a, b, out=out)
    begin.record()
    for _ in range(10):
        torch.mm(a, b, out=out)
    end.record()
    torch.cuda.synchronize()
    count = max(1, round(milliseconds / (begin.elapsed_time(end) / 10)))

    def work() -> None:
        for _ in range(count):
            torch.mm(a, b, out=out)

    return work


def _measured(case: str, args: argparse.Namespace) -> dict[str, float]:
    """One round of a case, in this process."""
    import torch

    work = _load(args.load_ms)
    shape = args.batch_size, 3, _SIZE, _SIZE
    if case == "nothing":
        here = torch.full(shape, _normalised(0), device="cuda")
        batches: Iterator[Any] = iter(lambda: here, None)
    else:
        batches = _loader(case, args)
    means: list[Any] = []
    queued: deque[Any] = deque()
    copying = taking = 0.0

    def step() -> None:
        nonlocal copying, taking
        begin = time.perf_counter()
        batch = next(batches)
        taken = time.perf_counter()
        batch = batch.to("cuda", non_blocking=True)
        copying += time.perf_counter() - taken
        taking += taken - begin
        means.append(batch.mean())
        del batch
        work()
        event = torch.cuda.Event()
        event.record()
        queued.append(event)
        if len(queued) > _AHEAD:
            queued.popleft().synchronize()

    for _ in range(_WARM_UP_STEPS):
        step()
    torch.cuda.synchronize()
    copying = taking = 0.0
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < args.seconds:
        step()
        steps += 1
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    for k, mean in enumerate(torch.stack(means).tolist()):
        expected = _normalised(0 if case == "nothing" else k)
        if abs(mean - expected) > 1e-2:
            raise SystemExit(
                f"{case}: batch {k} has the mean {mean:.4f} in place of {expected:.4f}"
            )
    return {
        "rate": steps / seconds,
        "copying_ms": 1e3 * copying / steps,
        "taking_ms": 1e3 * taking / steps,
    }


def _apart(case: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.feeding", *sys.argv[1:], "--here", case]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case} ended with status {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--workers", choices=("threads", "processes"), default="threads")
    parser.add_argument("--depth", type=int, default=2, help="prefetch_queue_depth")
    parser.add_argument("--load-ms", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no GPU, which this needs: install its build with CUDA.")
    if args.here:
        print(json.dumps(_measured(args.here, args)))
        return
    has_dali = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.dali")
    cases = [case for case in args.case if case != "DALI" or has_dali]
    if len(cases) < len(args.case):
        print("DALI is not installed: its case is left out.")
    rounds = [{case: _apart(case) for case in cases} for _ in range(args.rounds)]
    size = args.batch_size * 3 * _SIZE * _SIZE * 4 / 1e9
    print(
        f"float32 {args.batch_size}x3x{_SIZE}x{_SIZE}, {args.threads} {args.workers}, "
        f"depth {args.depth}, load of about {args.load_ms:g} ms"
    )
    print(f"{'case':<12}{'steps/s':>9}{'GB/s':>8}{'ms in .to':>11}{'ms in next':>12}")
    for case in cases:
        rate, copying, taking = (
            statistics.median(each[case][key] for each in rounds)
            for key in ("rate", "copying_ms", "taking_ms")
        )
        print(f"{case:<12}{rate:>9.2f}{rate * size:>8.2f}{copying:>11.2f}{taking:>12.2f}")


if __name__ == "__main__":
    main()

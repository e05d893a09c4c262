"""Kernels of the GPU by themselves: how near they come to the speed of its memory.

    hatch run bench:gpu-kernels
    hatch run bench:gpu-kernels --only resize rotate --batch-size 64 --markdown
    hatch run bench:gpu-kernels --only crop flip --batch-size 256 1024

Each operator works on batches of images of one size and of many sizes, in turn on several that
together are larger than the caches. *GB/s* are the bytes that have to be read and written, at
least, over the time between two CUDA events; *of copy* is their ratio to the faster of the driver's
copy and a copy kernel, measured in the same run, of a gigabyte. *of equal* is the ratio of the time
that the driver takes to copy as many bytes, measured in the same way, to that of the operator:
whatever is queued takes some microseconds to begin and to end, which counts where little is moved;
of larger batches, it counts less.
*host* is what the interpreter takes to queue the work. The time of an operator includes the upload
of its table of samples.
"""

from __future__ import annotations

import argparse
import contextlib
import traceback
from collections import deque
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import headrace.fn
import headrace.kernels.gpu.strided_copy  # noqa: F401 - tells queues how to copy through strides
from benchmarks.support.device_clock import DeviceClock, HostClock
from benchmarks.support.kernel_cases import Case, cases
from benchmarks.support.operator_chain import OperatorChain
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.device import GpuDevice, get_device

EXTENT = (375, 500)
_SETS = 3
"""Batches in turn."""
_REPETITIONS = 20
_COPY = """
extern "C" __global__ void copy16(const uint4* source, uint4* target, unsigned int count) {
  unsigned int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  uint4 values[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (first + k * blockDim.x < count) values[k] = source[first + k * blockDim.x];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (first + k * blockDim.x < count) target[first + k * blockDim.x] = values[k];
}
"""


class Bench:
    """One stream of the GPU, to measure on.

    `device`: the GPU. `count`: samples in a batch. `extent`: height and width of the images of one
    size; others are smaller. `smoke`: the GPU is emulated: only show that the cases run.
    """

    def __init__(
        self, device: GpuDevice, count: int, extent: tuple[int, int], *, smoke: bool
    ) -> None:
        self.device = device
        self.count = count
        self.extent = extent
        self.stream = device.runtime.acquire_stream()
        self.clock = (HostClock if smoke else DeviceClock)(device.runtime, self.stream)
        self.repetitions = 1 if smoke else _REPETITIONS
        self._queue = device.queue(self.stream)
        self._copies: dict[int, float] = {}

    def shapes(self, *, ragged: bool) -> np.ndarray:
        """Shapes of a batch, int64 ``(count, 3)``."""
        shapes = np.tile(np.array([*self.extent, 3], np.int64), (self.count, 1))
        if ragged:
            rng = np.random.default_rng(0)
            shapes[:, :2] = shapes[:, :2] * rng.uniform(0.6, 1.0, (self.count, 2))
        return shapes

    def batch(self, shapes: np.ndarray, dtype: np.dtype) -> DeviceBatch:
        """A batch of noise."""
        runtime = self.device.runtime
        batch = self._queue.empty(shapes, dtype)
        begin, last = int(batch.pointers[0]), int(batch.pointers[-1])
        length = last - begin + int(batch.sizes()[-1]) * dtype.itemsize
        rng = np.random.default_rng(1)
        block = self.device.pinned.empty((1 << 20,), dtype)
        block[:] = rng.integers(0, 256, block.shape)
        for start in range(0, length, block.nbytes):
            part = min(block.nbytes, length - start)
            runtime.copy(begin + start, block.ctypes.data, part, self.stream)
        runtime.synchronize(self.stream)
        return batch

    def measure(self, case: Case, *, ragged: bool) -> tuple[float, float, int]:
        """Microseconds of the device and of the host, and bytes that have to be moved."""
        shapes = self.shapes(ragged=ragged)
        chain = OperatorChain(
            self.device, self.stream, case.calls, case.dtype, shapes.shape[1], "HWC", self.count
        )
        batches: list[DeviceBatch | None] = [None]
        if case.dtype is not None:
            batches = [self.batch(shapes, case.dtype) for _ in range(_SETS)]
        outputs: deque[DeviceBatch] = deque(maxlen=_SETS)  # so that these are in turn, too
        kept: list[Any] = []

        def work(k: int) -> None:
            outputs.append(chain(batches[k % len(batches)], seed=k))
            kept.extend(chain.queue.finish())

        for k in range(_SETS):
            work(k)
        device, host = self.clock.microseconds(work, self.repetitions)
        kept.clear()
        return device, host, case.bytes_moved(shapes, outputs[-1])

    def copy_rates(self) -> dict[str, float]:
        """GB/s, read and written, of the driver's copy and of a copy kernel."""
        runtime, size = self.device.runtime, min(self.count, 256) << 22
        batches = [self._queue.empty((size,), np.uint8, 1) for _ in "ab"]
        source, target = (int(batch.pointers[0]) for batch in batches)
        kernel = runtime.function(_COPY, "copy16")

        def by_kernel(_: int) -> None:
            arguments = (np.uint64(source), np.uint64(target), np.uint32(size // 16))
            kernel((-(-size // 16 // 1024), 1, 1), (256, 1, 1), arguments, 0, self.stream)

        by_kernel(0)
        device, _ = self.clock.microseconds(by_kernel, self.repetitions)
        return {
            "driver": 2e-3 * size / self.copy_microseconds(2 * size),
            "kernel": 2e-3 * size / device,
        }

    def copy_microseconds(self, moved: int) -> float:
        """Microseconds of a copy by the driver that reads and writes `moved` bytes in all.

        As in `measure`, between memory in turn.
        """
        if moved not in self._copies:
            runtime, size = self.device.runtime, max(moved // 2, 1)
            batches = [self._queue.empty((size,), np.uint8, 1) for _ in range(2 * _SETS)]
            addresses = [int(batch.pointers[0]) for batch in batches]

            def work(k: int) -> None:
                at = 2 * (k % _SETS)
                runtime.copy(addresses[at], addresses[at + 1], size, self.stream)

            for k in range(_SETS):
                work(k)
            self._copies[moved], _ = self.clock.microseconds(work, self.repetitions)
        return self._copies[moved]


def _row(bench: Bench, case: Case, copy: float) -> list[str]:
    row = [case.name]
    for ragged in (False, True):
        if case.dtype is None and ragged:
            row += ["-"] * 4
            continue
        device, host, moved = bench.measure(case, ragged=ragged)
        rate = 1e-3 * moved / device
        if not ragged:
            row += [f"{moved / 1e6:,.0f}", f"{host:,.0f}"]
        row += [f"{device:,.1f}", f"{rate:,.0f}", f"{rate / copy:.0%}"]
        row += [f"{bench.copy_microseconds(moved) / device:.0%}"]
    return row


def _markdown(bench: Bench, wanted: list[Case], copy: float) -> None:
    """The same table as in ``RESULTS.md``."""
    print("| operator | MB | host us | device us | of copy | of equal | ragged: device us ", end="")
    print("| of copy | of equal |\n|" + "---|" * 9)
    for case in wanted:
        name, size, host, *whole = _row(bench, case, copy)
        ragged = whole[4:]
        print(
            "| "
            + " | ".join([name, size, host, whole[0], *whole[2:4], ragged[0], *ragged[2:]])
            + " |"
        )


def _table(bench: Bench, wanted: list[Case], copy: float) -> None:
    table = Table(title=f"{bench.count} images of {bench.extent} and of 60-100 % of that (ragged)")
    for name in ("operator", "MB", "host\nus", "device\nus", "GB/s", "of copy", "of equal"):
        table.add_column(name, justify="left" if name == "operator" else "right")
    for name in ("ragged\ndevice us", "GB/s", "of copy", "of equal"):
        table.add_column(name, justify="right")
    failed = []
    for case in wanted:
        try:
            table.add_row(*_row(bench, case, copy))
        except Exception:
            failed.append(f"{case.name}: {traceback.format_exc(limit=-2)}")
    Console(width=130).print(table)
    for text in failed:
        print(text)


def emulated() -> contextlib.AbstractContextManager[Any]:
    """Have GPU 0 emulated for the length of a ``with``."""
    from headrace.tensors.gpu.runtime import install_runtime
    from tests.support.gpu.runtime import EmulatedRuntime

    stack = contextlib.ExitStack()
    runtime = EmulatedRuntime(0)
    install_runtime(lambda _: runtime)
    stack.callback(install_runtime, None)
    return stack


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", help="operators whose names contain one of these")
    parser.add_argument(
        "--batch-size", type=int, nargs="+", default=[256], help="one or more, a table of each"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="tiny, on the emulated GPU: only shows that it runs"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    args = parser.parse_args()
    counts, extent = ([4], (37, 50)) if args.smoke else (args.batch_size, EXTENT)
    rates: dict[str, float] = {}
    with emulated() if args.smoke else contextlib.nullcontext():
        device = get_device(0)
        device.runtime.activate()
        for count in counts:
            bench = Bench(device, count, extent, smoke=args.smoke)
            if not args.smoke and not rates:
                rates = bench.copy_rates()
                for name, rate in rates.items():
                    print(f"copy by the {name}: {rate:,.0f} GB/s, read and written")
            least = (int(extent[0] * 0.6), int(extent[1] * 0.6))
            wanted = [
                c
                for c in cases(count, least)
                if not args.only or any(o in c.name for o in args.only)
            ]
            if args.markdown and len(counts) > 1:
                print(f"\n{count} images\n")
            show = _markdown if args.markdown else _table
            show(bench, wanted, max(rates.values(), default=1.0))


if __name__ == "__main__":
    main()

"""JPEGs into the memory of a GPU: what its decoders can do, and what the engine makes of them.

    python -m benchmarks.gpu_decode --files FOLDER
    python -m benchmarks.gpu_decode                  (photographs, or noise where there are none)

Needs CuPy, nvImageCodec and the library, no pipeline. Prints which kinds of decoders there are, how
far their pixels are from those of the CPU and from each other, and images per second:

* of single kinds of decoders, and
* of the engine's way (headers, memory, decoders of several kinds, conversions), for several shares
  of the JPEG engines, with the time that the interpreter's thread spends on each image.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.jpeg_scan import scan_jpegs
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode
from headrace.kernels.cpu.philox_state import EXAMPLE_SEED
from headrace.kernels.gpu.decode import nvimagecodec_module
from headrace.kernels.gpu.decode.batch import begin_decoding
from headrace.kernels.gpu.decode.engines import JpegEngines
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.job import Job
from headrace.kernels.gpu.decode.nvimagecodec import DeviceDecoder
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.kernels.gpu.decode.plain import PlainJob, PlainJpegs, plain_jpegs
from headrace.kernels.plan.random_crop import random_windows
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.queue import Queue

RGB = PixelFormat("RGB", np.dtype(np.uint8))
ENGINES = "JPEG engines"
KINDS = {
    ENGINES: (),
    "nvImageCodec's": ("HW_GPU_ONLY",),
    "hybrid CUDA": ("HYBRID_CPU_GPU",),
    "CPU and copy": ("CPU_ONLY",),
}
"""What nvImageCodec calls the kinds; it, too, can drive JPEG engines."""
LOADS = (None, 0.9, 0.65, 0.0)
IN_FLIGHT = 3

Decoder = JpegEngines | DeviceDecoder


def jpegs(folder: Path | None, most: int = 2048) -> list[np.ndarray]:
    """The encoded images."""
    if folder is not None:
        paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        if not paths:
            raise SystemExit(f"There are no JPEGs below {folder}.")
        return [np.fromfile(path, np.uint8) for path in paths[:most]]
    try:
        from examples.demo.photographs import write_dataset

        with tempfile.TemporaryDirectory() as scratch:
            return jpegs(write_dataset(Path(scratch) / "photographs", 256), most)
    except ImportError:
        return list(noise(256))


def noise(count: int) -> Iterator[np.ndarray]:
    """Smooth noise of about 400 x 550 pixels, 4:2:0, some 50 kB each."""
    nv = nvimagecodec_module.module()
    encoder = nv.Encoder(
        device_id=nv.NVIMGCODEC_DEVICE_CPU_ONLY, backends=[nv.Backend(nv.BackendKind.CPU_ONLY)]
    )
    params = nv.EncodeParams(
        quality_type=nv.QualityType.QUALITY,
        quality_value=90,
        chroma_subsampling=nv.ChromaSubsampling.CSS_420,
    )
    rng = np.random.default_rng(0)
    for _ in range(count):
        height, width = rng.integers(340, 460), rng.integers(480, 620)
        coarse = rng.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3)).astype(np.float32)
        smooth: np.ndarray = coarse.repeat(8, 0).repeat(8, 1)
        for axis in (0, 1):
            total = np.cumsum(smooth, axis)
            ahead = np.take(total, range(8, total.shape[axis]), axis)
            smooth = (ahead - np.take(total, range(total.shape[axis] - 8), axis)) / 8
        image = smooth[:height, :width] + rng.normal(0, 6, (height, width, 1))
        pixels = np.ascontiguousarray(np.clip(image, 0, 255).astype(np.uint8))
        yield np.frombuffer(encoder.encode(nv.as_image(pixels), "jpeg", params=params), np.uint8)


def samples_of(encoded: list[np.ndarray], cropped: bool = False) -> list[Sample]:
    """Images as the operators hand them to the decoders, maybe with random windows."""
    headers = scan_jpegs(encoded).headers()
    found = []
    for position, (data, known) in enumerate(zip(encoded, headers, strict=True)):
        header = known or read_header(data.data)
        height, width, channels = RGB.shape(header)
        region = None
        if cropped:
            extents, ranges = np.array([[height, width]]), ((0.08, 1.0), (3 / 4, 4 / 3))
            windows = random_windows(extents, *ranges, 10, EXAMPLE_SEED, 0, [position])
            y, x, h, w = windows[0].tolist()
            region, height, width = (y, x, y + h, x + w), h, w
        found.append(Sample(position, data, header, region, (height, width, channels)))
    return found


def split(encoded: list[np.ndarray]) -> tuple[list[Sample], PlainJpegs | None]:
    """Whole images as the operators hand them to the decoders: one by one, and all at once."""
    rows = SimpleNamespace(rows=encoded)
    plain = plain_jpegs(rows, scan_jpegs(encoded), RGB)
    if plain is None or len(plain.positions) == len(encoded):
        return [], plain
    positions = set(plain.positions.tolist())
    return [s for s in samples_of(encoded) if s.position not in positions], plain


class Bench:
    """A stream, and batches on their way through it."""

    def __init__(self, encoded: list[np.ndarray], threads: int, seconds: float) -> None:
        gpu = get_device(0)
        gpu.runtime.activate()
        self.runtime = gpu.runtime
        self.queue: Queue = gpu.queue(gpu.runtime.acquire_stream())
        self.encoded = [self._pinned(data) for data in encoded]
        self.threads = threads
        self.seconds = seconds
        self._flying: deque[tuple[Any, Any]] = deque()

    def _pinned(self, data: np.ndarray) -> np.ndarray:
        """The same in page-locked memory, as readers read it."""
        found = self.queue.pinned.empty(data.shape, data.dtype)
        found[:] = data
        return found

    def batches(self, size: int) -> Iterator[list[np.ndarray]]:
        """Batches of the data set, over and over."""
        endless = itertools.cycle(self.encoded)
        while True:
            yield list(itertools.islice(endless, size))

    def finish(self, result: Any) -> None:
        """End a batch as a stream executor does: keep what is used, wait where too much is."""
        event = self.runtime.record(self.queue.stream)
        self._flying.append((event, (result, self.queue.finish())))
        while len(self._flying) > IN_FLIGHT:
            self._flying.popleft()[0].synchronize()

    def drain(self) -> None:
        """Wait for everything."""
        self.runtime.synchronize(self.queue.stream)
        self._flying.clear()

    def rate(self, step: Callable[[], int]) -> tuple[float, float]:
        """Images per second, and microseconds of this thread's own time for each."""
        for _ in range(4):
            step()
        self.drain()
        images = 0
        begin, own = time.perf_counter(), time.thread_time()
        while time.perf_counter() - begin < self.seconds:
            images += step()
        own = time.thread_time() - own
        self.drain()
        return images / (time.perf_counter() - begin), own / images * 1e6

    def raw_step(self, decoder: Decoder, size: int) -> tuple[Callable[[], int], list[int]]:
        """Batches through nvImageCodec alone; how many images it did not decode."""
        batches = self.batches(size)
        failed = [0]

        def step() -> int:
            encoded = next(batches)
            batch, good = self._decoded(decoder, encoded)
            failed[0] += good.count(False)
            self.finish(batch)
            return len(encoded)

        return step, failed

    def _decoded(
        self, decoder: Decoder, encoded: list[np.ndarray]
    ) -> tuple[DeviceBatch, list[bool]]:
        queue = self.queue
        alone, plain = split(encoded)
        if isinstance(decoder, DeviceDecoder) or plain is None:
            alone, plain = samples_of(encoded), None
        shapes = np.zeros((len(encoded), 3), np.int64)
        for sample in alone:
            shapes[sample.position] = sample.shape
        if plain is not None:
            shapes[plain.positions] = plain.shapes
        batch = queue.empty(shapes, np.uint8, quiesced=True)
        job = Job.of(queue, alone, "RGB", RGB, batch.pointers.tolist(), cuts=True)
        if isinstance(decoder, DeviceDecoder):
            return batch, decoder.decode(queue, job)
        good = np.zeros(len(encoded), bool)
        jobs: list[Job | PlainJob] = []
        positions = []
        if alone:
            jobs.append(job)
            positions.append(np.array([sample.position for sample in alone]))
        if plain is not None:
            jobs.append(PlainJob(plain, batch.pointers[plain.positions], "RGB"))
            positions.append(plain.positions)
        queue.keep(jobs)
        for some, each in zip(positions, decoder.decode(jobs, queue.stream), strict=True):
            good[some] = each
        return batch, good.tolist()

    def pixels(self, decoder: Decoder, encoded: list[np.ndarray]) -> list[Any]:
        """What a decoder makes of images; None where it fails."""
        batch, good = self._decoded(decoder, encoded)
        self.runtime.synchronize(self.queue.stream)
        return [
            self.runtime.xp.asnumpy(batch.array(i)) if well else None for i, well in enumerate(good)
        ]

    def engine_step(
        self, size: int, options: DecoderOptions, *, cropped: bool = False
    ) -> Callable[[], int]:
        """Batches through the engine's way."""
        batches = self.batches(size)
        begun: deque[tuple[Any, Any]] = deque()

        def step() -> int:
            encoded = next(batches)
            samples, plain = (
                (samples_of(encoded, cropped=True), None) if cropped else split(encoded)
            )
            # As in a pipeline, the next batch is made ready while one is decoded.
            begun.append(
                begin_decoding(self.queue, samples, size, RGB, options, self.threads, plain=plain)
            )
            if len(begun) > 1:
                batch, finish = begun.popleft()
                failures = finish(self.queue)
                if failures:
                    raise SystemExit(f"The engine fails: {failures}")
                self.finish(batch)
            return size

        return step


def made(bench: Bench, kind: str, *, fancy: bool = False) -> Decoder | None:
    """A decoder of one kind; None, with a line printed, if there is none."""
    options = DecoderOptions(fancy_upsampling=fancy)
    try:
        if kind == ENGINES:
            return JpegEngines(bench.runtime, options, 256)
        return DeviceDecoder(bench.runtime, options, bench.threads, KINDS[kind])
    except (RuntimeError, OSError) as error:
        print(f"    no decoder: {kind}: {error}")
        return None


def compare(bench: Bench) -> None:
    """Print how far pixels of the kinds are from the CPU's and from each other."""
    encoded = bench.encoded[:64]
    reference = [
        decode(s.data, s.header, RGB, None, np.empty, np.empty) for s in samples_of(encoded)
    ]
    print("Pixels, chroma interpolated, in levels of 255 (64 images):")
    before: tuple[str, list[Any]] | None = None
    for name in KINDS:
        decoder = made(bench, name, fancy=True)
        if decoder is None:
            continue
        images = bench.pixels(decoder, encoded)
        print(f"    {name:14} from the CPU operator's: {difference(images, reference)}")
        if before is not None:
            print(f"    {'':14} from those of {before[0]}: {difference(images, before[1])}")
        before = name, images


def difference(images: list[Any], others: list[Any]) -> str:
    """Largest and mean difference of the images that both have."""
    both = [(a, b) for a, b in zip(images, others, strict=True) if a is not None and b is not None]
    if not both:
        return "nothing decoded"
    steps = [np.abs(a.astype(np.int16) - b) for a, b in both]
    most, mean = max(int(s.max()) for s in steps), float(np.mean([s.mean() for s in steps]))
    missing = f", {len(images) - len(both)} not decoded" if len(both) < len(images) else ""
    return f"at most {most}, mean {mean:.4f}{missing}"


def run(bench: Bench, sizes: list[int]) -> None:
    """Measure everything and print it."""
    for size in sizes:
        print(f"Single kinds, batches of {size}, {bench.threads} threads:")
        for name in KINDS:
            decoder = made(bench, name)
            if decoder is None:
                continue
            step, failed = bench.raw_step(decoder, size)
            rate, own = bench.rate(step)
            wrong = f", {failed[0]} NOT DECODED" if failed[0] else ""
            print(f"    {name:14} {rate:9,.0f} images/s, {own:5.1f} us of this thread{wrong}")
        print(f"The engine's way, batches of {size}, {bench.threads} threads:")
        for load in LOADS:
            rate, own = bench.rate(bench.engine_step(size, DecoderOptions(hardware_load=load)))
            share = "by itself" if load is None else f"share {load:.2f}"
            print(f"    {share:14} {rate:9,.0f} images/s, {own:5.1f} us of this thread")
        for what, options, cropped in (
            ("interpolated", DecoderOptions(fancy_upsampling=True), False),
            ("random crops", DecoderOptions(), True),
            ("no padding", DecoderOptions(device_padding_bytes=0, host_padding_bytes=0), False),
        ):
            rate, own = bench.rate(bench.engine_step(size, options, cropped=cropped))
            print(f"    {what:14} {rate:9,.0f} images/s, {own:5.1f} us of this thread")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, help="a folder with JPEGs")
    parser.add_argument("--threads", type=int, default=min(os.cpu_count() or 1, 16))
    parser.add_argument("--seconds", type=float, default=0.7, help="for each figure")
    parser.add_argument("--batch", type=int, action="append", help="default: 64 and 256")
    args = parser.parse_args()
    encoded = jpegs(args.files)
    bench = Bench(encoded, args.threads, args.seconds)
    shapes = np.array([RGB.shape(read_header(data.data)) for data in encoded])
    print(
        f"{bench.runtime.name}, {os.cpu_count()} processors, nvImageCodec "
        f"{nvimagecodec_module.module().__version__}; {len(encoded)} JPEGs, on average "
        f"{shapes[:, 0].mean():.0f} x {shapes[:, 1].mean():.0f} pixels, "
        f"{np.mean([data.size for data in encoded]) / 1000:.0f} kB"
    )
    print("Kinds of decoders:")
    for name in KINDS:
        if made(bench, name) is not None:
            print(f"    {name}: yes")
    compare(bench)
    run(bench, args.batch or [64, 256])


if __name__ == "__main__":
    main()

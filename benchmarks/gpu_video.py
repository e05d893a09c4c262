"""Videos decoded by the hardware of a GPU: pixels beside the CPU's, and frames per second.

    python -m benchmarks.gpu_video --threads 1 2 4 8 16

Needs CuPy, PyAV, PyNvVideoCodec and, for tensors, PyTorch. Clips are generated. It prints

* for each codec how far the frames of hardware are from those of the CPU, and what the CPU decoded;
* frames per second of a single decoder without a pipeline, and the shares of its time;
* frames per second of one pipeline that reads 1080p, resizes to 224 and hands over tensors of
  PyTorch, by the number of threads; the same decoded by the CPU.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from headrace import fn, pipeline_def
from headrace.kernels.cpu.video.colors import Colors
from headrace.kernels.cpu.video.pool import POOL
from headrace.kernels.gpu.nvdec.decoding import HardwareDecoders
from headrace.kernels.gpu.video_colors import write_colors
from headrace.operators.support.video.on_gpu import VideosToDevice
from headrace.tensors.gpu.runtime import get_runtime

CODECS: dict[str, dict[str, Any]] = {
    "h264.mp4": {},
    "open.mp4": {"options": {"x264-params": "open-gop=1:bframes=3:keyint=12:min-keyint=12"}},
    "full.mp4": {"pix_fmt": "yuvj420p"},
    "h264.ts": {"container": "mpegts"},
    "h264.mkv": {"container": "matroska"},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "deep.mp4": {
        "codec": "libx265",
        "options": {"x265-params": "log-level=none"},
        "pix_fmt": "yuv420p10le",
    },
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm", "options": {"cpu-used": "8"}},
    "odd.webm": {"codec": "libvpx-vp9", "container": "webm", "size": (181, 319)},
    "vp8.webm": {"codec": "libvpx", "container": "webm"},
    "av1.mp4": {"codec": "libsvtav1", "options": {"svtav1-params": "lp=1", "preset": "10"}},
    "mpeg4.mp4": {"codec": "mpeg4"},
}


_COUNTED: list[int] = []
"""An entry for each sequence that the CPU decoded."""
_by_cpu = VideosToDevice._by_cpu


def _counting(self: Any, *args: Any) -> None:
    _COUNTED.append(1)
    _by_cpu(self, *args)


VideosToDevice._by_cpu = _counting  # type: ignore[method-assign,assignment]


def write(
    path: Path,
    *,
    frames: int = 40,
    size: tuple[int, int] = (240, 320),
    codec: str = "libx264",
    container: str = "mp4",
    pix_fmt: str = "yuv420p",
    options: dict[str, str] | None = None,
    gop: int = 12,
    seed: int = 0,
) -> str:
    """Write a clip of moving patterns with noise; return its path."""
    import av

    height, width = size
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 24, (height, width, 3), np.uint8)
    y, x = np.mgrid[:height, :width]
    with av.open(str(path), "w", format=container) as output:
        stream: Any = output.add_stream(codec, rate=Fraction(30), options=dict(options or {}))
        stream.height, stream.width, stream.pix_fmt, stream.gop_size = height, width, pix_fmt, gop
        for number in range(frames):
            wave = 128 + 100 * np.sin((x + 3 * y + 9 * number + 50 * seed) / 37)
            picture = np.stack([wave, np.roll(wave, 30, 0), 255 - wave], -1).astype(np.uint8)
            picture = np.minimum(picture, 230) + np.roll(noise, number, 1)
            frame = av.VideoFrame.from_ndarray(picture, "rgb24").reformat(format=pix_fmt)
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
    return str(path)


def frames_of(path: str, device: str) -> np.ndarray:
    """The frames that a pipeline reads, on the host."""

    @pipeline_def(batch_size=10, num_threads=2, device_id=0)
    def p() -> Any:
        return fn.readers.video(device=device, filenames=[path], sequence_length=4)

    return np.concatenate([np.array(s.as_cpu() if device == "gpu" else s) for s in p().run()[0]])


def compare(folder: Path) -> None:
    """Print how far hardware's frames are from the CPU's."""
    for name, options in CODECS.items():
        path = write(folder / name, **options)
        _COUNTED.clear()
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                got, want = frames_of(path, "gpu"), frames_of(path, "cpu")
            far = np.abs(got.astype(int) - want)
            bad = [n for n, f in enumerate(far) if f.max() > 1]
            where = f", frames {bad[:8]} differ" if bad else ""
            told = "; ".join(str(w.message) for w in said)[:150]
            print(
                f"{name:10} max {far.max():3d}, mean {far.mean():.4f}; "
                f"by the CPU {len(_COUNTED)}{where}  {told}",
                flush=True,
            )
        except Exception as error:
            print(f"{name:10} {type(error).__name__}: {str(error)[:300]}", flush=True)


def single(path: str) -> None:
    """Print what one decoder does, and where its time goes."""
    runtime = get_runtime(0)
    runtime.activate()
    decoders = HardwareDecoders(1)
    index = POOL.index(path)
    colors = Colors("RGB")
    spent = {"decode": 0.0, "colours": 0.0, "wait": 0.0}
    count = len(index)
    for timed in (False, True):
        begin = time.perf_counter()
        with decoders.video(runtime, path, object(), index, 0) as video:
            out = runtime.allocate(video.height * video.width * 3)
            stream = video.session.stream
            last = time.perf_counter()
            for frame, _ in video.frames(range(count)):
                first = time.perf_counter()
                write_colors(
                    *(runtime, stream, frame.planes, colors, out, np.dtype(np.uint8)),
                    full=False,
                    colorspace=2,
                )
                second = time.perf_counter()
                runtime.synchronize(stream)
                third = time.perf_counter()
                spent["decode"] += first - last
                spent["colours"] += second - first
                spent["wait"] += third - second
                last = third
            runtime.free(out)
        if timed:
            seconds = time.perf_counter() - begin
            print(f"one decoder, no pipeline: {count / seconds:.0f} frames/s")
        else:
            spent = dict.fromkeys(spent, 0.0)
    print("  microseconds a frame:", {k: round(1e6 * v / count) for k, v in spent.items()})


def batches(paths: list[str], threads: int, resize: bool) -> Iterator[Any]:
    """Batches of one pipeline, as tensors of PyTorch."""
    from headrace.plugin.pytorch import DALIGenericIterator

    @pipeline_def(batch_size=8, num_threads=threads, device_id=0, prefetch_queue_depth=2)
    def p() -> Any:
        args: dict[str, Any] = {"filenames": paths, "sequence_length": 16, "random_shuffle": True}
        args["initial_fill"] = 64
        if resize:
            video = fn.readers.video_resize(device="gpu", size=[224, 224], **args)
        else:
            video = fn.readers.video(device="gpu", **args)
        return video

    iterator: Any = DALIGenericIterator(p(), ["video"], auto_reset=True)
    while True:
        for batch in iterator:
            yield batch[0]["video"]


def measure(paths: list[str], threads: int, seconds: float, resize: bool = True) -> float:
    """Frames per second of a pipeline."""
    import torch

    found = batches(paths, threads, resize)
    for _ in range(6):
        batch = next(found)
    torch.cuda.synchronize()
    _COUNTED.clear()
    begin, frames = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        batch = next(found)
        frames += batch.shape[0] * batch.shape[1]
    torch.cuda.synchronize()
    if _COUNTED and os.environ.get("HEADRACE_VIDEO_DECODER") != "cpu":
        print(f"(the CPU decoded {len(_COUNTED)} of {frames // 16} sequences)")
    return frames / (time.perf_counter() - begin)


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--clips", type=int, default=16)
    parser.add_argument("--skip-comparison", action="store_true")
    args = parser.parse_args()
    os.environ.setdefault("SVT_LOG", "0")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if not args.skip_comparison:
            compare(folder)
        fast = {"preset": "ultrafast"}
        made = [
            write(folder / f"hd{k}.mp4", frames=96, size=(1080, 1920), options=fast, gop=24, seed=k)
            for k in range(4)
        ]
        paths = [made[k % 4] for k in range(args.clips)]
        single(made[0])
        for threads in args.threads:
            rate = measure(paths, threads, args.seconds)
            print(f"1080p H.264 to 224, {threads:2d} threads: {rate:.0f} frames/s", flush=True)
        rate = measure(paths, max(args.threads), args.seconds, resize=False)
        print(f"1080p H.264 whole, {max(args.threads)} threads: {rate:.0f} frames/s", flush=True)
        os.environ["HEADRACE_VIDEO_DECODER"] = "cpu"
        rate = measure(paths, max(args.threads), args.seconds)
        print(f"by the CPU, to 224, {max(args.threads)} threads: {rate:.0f} frames/s", flush=True)


if __name__ == "__main__":
    main()

"""Videos on the CPU: clips of a training, and files from end to end, beside other libraries.

    hatch run bench:video
    hatch run bench:video --case clips --size 720 1280 --rounds 7
    hatch run bench:video --case memory --clips 5000

Cases, with two threads and frames resized to 224 x 224: `clips`, 16 frames from anywhere of H.264
files, beside torchcodec, decord, and PyAV with OpenCV by hand, those that are installed; `vp9`, the
same beside DALI, whose CPU knows no H.264; `sequential`, one H.264 file after another, all frames,
beside FFmpeg's decoder (PyAV, which throws frames away), one thread each; `memory`, that of the
process over many clips. Files are generated; rates are frames per second, peers take turns.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library

CASES = ("clips", "vp9", "sequential", "memory")
LENGTH, SIDE, BATCH = 16, 224, 8
CODECS: dict[str, tuple[str, str, dict[str, str]]] = {
    "h264": ("libx264", "mp4", {"preset": "veryfast"}),
    "vp9": ("libvpx-vp9", "webm", {"cpu-used": "8", "deadline": "realtime"}),
}


def write_videos(
    folder: Path, codec: str, count: int, frames: int, size: tuple[int, int], gop: int
) -> list[str]:
    """Write files of moving patterns with noise."""
    import av

    name, container, options = CODECS[codec]
    height, width = size
    y, x = np.mgrid[:height, :width]
    paths = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        noise = rng.integers(0, 20, (height, width, 3), np.uint8)
        path = folder / f"{codec}{seed}.{container}"
        with av.open(str(path), "w") as output:
            stream: Any = output.add_stream(name, rate=Fraction(30), options=dict(options))
            stream.height, stream.width, stream.pix_fmt, stream.gop_size = *size, "yuv420p", gop
            for number in range(frames):
                wave = 128 + 90 * np.sin((x + 2 * y + 7 * number + 31 * seed) / 29)
                planes = [wave, np.roll(wave, 20, 0), 255 - wave]
                picture = np.stack(planes, -1).astype(np.uint8).clip(0, 230)
                picture += np.roll(noise, 3 * number, 1)
                output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            output.mux(stream.encode())
        paths.append(str(path))
    return paths


def pipeline_step(
    name: str, paths: list[str], threads: int, *, as_dali: bool = False
) -> Callable[[], int]:
    """Batches of clips of a pipeline of DALI's or Headrace's; the number of frames, for each call.

    They begin anywhere, or with `as_dali` at every third frame, shuffled, which DALI can do.
    """
    lib = library(name)
    fn = lib.fn

    @lib.pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
    def p() -> Any:
        args = {"filenames": paths, "sequence_length": LENGTH}
        if not as_dali:
            return fn.readers.video_resize(
                **args, size=[SIDE, SIDE], clips_per_video=8, clip_starts="random",
                random_shuffle=True,
            )  # fmt: skip
        video = fn.experimental.readers.video(
            device="cpu", **args, step=3, random_shuffle=True, initial_fill=64
        )
        return fn.resize(video, size=[SIDE, SIDE])

    pipe = p()
    pipe.build()

    def step() -> int:
        (batch,) = pipe.run()
        return len(batch) * LENGTH

    return step


def threaded_step(clip: Callable[[str, random.Random], Any], paths: list[str], threads: int) -> Any:
    """The same by a function of one clip, in threads."""
    pool = ThreadPoolExecutor(threads)
    draw = random.Random(1)

    def task(seed: int) -> Any:
        own = random.Random(seed)
        return clip(own.choice(paths), own)

    ahead = [pool.submit(task, draw.random().__hash__()) for _ in range(2 * BATCH)]

    def step() -> int:
        for _ in range(BATCH):
            ahead.append(pool.submit(task, draw.random().__hash__()))
            found = ahead.pop(0).result()
            assert found.shape[0] == LENGTH
        return BATCH * LENGTH

    return step


def by_torchcodec(frames: int) -> Callable[[str, random.Random], Any]:
    """Clips by torchcodec: its own resizing in the decoder, approximate seeks and one thread."""
    import torch
    from torchcodec.decoders import VideoDecoder

    torch.set_num_threads(1)
    options: dict[str, Any] = {"num_ffmpeg_threads": 1, "seek_mode": "approximate"}
    try:
        from torchcodec.transforms import Resize

        options["transforms"] = [Resize((SIDE, SIDE))]
    except (ImportError, RuntimeError):
        pass

    def clip(path: str, draw: random.Random) -> Any:
        first = draw.randrange(frames - LENGTH + 1)
        decoder = VideoDecoder(path, **options)
        found = decoder.get_frames_in_range(first, first + LENGTH).data
        if found.shape[-1] != SIDE:
            found = torch.nn.functional.interpolate(found.float(), (SIDE, SIDE), mode="bilinear")
        return found

    return clip


def by_decord(frames: int) -> Callable[[str, random.Random], Any]:
    """Clips by decord, which resizes as it decodes."""
    import decord

    def clip(path: str, draw: random.Random) -> Any:
        first = draw.randrange(frames - LENGTH + 1)
        reader = decord.VideoReader(path, width=SIDE, height=SIDE, num_threads=1)
        return reader.get_batch(list(range(first, first + LENGTH))).asnumpy()

    return clip


def by_hand(frames: int) -> Callable[[str, random.Random], Any]:
    """Clips by PyAV and OpenCV: seek, decode, drop what comes before, convert, resize."""
    import av
    import cv2

    cv2.setNumThreads(1)

    def clip(path: str, draw: random.Random) -> Any:
        first = draw.randrange(frames - LENGTH + 1)
        out = np.empty((LENGTH, SIDE, SIDE, 3), np.uint8)
        with av.open(path) as container:
            stream = container.streams.video[0]
            stream.codec_context.thread_count = 1
            rate, base = stream.average_rate, stream.time_base
            assert rate is not None
            assert base is not None
            container.seek(int(first / rate / base), stream=stream)
            place = 0
            for frame in container.decode(stream):
                assert frame.pts is not None
                if round(frame.pts * base * rate) < first:
                    continue
                cv2.resize(frame.to_ndarray(format="rgb24"), (SIDE, SIDE), dst=out[place])
                place += 1
                if place == LENGTH:
                    break
        return out

    return clip


def clip_peers(paths: list[str], frames: int, threads: int) -> list[Peer]:
    """Those for H.264 that are installed."""
    peers = [Peer("Headrace", pipeline_step("Headrace", paths, threads), by_processor=True)]
    for name, make in (("torchcodec", by_torchcodec), ("decord", by_decord), ("PyAV", by_hand)):
        try:
            step = threaded_step(make(frames), paths, threads)
            step()
        except (ImportError, OSError, RuntimeError) as error:
            print(f"Without {name}: {str(error).splitlines()[0][:120]}")
            continue
        peers.append(Peer(name, step, by_processor=True))
    return peers


def decode_step(paths: list[str]) -> Callable[[], int]:
    """All frames of one file after another by FFmpeg's decoder."""
    import av

    endless = itertools.cycle(paths)

    def step() -> int:
        count = 0
        with av.open(next(endless)) as container:
            container.streams.video[0].codec_context.thread_count = 1
            for _ in container.decode(video=0):
                count += 1
        return count

    return step


def sequential_step(paths: list[str], resize: bool) -> Callable[[], int]:
    """The same by a pipeline, as sequences."""
    lib = library("Headrace")

    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def p() -> Any:
        args = {"filenames": paths, "sequence_length": LENGTH}
        if resize:
            return lib.fn.readers.video_resize(**args, size=[SIDE, SIDE])
        return lib.fn.readers.video(**args)

    pipe = p()
    pipe.build()
    return lambda: len(pipe.run()[0]) * LENGTH


def memory(paths: list[str], clips: int) -> None:
    """Print the memory of the process while clips are read."""
    step = pipeline_step("Headrace", paths, 2)
    for number in range(clips // BATCH + 1):
        step()
        if number % max(clips // BATCH // 10, 1) == 0:
            with open("/proc/self/status") as file:
                line = next(line for line in file if line.startswith("VmRSS"))
            print(f"{number * BATCH:6d} clips: {int(line.split()[1]) / 1024:.0f} MB", flush=True)


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs="+")
    parser.add_argument("--size", type=int, nargs=2, default=(360, 640))
    parser.add_argument("--frames", type=int, default=240)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--gop", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--clips", type=int, default=5000)
    args = parser.parse_args()
    os.environ.setdefault("HEADRACE_WORKERS", "threads")
    tables: dict[str, list[Peer]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        known: dict[str, list[str]] = {}

        def videos(codec: str) -> list[str]:
            if codec not in known:
                how = args.files, args.frames, tuple(args.size), args.gop
                known[codec] = write_videos(Path(scratch), codec, *how)
            return known[codec]

        def tables_of(case: str) -> Iterator[Peer]:
            if case == "clips":
                yield from clip_peers(videos("h264"), args.frames, args.threads)
            elif case == "vp9":
                for name in ("DALI", "Headrace"):
                    step = pipeline_step(name, videos("vp9"), args.threads, as_dali=True)
                    yield Peer(name, step, by_processor=True)
            else:
                paths = videos("h264")
                yield Peer("FFmpeg", decode_step(paths), by_processor=True)
                for name, resize in (("Headrace", False), ("Headrace, to 224", True)):
                    yield Peer(name, sequential_step(paths, resize), by_processor=True)

        for case in checked_cases(args.case, CASES):
            if case == "memory":
                memory(videos("h264"), args.clips)
                continue
            tables[case] = list(tables_of(case))
            measure(tables[case], rounds=args.rounds, seconds=args.seconds)
            reference = {"clips": "torchcodec", "vp9": "DALI"}.get(case, "FFmpeg")
            if reference not in [peer.name for peer in tables[case]]:
                reference = tables[case][-1].name
            print_table(f"Videos, {case}", {case: tables[case]}, reference=reference)


if __name__ == "__main__":
    main()

"""SPDL: FFmpeg's decoders and filters in threads."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.compare import work
from benchmarks.compare.random_crop import random_crop


def _batches(
    items: list[Any],
    one: Callable[[Any], Any],
    together: Callable[[list[Any]], Any],
    batch_size: int = work.BATCH,
) -> work.Batches:
    from spdl.pipeline import PipelineBuilder

    builder = PipelineBuilder().add_source(itertools.cycle(random.sample(items, len(items))))
    builder = builder.pipe(one, concurrency=work.WORKERS).aggregate(batch_size)
    pipeline = builder.pipe(together).add_sink(2).build(num_threads=work.WORKERS, max_failures=0)
    with pipeline.auto_stop():
        for batch in pipeline:
            yield len(batch)


def _normalised(frames: list[Any]) -> Any:
    import spdl.io
    import torch

    images = spdl.io.to_torch(spdl.io.convert_frames(frames)).permute(0, 3, 1, 2).float()
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (work.MEAN, work.STD))
    return images.sub_(mean).div_(std).contiguous()


def _as_they_are(items: list[Any]) -> list[Any]:
    return items


def _image(path: Path, train: bool) -> Any:
    import spdl.io

    packets = spdl.io.demux_image(str(path))
    filters = "scale=256:256:flags=area,crop=224:224"
    if train:
        x, y, width, height = random_crop(packets.width, packets.height)
        filters = f"crop={width}:{height}:{x}:{y}:exact=1,scale=224:224:flags=area"
        filters += ",hflip" if random.random() < 0.5 else ""
    return spdl.io.decode_packets(packets, filter_desc=f"{filters},format=rgb24")


def _images(train: bool) -> Callable[[Path], work.Batches]:
    return lambda f: _batches(work.images(f), lambda path: _image(path, train), _normalised)


def _video(folder: Path) -> work.Batches:
    import spdl.io

    extent = work.FRAME_EXTENT
    filters = f"scale={extent}:{extent},format=rgb24"

    def clip(path: str) -> Any:
        start = random.randrange(160 - work.FRAMES) / 25
        packets = spdl.io.demux_video(path, timestamp=(start, start + (work.FRAMES + 1) / 25))
        frames = spdl.io.decode_packets(packets, filter_desc=filters, num_frames=work.FRAMES)
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    return _batches(work.videos(folder), clip, _as_they_are, work.CLIPS)


def _audio(folder: Path) -> work.Batches:
    import spdl.io

    wanted = spdl.io.get_audio_filter_desc(sample_rate=work.SAMPLE_RATE, num_channels=1)

    def clip(path: str) -> Any:
        return spdl.io.to_numpy(spdl.io.load_audio(path, filter_desc=wanted))

    return _batches(work.clips(folder), clip, _as_they_are)


SPDL = work.Library(
    ("spdl", "spdl_io", "torch"),
    {"train": _images(True), "validate": _images(False), "video": _video, "audio": _audio},
    {"augment": "it works on what it decodes, by FFmpeg's filters; not on arrays in memory"},
    "decoding, crop, scaling and mirror by FFmpeg's filters in two threads; PyTorch normalises",
)

"""Write videos of a textured square that moves left, right, up or down, H.264, a folder a class.

    python -m examples.video.clips --folder clips

No single frame tells the class: a network has to look at several.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import av
import numpy as np

WAYS = {"down": (1, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0)}
SIZE, SQUARE, FRAMES = 96, 28, 40


def write_clip(path: Path, way: tuple[int, int], seed: list[int]) -> None:
    """Write a video of one square."""
    rng = np.random.default_rng(seed)
    background = (
        rng.integers(30, 120, (SIZE // 8, SIZE // 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    )
    square = rng.integers(100, 256, (SQUARE // 4, SQUARE // 4, 3), np.uint8).repeat(4, 0)
    square = square.repeat(4, 1)
    y, x = rng.integers(0, SIZE, 2)
    speed = int(rng.integers(2, 4))
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=int(rng.choice([15, 24, 30])))
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for number in range(FRAMES):
            frame = background.copy()
            rows = (y + way[0] * speed * number + np.arange(SQUARE)) % SIZE
            columns = (x + way[1] * speed * number + np.arange(SQUARE)) % SIZE
            frame[np.ix_(rows, columns)] = square
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, "rgb24")))
        container.mux(stream.encode(None))


def write_clips(folder: Path, each: int) -> Path:
    """Write `each` videos of each class for training, and a quarter of that for validation."""
    for part, count in (("train", each), ("validation", max(each // 4, 1))):
        for label, (name, way) in enumerate(WAYS.items()):
            (folder / part / name).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                path = folder / part / name / f"{number:03}.mp4"
                if not path.exists():
                    write_clip(path, way, seed=[len(part), label, number])
    return folder


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("clips"))
    parser.add_argument("--each", type=int, default=48, help="videos of each class")
    args = parser.parse_args()
    write_clips(args.folder, args.each)
    print(f"Wrote {4 * (args.each + max(args.each // 4, 1))} videos below {args.folder}.")


if __name__ == "__main__":
    main()

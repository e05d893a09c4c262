"""Time of resampling and normalising one image on one thread, in microseconds.

Run ``python benchmarks/kernels/resample.py``. Each line is the least mean of some repetitions:
*warm* works on one image over and over, as after a decoder on the same core; *cold* goes through so
many that none is in a cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from headrace.executor.cpu.arena import Arena
from headrace.kernels.cpu.normalize_pixels import normalize_pixels, pattern
from headrace.kernels.cpu.resample import axis_taps, resample_image
from headrace.kernels.cpu.resample_taps import AxisSampling, Filter

IMAGES = 64
NORMALIZATION = pattern([123.7, 116.3, 103.5]), pattern(1 / np.array([58.4, 57.1, 57.4]))
CASES = {
    "400x550 to 256x256, centre 224x224": ((400, 550), (256, 256), (16, 16)),
    "280x370 to 224x224": ((280, 370), (224, 224), (0, 0)),
}


def least_microseconds(work: Callable[[int], None]) -> float:
    """Least mean time of one call."""
    best = float("inf")
    for _ in range(12):
        begin = time.perf_counter()
        for k in range(IMAGES):
            work(k)
        best = min(best, (time.perf_counter() - begin) / IMAGES)
    return best * 1e6


def aligned(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Memory that starts on a cache line and has been written to."""
    out = Arena().empty(shape, dtype)
    out[...] = 0
    return out


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    arena = Arena()

    def scratch(shape: tuple[int, ...], dtype: type) -> np.ndarray:
        arena.reset()
        return arena.empty(shape, dtype)

    for name, ((height, width), (out_height, out_width), (y, x)) in CASES.items():
        images = [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(IMAGES)]
        planes = [aligned((3, 224, 224), np.float32) for _ in range(IMAGES)]
        pixels = [aligned((224, 224, 3), np.uint8) for _ in range(IMAGES)]
        rows = AxisSampling(height, out_height, 0.0, height, Filter.TRIANGULAR, True, True)
        columns = AxisSampling(width, out_width, 0.0, width, Filter.TRIANGULAR, True, False)

        def fused(i, o, images=images, planes=planes, rows=rows, columns=columns, y=y, x=x):
            resample_image(
                images[i],
                0,
                0,
                axis_taps(rows, y, 224),
                axis_taps(columns, x, 224),
                planes[o].transpose(1, 2, 0),
                scratch,
                rounds_to=np.dtype(np.uint8),
                normalization=NORMALIZATION,
            )

        def resized(i, o, images=images, pixels=pixels, rows=rows, columns=columns, y=y, x=x):
            resample_image(
                images[i],
                0,
                0,
                axis_taps(rows, y, 224),
                axis_taps(columns, x, 224),
                pixels[o],
                scratch,
                rounds_to=np.dtype(np.uint8),
            )

        def normalized(i, o, images=images, planes=planes):
            window = images[i][16:240, 16:240]
            normalize_pixels(window, *NORMALIZATION, planes[o].transpose(1, 2, 0))

        for what, work in (
            ("fused to float32 CHW", fused),
            ("resized to uint8", resized),
            ("only normalised", normalized),
        ):
            warm = least_microseconds(lambda k, work=work: work(0, 0))
            cold = least_microseconds(lambda k, work=work: work(k, k))
            print(f"{name:36} {what:22} warm {warm:5.0f}  cold {cold:5.0f}")


if __name__ == "__main__":
    main()

"""Motion between images, by OpenCV's DIS."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.opencv import cv2

PRESETS = ("MEDIUM", "FAST", "ULTRAFAST")
SMALLEST = 16
"""Pixels of height and width that every preset takes."""


def gray_frames(frames: np.ndarray, color: str) -> list[np.ndarray]:
    """Frames of a sequence, uint8 FHWC, without their colours: ``"RGB"``, ``"BGR"``, ``"GRAY"``."""
    if color == "GRAY":
        return [np.ascontiguousarray(frame[..., 0]) for frame in frames]
    cv = cv2()
    code = cv.COLOR_RGB2GRAY if color == "RGB" else cv.COLOR_BGR2GRAY
    return [cv.cvtColor(np.ascontiguousarray(frame[..., :3]), code) for frame in frames]


def optical_flow(
    frames: list[np.ndarray],
    preset: str,
    grid: int,
    hints: list[np.ndarray] | None,
    hint_grid: int,
    chained: bool,
    out: np.ndarray,
) -> None:
    """Fill `out` with where pixels of each frame but the first were in the one before.

    `frames`: gray images. `preset`: one of `PRESETS`, the best first. `grid`: pixels of a cell's
    side: of each cell, the mean. `hints`: for each result, what to begin with: of cells of
    `hint_grid` pixels. `chained`: begin with the result before, where there is no hint. `out`:
    columns and rows to go, in pixels, float32 ``(results, height, width, 2)``.
    """
    cv = cv2()
    work = cv.DISOpticalFlow.create(getattr(cv, f"DISOPTICAL_FLOW_PRESET_{preset}"))
    height, width = frames[0].shape
    flow = None
    for k in range(len(out)):
        first = flow if chained else None
        if hints is not None:
            wide = np.repeat(np.repeat(hints[k], hint_grid, 0), hint_grid, 1)
            first = np.ascontiguousarray(wide[:height, :width], np.float32)
        flow = work.calc(frames[k + 1], frames[k], None if first is None else first.copy())
        _fill_means(flow, grid, out[k])


def _fill_means(flow: np.ndarray, grid: int, out: np.ndarray) -> None:
    rows, columns = (np.arange(0, extent, grid) for extent in flow.shape[:2])
    sums = np.add.reduceat(np.add.reduceat(flow, rows, 0), columns, 1)
    counts = [
        np.minimum(grid, extent - begins)
        for extent, begins in zip(flow.shape[:2], (rows, columns), strict=True)
    ]
    out[:] = sums / np.outer(*counts)[..., np.newaxis].astype(np.float32)

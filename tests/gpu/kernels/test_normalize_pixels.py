"""What `crop_mirror_normalize` on the GPU does for large batches and frames, on small ones."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.gpu import normalize_pixels
from headrace.types import DALIDataType
from tests.support.gpu.alike import check_alike, each, random_rows

DTYPES = [DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8]
SHAPES = [(75, 90, 3), (1, 2100, 3), (1500, 1, 3), (33, 32, 3)]
WIDE = [(3, 4700, 3), (70, 101, 3), (2, 4, 3), (9, 700, 3)]


def same(layout, output_layout, dtype, shapes=SHAPES, **arguments):
    if layout == "CHW":
        shapes = [(c, h, w) for h, w, c in shapes]
    check_alike(
        "crop_mirror_normalize",
        random_rows(*shapes),
        layout=layout,
        output_layout=output_layout,
        dtype=dtype,
        mirror=each(0, 1, 0, 1, dtype=np.int32),
        mean=[120.0, 110.5, 100.0],
        scale=2.0,
        **arguments,
    )


@pytest.mark.sweep(pairs=True)
@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("output_layout", ["HWC", "CHW", "CWH", "HCW"])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_blocks_that_go_on(monkeypatch, layout, output_layout, dtype):
    monkeypatch.setattr(normalize_pixels, "_turns", lambda queue, blocks: 3)
    same(layout, output_layout, dtype)
    same(layout, output_layout, dtype, pad_output=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_places_of_64_bits(monkeypatch, layout, dtype):
    monkeypatch.setattr(normalize_pixels, "_MOST_32_BITS", 0)
    for output_layout in ("HWC", "CHW", "HCW"):
        same(layout, output_layout, dtype)


@pytest.mark.parametrize("dtype", [*DTYPES, DALIDataType.INT8])
def test_planes_of_many_tiles(emulated_gpu, dtype):
    same("HWC", "CHW", dtype, WIDE)
    crop = {"crop_h": 2.0, "crop_w": 4.0, "crop_pos_x": 0.7, "crop_pos_y": 1.0}
    same("HWC", "CHW", dtype, WIDE, **crop)
    used = [name for name in emulated_gpu.launches if name.startswith("normalize_p")]
    assert {name.partition("<")[0] for name in used} == {"normalize_planes"}


def test_large_batches_have_blocks_that_go_on():
    class Queue:
        class runtime:  # noqa: N801
            multiprocessors = 10

    turns = [normalize_pixels._turns(Queue, n) for n in (1, 160, 10_000)]
    assert turns == [1, 2, 4]

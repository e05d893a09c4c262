"""`fn.debayer` against DALI: the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity
from tests.parity.words import check_words, on

_rng = np.random.default_rng(0)
POSITIONS = [(0, 0), (0, 1), (1, 0), (1, 1)]
SHAPES = [(32, 44), (2, 2), (4, 4), (2, 10), (10, 2), (20, 6), (6, 8)]


def mosaic(*shape, dtype="uint8"):
    return _rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def debayer(lib, images, positions):
    return lib.fn.debayer(images, blue_position=positions)


@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [
        *((name, "uint8") for name in (None, "bilinear_ocv", "EdgeAware_ocv", "vng_ocv")),
        *(("gray_ocv", dtype) for dtype in ("uint8", "uint16")),
        *((name, "uint16") for name in (None, "edgeaware_ocv")),
    ],
)
def test_bytes(algorithm, dtype):
    options = {} if algorithm is None else {"algorithm": algorithm}
    images = [mosaic(*shape, dtype=dtype) for shape in SHAPES]

    def graph(lib, images, positions):
        each = lib.fn.debayer(images, blue_position=positions, **options)
        return each, *(lib.fn.debayer(images, blue_position=p, **options) for p in (*POSITIONS, 1))

    positions = [np.int32(POSITIONS[k % 4]) for k in range(len(images))]
    assert_parity(graph, images, positions, layouts=["HW", ""], max_levels=0)
    channels = [image[..., np.newaxis] for image in images]
    for layout in ("HWC", ""):
        assert_parity(graph, channels, positions, layouts=[layout, ""], max_levels=0)


def test_frames():
    sequences = [mosaic(count, 8, 6) for count in (4, 1, 2)]
    each = [np.int32(POSITIONS[: len(s)]) for s in sequences]

    def by_frame(lib, images, positions):
        return debayer(lib, images, lib.fn.per_frame(positions))

    assert_parity(by_frame, sequences, each, layouts=["FHW", ""], max_levels=0)
    channels = [s[..., np.newaxis] for s in sequences]
    fixed = [np.int32(p) for p in POSITIONS[1:]]
    assert_parity(debayer, channels, fixed, layouts=["FHWC", ""], max_levels=0)


def test_old_name():
    def graph(lib, images):
        with pytest.warns(DeprecationWarning, match="debayer"):
            return lib.fn.experimental.debayer(images, blue_position=(0, 1))

    assert_parity(graph, [mosaic(6, 8)], layouts="HW", max_levels=0)


def test_errors():
    images = [mosaic(8, 6)] * 2

    def rows(data, layout, words, **options):
        options = {"blue_position": (0, 0), **options}
        return on(data, lambda lib, x: lib.fn.debayer(x, **options), layout), words

    check_words(
        [
            rows([mosaic(7, 6)], "HW", "must be even"),
            rows([mosaic(6, 7)], "HW", "must be even"),
            rows([mosaic(6, 6, 3)], "HWC", r"expects grayscale (i.e. single channel) images"),
            rows(images, "HW", "must lie within 2x2 tile", blue_position=(0, 2)),
            rows(images, "HW", "must lie within 2x2 tile", blue_position=(-1, 1)),
            rows(images, "HW", "unsupported debayer algorithm was specified", algorithm="best"),
            rows(images, "HW", "unsupported debayer algorithm was specified", algorithm=""),
            rows(images, "HW", "default_npp algorithm is not supported", algorithm="default_npp"),
            rows(
                [x.astype("uint16") for x in images],
                "HW",
                "supported with uint8",
                algorithm="vng_ocv",
            ),
        ]
    )
    for wrong in (images[0].astype("float32"), images[0].astype("int16")):
        assert_both_raise(lambda lib, x: debayer(lib, x, (0, 0)), [wrong], layouts="HW")
    for layout in ("WH", "CHW"):
        data = [mosaic(2, 4, 6)[: len(layout) - 1].reshape((-1, 4, 6)[3 - len(layout) :])]
        assert_both_raise(lambda lib, x: debayer(lib, x, (0, 0)), data, layouts=layout)

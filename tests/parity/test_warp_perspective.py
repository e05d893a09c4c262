"""`fn.experimental.warp_perspective` against DALI."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_parity, run_graph
from tests.parity.words import check_words, on

_draw = np.random.default_rng(0)
TILT = np.float32([[1.1, 0.05, 3], [0.02, 0.9, -2], [0.0005, 0.001, 1]])
MAPS = [TILT, np.float32([[0.9, -0.3, 20], [0.2, 0.8, 5], [-0.001, 0.002, 1.1]])]
LAYOUTS = {
    "HWC": (60, 80, 3),
    "HW": (30, 20),
    "CHW": (5, 30, 20),
    "FHWC": (2, 30, 20, 4),
    "FCHW": (3, 2, 30, 20),
}


def images(*shape, dtype="uint8"):
    return [(_draw.random(shape) * 250).astype(dtype) for _ in MAPS]


def warped(lib, *inputs, **given):
    return lib.fn.experimental.warp_perspective(*inputs, **given)


def test_layouts_and_types():
    for layout, shape in LAYOUTS.items():
        for dtype in ("uint8", "uint16", "int16", "float32") if layout == "HWC" else ("uint8",):
            # Coordinates in between are rounded to other numbers where a map is inverted.
            options = {"absolute": 2e-3} if dtype == "float32" else {"max_levels": 2}
            assert_parity(
                lambda lib, x, m, size: (
                    warped(lib, x, matrix=TILT),
                    warped(lib, x, matrix=m, inverse_map=False, interp_type=lib.types.INTERP_CUBIC),
                    warped(lib, x, m, size=size, fill_value=300, pixel_origin="center"),
                    warped(lib, x, m, size=(30.5, 9.4), interp_type=lib.types.INTERP_NN),
                ),
                images(*shape, dtype=dtype),
                MAPS,
                [np.float32([20, 30.5]), np.float32([7, 100])],
                layouts=[layout, "", ""],
                differing=0.01,
                **options,
            )
    assert_parity(lambda lib, x: warped(lib, x, matrix=TILT.reshape(-1).tolist()), images(9, 8))


def test_borders():
    def graph(lib, x):
        modes = ("constant", "replicate", "reflect", "reflect_101", "wrap")
        kinds = lib.types.INTERP_NN, lib.types.INTERP_LINEAR, lib.types.INTERP_CUBIC
        return (
            *(
                warped(lib, x, matrix=TILT, border_mode=mode, interp_type=kind)
                for mode in modes
                for kind in kinds
            ),
            *(warped(lib, x, matrix=TILT, fill_value=fill) for fill in (7.6, [1, 2, 3], -5, [9])),
            *(warped(lib, x, matrix=TILT, size=size) for size in (30, (0, -3))),
        )

    assert_parity(graph, images(20, 30, 3), layouts="HWC")


def test_a_horizon_is_no_endless_walk():
    # DALI would take hours.
    tilt = np.float32([[1, 0, 0], [0, 1, 0], [-0.1, 0, 1]])
    given = {"matrix": tilt, "pixel_origin": "center"}
    for border in ("reflect", "reflect_101", "wrap"):
        for kind in ("INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"):
            found = run_graph(
                "headrace",
                lambda lib, x, b=border, k=kind: warped(
                    lib, x, border_mode=b, interp_type=getattr(lib.types, k), **given
                ),
                [np.arange(30, dtype=np.float32).reshape(1, 30, 1).repeat(3, 0)],
                layouts="HWC",
            )[0]
            whole = found[0].samples[0]
            assert np.isfinite(whole).all()
            assert -10 < whole.min() <= whole.max() < 40
    near = np.float32([[1, 0, 0], [0, 1, 0], [-0.03, 0, 1]])  # at 33 of 30 columns
    assert_parity(
        lambda lib, x: [
            warped(lib, x, matrix=near, border_mode=b) for b in ("reflect", "reflect_101", "wrap")
        ],
        [np.random.default_rng(0).random((20, 30, 3)).astype(np.float32)],
        layouts="HWC",
        absolute=2e-3,
    )


def test_frames():
    def graph(lib, x, maps):
        maps = lib.fn.per_frame(maps)
        return warped(lib, x, matrix=maps), warped(lib, x, maps), warped(lib, x[0], maps)

    maps = [np.stack(MAPS), np.stack(MAPS[:1])]
    data = [i[: len(m)] for i, m in zip(images(2, 30, 20, 3), maps, strict=True)]
    assert_parity(graph, data, maps, layouts=["FHWC", ""])


def test_errors():
    def case(*inputs, layout="HWC", shape=(9, 8, 3), **given):
        data = images(*shape)[:1]
        return on(data, lambda lib, x: warped(lib, x, *inputs, **given), layout)

    check_words(
        [
            (case(), '"matrix" expected shape 3 x 3 but got 0 values'),
            (case(matrix=[1.0] * 6), '"matrix" expected shape 3 x 3 but got 6 values'),
            (case(TILT, matrix=TILT), "should not be provided at the same time"),
            (case(TILT[:2]), "expected a uniform list of 3x3 matrices"),
            (case(matrix=TILT, border_mode="xx"), "invalid border_mode argument"),
            (case(matrix=TILT, pixel_origin="xx"), "invalid pixel_origin argument"),
            (case(matrix=TILT, size=(3, 4, 5)), '"size" expected shape 2 but got 3 values'),
            (case(matrix=TILT, fill_value=[1, 2]), "should match the number of channels"),
            (
                case(matrix=TILT, fill_value=[1, 2], layout="CHW", shape=(2, 3, 4)),
                "only scalar fill_value",
            ),
            (case(matrix=TILT, shape=(3, 4, 5)), "more than 4 channels are not supported"),
            (
                on(
                    images(9, 8, 3),
                    lambda lib, x: warped(
                        lib, x, matrix=TILT, interp_type=lib.types.INTERP_LANCZOS3
                    ),
                ),
                "unknown interpolation type",
            ),
        ]
    )

"""`fn.sphere` and `fn.water` against DALI."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(0)
SHAPES = [(50, 70, 3), (33, 20, 3), (9, 1, 3), (4, 6, 3)]
WAVES = {"ampl_x": 3.5, "ampl_y": 0.7, "freq_x": 0.3, "freq_y": 0.9, "phase_x": 2, "phase_y": 0.1}


def images(dtype, shapes=SHAPES):
    return [_rng.integers(0, 256, shape).astype(dtype) for shape in shapes]


def test_images():
    masks = [np.int32(k) for k in (1, 0, 2, 1)]

    def graph(lib, x, mask):
        linear = {"interp_type": lib.types.INTERP_LINEAR}
        return tuple(
            f(x, **given)
            for f in (lib.fn.sphere, lib.fn.water, lambda x, **g: lib.fn.water(x, **WAVES, **g))
            for given in (
                {},
                linear,
                {"fill_value": 77.6},
                {"fill_value": 77.6, "mask": mask, **linear},
            )
        )

    for dtype in ("uint8", "float32"):
        # Sines differ in their last bit: some pixels are the next ones.
        options = {"max_levels": 255, "differing": 0.003}
        if dtype == "float32":
            options = {"absolute": 1e-4}
        assert_parity(graph, images(dtype), masks, layouts=["HWC", ""], **options)
    for shape in ((0, 3, 3), (1, 1, 3), (5, 7, 1), (5, 7, 4), (1, 2, 3)):
        assert_parity(graph, images("uint8", [shape]), masks[:1])


def test_a_constant_mask():
    data = images("uint8")
    for lib, same in (("dali", False), ("headrace", True)):
        graph = lambda lib, x: (lib.fn.sphere(x, mask=0), lib.fn.water(x, mask=0))  # noqa: E731
        for output in run_graph(lib, graph, data, layouts="HWC")[0]:
            assert np.array_equal(output.samples[0], data[0]) == same


def test_errors():
    for name in ("sphere", "water"):
        for dtype in ("int8", "int16", "float16", "float64"):
            assert_both_raise(lambda lib, x: getattr(lib.fn, name)(x), images(dtype))  # noqa: B023
        assert_both_raise(
            lambda lib, x: getattr(lib.fn, name)(x, interp_type=lib.types.INTERP_CUBIC),  # noqa: B023
            images("uint8"),
            match="interp_type",
        )
        assert_both_raise(
            lambda lib, x: getattr(lib.fn, name)(x),  # noqa: B023
            images("uint8"),
            layouts="CHW",
        )

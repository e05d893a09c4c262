"""Operators that are functions of an array module, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, DataTypeError, OperatorError, ShapeError
from headrace.operators import Arg, Input, Spec, operator
from headrace.operators.support import registry
from headrace.operators.support.argument_types import FloatArg
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

IMAGES = [np.random.default_rng(0).integers(0, 256, s, np.uint8) for s in ((5, 7, 3), (2, 4, 3))]
DATA = Input("data", "Anything.")
"""What all operators here take."""


@pytest.fixture(scope="module", autouse=True)
def _declared():
    @operator(
        "t_solarize",
        inputs=DATA,
        args=(Arg("threshold", FloatArg, 128.0, "Level.", per_sample=True),),
    )
    def t_solarize(xp, image, threshold):
        """Invert."""
        return xp.where(image > threshold, 255 - image, image)

    @operator("t_luminance", inputs=DATA, infer=lambda x: Spec(types.FLOAT, x.ndim - 1))
    def t_luminance(xp, image):
        """Add up channels."""
        return (image @ xp.array([0.25, 0.5, 0.25])).astype(xp.float32)

    @operator("t_flip", inputs=DATA)
    def t_flip(xp, image):
        """Return a view that goes backwards."""
        return image[:, ::-1]

    @operator("t_same", inputs=DATA)
    def t_same(xp, image):
        """Return the input."""
        return image

    @operator("t_rows", inputs=DATA)
    def t_rows(xp, image):
        """Return a part in one piece."""
        return image[1:2]

    @operator(
        "t_sum",
        inputs=DATA,
        infer=lambda x: (Spec(types.INT64, 0), Spec(types.FLOAT64, 0)),
        num_outputs=2,
    )
    def t_sum(xp, image):
        """Return a 0-D array and a number."""
        return xp.sum(image, dtype=xp.int64), 2.5

    @operator("t_host", inputs=(DATA, Input("table", "On the host.", device="cpu")))
    def t_host(xp, image, table):
        """Read an input on the host."""
        assert isinstance(table, np.ndarray)
        return image[: int(table[0])]

    @operator("t_wrong_type", inputs=DATA)
    def t_wrong_type(xp, image):
        """Return another type."""
        return image * 1.0

    @operator("t_none", inputs=DATA)
    def t_none(xp, image):
        """Return nothing."""

    @operator("t_fails", inputs=DATA)
    def t_fails(xp, image):
        """Fail."""
        if image.shape[0] == 2:
            raise ValueError("two rows")
        return image

    @operator("t_ranks", inputs=DATA, infer=lambda x: Spec(x.dtype, None))
    def t_ranks(xp, image):
        """Return samples of different ranks."""
        return image if image.shape[0] == 2 else image[0]

    yield
    for name in [name for name in registry._schemas if name.startswith("t_")]:
        del registry._schemas[name]


def check(name, *inputs, **args):
    got = run_gpu_operator(name, *inputs, **args)
    want = run_cpu_operator_on_batch(name, *inputs, **args)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        for a, b in zip(g, w, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("name", ["t_luminance", "t_flip", "t_same", "t_rows", "t_sum"])
def test_results(name):
    check(name, IMAGES)


def test_arguments():
    check("t_solarize", IMAGES)
    check("t_solarize", IMAGES, threshold=30.0)
    check("t_solarize", IMAGES, threshold=[np.float32(10), np.float32(200)])


def test_inputs_on_the_host():
    check("t_host", IMAGES, [np.int32([1]), np.int32([2])])


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("t_wrong_type", DataTypeError, "float64"),
        ("t_none", DataTypeError, "None"),
        ("t_fails", OperatorError, "(?s)two rows.*sample 1"),
        ("t_ranks", ShapeError, "2 and 3 dimensions"),
    ],
)
def test_errors(name, error, match):
    with pytest.raises(error, match=match):
        run_gpu_operator(name, IMAGES)


def test_views_keep_their_input():
    numbers = iter(range(100))

    def source():
        return np.full((2, 4, 3), next(numbers), np.float32)

    pipe = Pipeline(batch_size=2, num_threads=2, device_id=0)
    with pipe:
        rows = fn.t_rows(fn.external_source(source=source).gpu() + 1)
        pipe.set_outputs(rows, fn.t_flip(rows) * 2)
    kept = [pipe.run() for _ in range(8)]
    values = [[float(out.as_cpu().at(1)[0, 0]) for out in outputs] for outputs in kept]
    assert values == [[k + 1, 2 * (k + 1)] for k in range(8)]


def test_number_of_values():
    with pytest.raises(ArgumentValueError, match="scalar"):
        run_gpu_operator("t_solarize", IMAGES, threshold=[np.zeros(2), np.zeros(2)])

"""Numbers in arguments that the type of the data cannot hold: DALI's values, whatever they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.parity.support import assert_parity

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")

INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
TYPES = [*INTEGERS, "float16", "float32"]
WHOLE = [-1, 300, 70000, 2**31, 2**31 - 1, -(2**31) - 1, 2**32, 2**33 + 5, 2**40, -(2**63)]
REAL = [5.7, -1.5, 1e20, 1e39, 1e300, -1e300, math.nan, math.inf, -math.inf]
BEYOND = [2**63, 2**64]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


def type_of(lib, dtype):
    return getattr(lib.types, {"float32": "FLOAT"}.get(dtype, dtype.upper()))


@pytest.mark.parametrize("dtype", TYPES)
def test_fill_values(dtype):
    values = WHOLE + REAL + BEYOND

    def graph(lib, x):
        outputs = []
        for v in values:
            outputs += [
                lib.fn.pad(x, fill_value=v, axes=(0, 1), shape=(3, 3)),
                lib.fn.crop(x, crop=(3, 3), out_of_bounds_policy="pad", fill_values=v),
                lib.fn.slice(
                    x, start=(1, 1), shape=(2, 2), out_of_bounds_policy="pad", fill_values=(v, 1)
                ),
                lib.fn.erase(x, anchor=(1, 1), shape=(1, 1), axes=(0, 1), fill_value=v),
            ]
            if dtype != "float16":
                kind = type_of(lib, dtype)
                outputs += [
                    lib.fn.one_hot(
                        np.int32([1]), num_classes=3, on_value=v, off_value=0, dtype=kind
                    ),
                    lib.fn.noise.salt_and_pepper(x, prob=1, salt_val=v, pepper_val=v),
                ]
            if dtype in ("uint8", "float32"):
                outputs.append(lib.fn.water(x, fill_value=v, ampl_x=9.0, ampl_y=9.0))
        return tuple(outputs)

    exact(graph, [np.ones((2, 2, 2), dtype)], layouts=("HWC",))


def test_fill_values_of_a_tensor():
    values = [np.float32(v) for v in (-1, 300, 2**31, math.nan, math.inf)]
    for dtype in ("uint8", "int32", "uint64"):
        exact(
            lambda lib, x, v: (
                lib.fn.pad(x, fill_value=v, axes=(0,), shape=(3,)),
                lib.fn.erase(x, anchor=[1.0], shape=[1.0], axes=[0], fill_value=v),
                lib.fn.noise.salt_and_pepper(x, prob=1, salt_val=v, pepper_val=v),
            ),
            [np.ones((2, 2), dtype)] * len(values),
            values,
        )


def test_canvases():
    values = WHOLE[:-1]
    exact(
        lambda lib, x: tuple(lib.fn.paste(x, fill_value=[v, 1, 2], ratio=2.0) for v in values),
        [np.ones((2, 2, 3), np.uint8)],
        layouts=("HWC",),
    )


@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
def test_constants(dtype):
    def graph(lib, x):
        kind = type_of(lib, dtype)
        outputs = [lib.fn.constant(fdata=v, dtype=kind) for v in REAL]
        for v in WHOLE + REAL:
            outputs += [
                lib.types.Constant([v], dtype=kind, device="cpu"),
                lib.types.Constant(v, dtype=kind, shape=(2,)),
                lib.fn.full(v, shape=(2,)),
                lib.types.Constant([v, 1], device="cpu"),
            ]
            if not (dtype == "uint64" and isinstance(v, float)):
                outputs.append(lib.fn.full_like(x, v))
        for v in WHOLE:
            outputs.append(lib.fn.constant(idata=v, dtype=kind))
        return tuple(outputs)

    exact(graph, [np.ones(2, dtype)])


def test_arithmetic():
    exact(
        lambda lib, x: (*(x * v for v in REAL), *(x + (v, 1) for v in WHOLE + REAL)),  # noqa: RUF005
        [np.int32([1, 2])],
    )

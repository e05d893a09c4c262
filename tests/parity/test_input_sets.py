"""Several input sets of one random operator are treated alike: all draw the same numbers."""

from __future__ import annotations

import warnings

import numpy as np
import nvidia.dali.ops  # noqa: F401
import pytest

import headrace.ops  # noqa: F401
from tests.parity.support import LIBRARIES
from tests.support.drawing import BATCH, draw_twice, drawing

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
OTHER_NUMBERS = ("noise.shot", "segmentation.")
"""Operators that draw the numbers of other streams than DALI's."""


def drawn(lib, name, classes=False, **settings):
    """Of each output, the samples of both sets, of two iterations."""
    pipe = lib.Pipeline(BATCH, 2, None, seed=7, **settings)
    with warnings.catch_warnings(record=True), pipe:  # of old names
        outputs = draw_twice(lib, name, classes=classes)
        pipe.set_outputs(*(node for pair in outputs for node in pair))
    pipe.build()
    batches = [pipe.run() for _ in range(2)]
    samples = [
        [np.array(batch[k].at(i)) for batch in batches for i in range(BATCH)]
        for k in range(2 * len(outputs))
    ]
    return list(zip(samples[::2], samples[1::2], strict=True))


def assert_same(pairs):
    for first, second in pairs:
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)
    again = [both for first, _ in pairs for both in zip(first[:BATCH], first[BATCH:], strict=True)]
    assert not all(np.array_equal(one, later) for one, later in again)


# DALI has `jitter` on the GPU only.
@pytest.mark.parametrize("name", sorted({*drawing()} - {"jitter"}))
def test_sets_of_one_call_draw_alike(name):
    theirs = drawn(LIBRARIES["dali"], name)
    assert_same(theirs)
    lib = LIBRARIES["headrace"]
    ours = drawn(lib, name)
    assert_same(ours)
    assert_same(drawn(lib, name, classes=True))
    if name.startswith(OTHER_NUMBERS):
        return
    for own, expected in zip(ours, theirs, strict=True):
        for one, other in zip(own[0], expected[0], strict=True):
            atol = 1 if one.dtype == np.uint8 and one.ndim == 3 else 1e-5
            np.testing.assert_allclose(one.astype(float), other.astype(float), rtol=1e-5, atol=atol)


ORDERS = {
    "as written": lambda sets, behind: [*sets, behind],
    "reversed": lambda sets, behind: [sets[1], sets[0], behind],
    "the second alone": lambda sets, behind: [sets[1], behind],
    "behind another": lambda sets, behind: [behind, sets[1], sets[0]],
    "around another": lambda sets, behind: [sets[1], behind, sets[0]],
}


@pytest.mark.parametrize("order", ORDERS)
def test_numbers_do_not_shift(order):
    """Each set counts among the operators that get a seed, in the order in which they run."""

    def values(lib):
        pipe = lib.Pipeline(BATCH, 2, None, seed=7)
        with pipe:
            uniform = lib.fn.random.uniform
            like = [lib.fn.constant(fdata=[0.0, 0.0]) for _ in range(2)]
            pipe.set_outputs(*ORDERS[order](uniform(like), uniform(shape=(2,))))
        pipe.build()
        return [[np.array(output.at(i)) for i in range(BATCH)] for output in pipe.run()]

    ours = values(LIBRARIES["headrace"])
    np.testing.assert_array_equal(ours, values(LIBRARIES["dali"]))


def test_calls_of_one_instance_draw_apart():
    def values(lib):
        pipe = lib.Pipeline(BATCH, 2, None, seed=7)
        with pipe:
            uniform = lib.ops.random.Uniform()
            like = [[lib.fn.constant(fdata=[0.0, 0.0]) for _ in range(2)] for _ in range(2)]
            pipe.set_outputs(*uniform(like[0]), *uniform(like[1]))
        pipe.build()
        return [[np.array(output.at(i)) for i in range(BATCH)] for output in pipe.run()]

    ours = values(LIBRARIES["headrace"])
    np.testing.assert_array_equal(ours, values(LIBRARIES["dali"]))
    assert not np.array_equal(ours[0], ours[2])

"""Several input sets of one random operator are treated alike on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import headrace
from tests.support.drawing import BATCH, draw_twice, drawing

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("name", drawing("gpu"))
def test_sets_of_one_call_draw_alike(name):
    pipe = headrace.Pipeline(BATCH, 2, 0, seed=7)
    with pipe:
        outputs = draw_twice(headrace, name, device="gpu")
        pipe.set_outputs(*(node for pair in outputs for node in pair))
    found = [[output.as_cpu() for output in pipe.run()] for _ in range(2)]
    for first, second in zip(found[0][::2], found[0][1::2], strict=True):
        for i in range(BATCH):
            np.testing.assert_array_equal(first.at(i), second.at(i))
    assert not np.array_equal(found[0][0].at(0), found[1][0].at(0))

"""`fn.copy` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_parity


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64", "bool", "int64"])
@pytest.mark.parametrize(("shape", "layout"), [((4, 5, 3), "HWC"), ((0, 3), ""), ((), "")])
def test_copies(shape, layout, dtype):
    data = (np.arange(np.prod(shape, dtype=int)) % 3).astype(dtype).reshape(shape)
    assert_parity(lambda lib, x: lib.fn.copy(x), [data, data], layouts=layout, max_levels=0)


def test_copies_of_windows():
    data = [np.arange(60, dtype=np.uint8).reshape(4, 5, 3)]
    assert_parity(
        lambda lib, x: (
            lib.fn.copy(lib.fn.crop(x, crop=(2, 3))),
            lib.fn.copy(lib.fn.flip(x, horizontal=0, vertical=1)),
        ),
        data,
        layouts="HWC",
        max_levels=0,
    )

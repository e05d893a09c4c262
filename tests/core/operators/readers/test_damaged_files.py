"""Thousands of damaged containers: each is read right, or refused with an error that names it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from headrace import Pipeline, fn
from headrace.errors import HeadraceError
from tests.support.fuzz import FILES, outcomes


def batch_of(reader, **args):
    """Samples of the first batch, as lists of arrays."""
    pipe = Pipeline(4, 1, None, prefetch_queue_depth=1)
    with pipe:
        found = reader(**args)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else (found,)))
    return [list(map(np.array, out)) for out in pipe.run()]


@FILES
def test_arrays(tmp_path, count):
    path = tmp_path / "a.npy"
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    np.save(path, array)
    seen = Counter()
    for _mutant, found in outcomes(
        path,
        path.read_bytes(),
        count,
        lambda: batch_of(fn.readers.numpy, files=[str(path)])[0][0],
        hot=128,
    ):
        seen[type(found)] += 1
        if not isinstance(found, HeadraceError):
            np.testing.assert_array_equal(found, np.load(path))
    assert len(seen) > 1

"""Every operator in both libraries' dynamic modes: types, layouts, shapes, values."""

from __future__ import annotations

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import nvidia.dali.types
import pytest

import headrace.experimental.dynamic as ndd
import headrace.types
from tests.cases.table import CASES
from tests.dynamic.test_operators import as_array, dynamic_call

COMPARED = [c for c in CASES if c.dali]
LOSSY = ("decoders.", "resize", "rotate", "gaussian_blur", "brightness", "contrast")
assert as_array


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """`dump_image` writes into the current one."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", COMPARED, ids=str)
def test_results_are_those_of_dali(case):
    expected = dynamic_call(case, dali, nvidia.dali.types)
    actual = dynamic_call(case, ndd, headrace.types)
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected, strict=True):
        assert type(got).__name__ == type(want).__name__
        assert str(got.dtype) == str(want.dtype)
        assert got.layout == want.layout
        assert got.shape == want.shape
        assert got.ndim == want.ndim
        assert got.batch_size == want.batch_size
        for a, b in zip(got.tensors, want.tensors, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            if a.dtype.kind == "f":
                scale = float(np.max(np.abs(b), initial=1.0))
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * scale)
            else:
                levels = 3 if case.name.startswith(LOSSY) else 0
                difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
                assert np.mean(difference > levels) < 0.02


def test_operators_as_classes():
    """`_ops` is DALI's private module; programs and tests reach for its classes all the same."""
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for lib in (dali, ndd):
        rng, again = lib.random.RNG(seed=3), lib.random.RNG(seed=3)
        uniform = lib._ops.random.Uniform(device="cpu", max_batch_size=2, seed=8)
        drawn = uniform(batch_size=2, range=[3, 4], shape=[5], rng=rng)
        expected = lib.random.uniform(batch_size=2, range=[3, 4], shape=[5], rng=again)
        np.testing.assert_array_equal(lib.as_tensor(drawn), lib.as_tensor(expected))
        assert isinstance(uniform(range=[3, 4]), lib.Tensor)
        flipped = lib._ops.Flip(horizontal=0)(lib.tensor(image, layout="HWC"))
        np.testing.assert_array_equal(flipped, image)
        with pytest.raises((TypeError, RuntimeError)):
            lib._ops.Flip(horizontall=0)(lib.tensor(image, layout="HWC")).evaluate()
        for each in (*lib._ops._all_functions, *lib._ops._all_ops):
            assert not each._schema.IsInternal()
        assert issubclass(lib.readers.File, lib._ops.Reader)
        public = [n for n in dir(lib.readers.File) if not n.startswith("_")]
        assert public == ["get_metadata", "get_state", "next_epoch", "set_state"]


def test_what_operators_as_classes_refuse():
    made = ndd._ops.random.Uniform(2, "draw")
    with pytest.raises(ValueError, match="'draw'"):
        made(batch_size=3)
    first, second = (ndd._ops.random.Normal(seed=5)(shape=[4]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(2, np.float32), np.ones((2, 2), np.float32)])
def test_several_numbers_where_there_is_one_for_each_sample(value):
    image = np.zeros((4, 4, 3), np.uint8)
    for lib in dali, ndd:
        for call in (
            lambda lib=lib: lib.rotate(lib.tensor(image, layout="HWC"), angle=value),
            lambda lib=lib: lib.random.beta(alpha=value),
        ):
            with pytest.raises(RuntimeError):
                call().evaluate()

"""`fn.reductions` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.operators.support import reduction
from headrace.types import DALIDataType
from tests.parity.support import assert_both_raise, assert_parity, run_graph

OPERATORS = ("max", "min", "sum", "mean", "mean_square", "rms")
WITH_DTYPE = OPERATORS[2:]
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")
BATCHES = {
    "HWC": [(7, 9, 3), (1, 1, 3), (40, 33, 3)],
    "FHWC": [(2, 9, 11, 3), (3, 4, 5, 2)],
    "HW": [(60, 80), (3, 2000)],
    "": [(700,), (3,)],
}


def numbers(shape, dtype):
    rng = np.random.default_rng(len(shape))
    if dtype == "float32":
        return (rng.standard_normal(shape) * 50).astype(dtype)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -2000), min(limits.max, 2000)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def axes_of(ndim):
    found = [None, [], [0], [-1]]
    found += [[0, 1], [0, -1]] if ndim > 1 else []
    return found + ([[0, 2], [-3, -1]] if ndim > 2 else [])


@pytest.mark.sweep
@pytest.mark.parametrize("layout", BATCHES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_axes_types_and_layouts(layout, dtype, keep_dims):
    batch = [numbers(shape, dtype) for shape in BATCHES[layout]]

    def graph(lib, data):
        reductions, found = lib.fn.reductions, []
        for axes in axes_of(batch[0].ndim):
            given = {} if axes is None else {"axes": axes}
            found += [getattr(reductions, n)(data, keep_dims=keep_dims, **given) for n in OPERATORS]
            mean = reductions.mean(data, **given)
            found.append(reductions.variance(data, mean, keep_dims=keep_dims, **given))
            found.append(reductions.std_dev(data, mean, keep_dims=keep_dims, **given))
        return found

    assert_parity(graph, batch, layouts=layout, max_levels=0, relative=1e-5, absolute=1e-6)


@pytest.mark.in_threads  # blocks are small in this process only
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_samples_of_one_shape_are_reduced_in_blocks(dtype, monkeypatch):
    batch = np.stack([np.roll(numbers((5, 6, 3), dtype), k) for k in range(8)])
    monkeypatch.setattr(reduction, "_BLOCK_BYTES", 3 * batch[0].nbytes)

    def graph(lib):
        data = lib.fn.external_source(source=lambda: batch, layout="HWC")  # one array, not a list
        reductions, found = lib.fn.reductions, []
        for axes in axes_of(3)[1:]:
            found += [getattr(reductions, n)(data, axes=axes) for n in OPERATORS]
            found.append(reductions.std_dev(data, reductions.mean(data, axes=axes), axes=axes))
        return found

    # A thread takes one sample at a time until it knows how long they take.
    options = {"batch_size": 8, "num_threads": 1, "iterations": 4}
    assert_parity(graph, **options, max_levels=0, relative=1e-5, absolute=1e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_types_of_outputs(dtype):
    data = [(np.arange(24).reshape(2, 3, 4) % 10).astype(dtype)]
    for name in WITH_DTYPE:
        allowed = []
        for to in list(DALIDataType)[1:13]:

            def graph(lib, x, name=name, to=to):
                dtype = lib.types.DALIDataType(int(to))
                return getattr(lib.fn.reductions, name)(x, axes=[1], dtype=dtype)

            try:
                run_graph("headrace", graph, data)
            except TypeError:
                with pytest.raises(RuntimeError):
                    run_graph("dali", graph, data)
            else:
                allowed.append(graph)

        def together(lib, x, graphs=tuple(allowed)):
            return [graph(lib, x) for graph in graphs]

        assert allowed
        assert_parity(together, data, max_levels=0)


@pytest.mark.parametrize("axes", [None, 0, 1])
def test_empty_samples(axes):
    given = {} if axes is None else {"axes": axes}

    def graph(lib, data):
        return [getattr(lib.fn.reductions, name)(data, **given) for name in OPERATORS]

    assert_parity(graph, [np.zeros((0, 3), np.float32), np.zeros((2, 3), np.float32)])
    assert_parity(lambda lib, x: lib.fn.reductions.max(x, **given), [np.zeros((0, 3), np.int16)])


def test_numbers_that_are_none():
    data = [[-np.inf], [np.inf], [np.nan], [1, np.nan, np.nan], [np.nan, 2]]

    def graph(lib, x):
        return [getattr(lib.fn.reductions, name)(x) for name in OPERATORS]

    assert_parity(graph, [np.float32(each) for each in data])


def test_sums_wrap_around():
    for dtype, values in (("uint8", [200, 100]), ("int32", [2**31 - 1] * 2)):

        def graph(lib, x, dtype=dtype):
            return lib.fn.reductions.sum(x, dtype=getattr(lib.types, dtype.upper()))

        assert_parity(graph, [np.array(values, dtype)], max_levels=0)
    assert_parity(
        lambda lib, x: lib.fn.reductions.sum(x), [np.full(2, 2**63 - 1, np.int64)], max_levels=0
    )


@pytest.mark.parametrize("ddof", [-1, 1, 3, 6, 7])
def test_means_and_degrees_of_freedom(ddof):
    def graph(lib, x, mean):
        reductions = lib.fn.reductions
        own = reductions.mean(x, axes=1, keep_dims=True)
        return (
            reductions.variance(x, 1.5, ddof=ddof),
            reductions.std_dev(x, own, axes=1, ddof=ddof),
            reductions.variance(x, mean, axes=0, ddof=ddof),
        )

    data = [np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((2, 3), np.int32)]
    means = [np.float32([k, 2, 3]) for k in range(2)]
    assert_parity(graph, data, means, layouts=("HW", ""))


def test_names_of_axes_and_scalars():
    data = [np.arange(6).reshape(2, 3), np.arange(4).reshape(2, 2)]
    for given in ({"axis_names": ""}, {"axis_names": "W"}, {"axis_names": "WH", "keep_dims": True}):
        assert_parity(lambda lib, x, g=given: lib.fn.reductions.sum(x, **g), data, layouts="HW")
    assert_parity(
        lambda lib, x: (
            lib.fn.reductions.sum(x),
            lib.fn.reductions.mean(x, axes=[]),
            lib.fn.reductions.std_dev(x, lib.fn.reductions.mean(x)),
        ),
        [np.int32(3), np.int32(5)],
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"axes": [1, 1]}, ValueError),
        ({"axes": [2]}, IndexError),
        ({"axes": [0, -2]}, ValueError),
        ({"axis_names": "C"}, RuntimeError),
        ({"axis_names": "HH"}, RuntimeError),
        ({"axes": [0], "axis_names": "W"}, RuntimeError),
    ],
)
def test_wrong_axes(given, kind):
    def graph(lib, x):
        return lib.fn.reductions.sum(x, **given)

    data = [np.zeros((2, 3), np.float32)]
    assert_both_raise(graph, data, layouts="HW")
    for library in ("dali", "headrace"):
        with pytest.raises(kind):
            run_graph(library, graph, data, layouts="HW")


@pytest.mark.parametrize("dtype", ["float16", "float64", "bool"])
def test_types_that_are_not_taken(dtype):
    for name in OPERATORS:
        assert_both_raise(
            lambda lib, x, name=name: getattr(lib.fn.reductions, name)(x), [np.zeros(3, dtype)]
        )


def test_means_of_another_type():
    data = [np.arange(6, dtype=np.int32)]
    assert_both_raise(lambda lib, x: lib.fn.reductions.variance(x, lib.fn.reductions.max(x)), data)
    assert_both_raise(lambda lib, x: lib.fn.reductions.std_dev(x), data)

"""`fn.permute_batch` and `fn.batch_permutation` against DALI."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.parity.outcomes import DALI, assert_same, outcome
from tests.parity.support import LIBRARIES, assert_both_raise, assert_parity, run_graph

BATCH = [np.full((k + 1, 2), k, np.int32) for k in range(4)]


def indices(*each, dtype=np.int32):
    return [np.array(index, dtype) for index in each]


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [0, 1, 2, 3], [3, 3, 3, 0]])
def test_orders(order):
    def graph(lib, x, each):
        return (
            lib.fn.permute_batch(x, indices=order),
            lib.fn.permute_batch(x * 2, indices=order),
            lib.fn.permute_batch(x, indices=each),
            lib.fn.permute_batch(x + 1, indices=each) * 3,
        )

    assert_parity(graph, BATCH, indices(*order), layouts=["HW", ""])
    dense = [np.full((2, 2), k, np.uint8) for k in range(4)]
    assert_parity(graph, dense, indices(*order), iterations=3)


def test_sources_change_places(tmp_path):
    for name in "abcd":
        (tmp_path / name).write_bytes(name.encode())

    def graph(lib):
        data, _ = lib.fn.readers.file(files=[str(tmp_path / name) for name in "abcd"])
        moved = lib.fn.permute_batch(data, indices=[2, 2, 0, 1])
        return moved, lib.fn.get_property(moved, key="source_info"), moved + 1

    assert_parity(graph, batch_size=4)


@pytest.mark.parametrize(
    ("order", "match"),
    [
        ([0, 1, 2], "batch size"),
        ([0, 1, 2, 3, 0], "batch size"),
        (2, "batch size"),
        ([], "batch size"),
        ([0, 1, 2, 4], "out of range"),
        ([0, 1, 2, -1], "out of range"),
    ],
)
def test_wrong_orders(order, match):
    assert_both_raise(lambda lib, x: lib.fn.permute_batch(x, indices=order), BATCH, match=match)


def test_wrong_orders_a_sample():
    for each, match in (
        (indices([1], [0], [3], [2]), "without axes"),
        (indices([1, 2], [1, 2], [1, 2], [1, 2]), "without axes"),
        (indices(1, 0, 4, 2), "out of range"),
        (indices(1, 0, -2, 2), "out of range"),
        (indices(1, 0, 2, 3, dtype=np.float32), "int"),
    ):
        assert_both_raise(
            lambda lib, x, i: lib.fn.permute_batch(x, indices=i), BATCH, each, match=match
        )


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_what_is_drawn(repeated, distinct):
    """The same kinds of numbers in both, all of them as often as the others."""
    drawn = {}
    for library in LIBRARIES:
        batches = run_graph(
            library,
            lambda lib: lib.fn.batch_permutation(
                allow_repetitions=repeated, no_fixed_points=distinct, seed=5
            ),
            batch_size=3,
            iterations=600,
        )
        drawn[library] = Counter(tuple(int(s) for s in batch[0].samples) for batch in batches)
    assert drawn["headrace"].keys() == drawn["dali"].keys()
    expected = 600 / len(drawn["dali"])
    for counts in drawn.values():
        assert all(abs(n - expected) < 6 * expected**0.5 for n in counts.values())
    sizes = {1: {(0,)}}
    if distinct:
        sizes[2] = {(1, 0)}
    for size, allowed in sizes.items():
        (batch,) = run_graph(
            "headrace",
            lambda lib: lib.fn.batch_permutation(
                allow_repetitions=repeated, no_fixed_points=distinct
            ),
            batch_size=size,
        )
        assert tuple(int(s) for s in batch[0].samples) in allowed


def test_types_of_what_is_drawn():
    outputs = [run_graph(lib, lambda lib: lib.fn.batch_permutation())[0][0] for lib in LIBRARIES]
    assert len({(o.dtype, o.layout, o.samples[0].shape) for o in outputs}) == 1


@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_a_branch_permutes_its_own_samples(count):
    def scenario(lib):
        def definition():
            found = lib.fn.external_source(lambda info: np.int32(info.idx_in_batch), batch=False)
            if found < count:
                found = lib.fn.batch_permutation()
            return found

        settings = {"batch_size": 8, "num_threads": 1, "device_id": None}
        pipe = lib.pipeline_def(definition, enable_conditionals=True, **settings)()
        batches = [pipe.run()[0].as_array() for _ in range(3)]
        return [[*sorted(each[:count].tolist()), *each[count:].tolist()] for each in batches]

    assert outcome(DALI, scenario).value == [[*range(8)]] * 3
    assert_same(scenario)

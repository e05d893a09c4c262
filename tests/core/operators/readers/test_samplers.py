"""Orders of samplers: permutations, draws by weight and by class."""

from __future__ import annotations

from collections import Counter
from itertools import chain, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import samplers
from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.graph.plain_values import from_plain, to_plain
from headrace.operators.readers.given_orders import identity_of, orders_of
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.order import ReadingOrder


def index(size, *, per_file=0, classes=0):
    files = np.arange(size) // per_file if per_file else None
    made = FileIndex([""] * size, files=files)
    if classes:
        made.labels = np.arange(size) % classes
    return made


def epoch(sampler, number, of):
    orders = orders_of(sampler, of)
    return orders.at(number)[0 : orders.size].tolist()


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 50), st.integers(-3, 3))
def test_shuffled_epochs_are_permutations(size, per_file, window, seed):
    data = index(size, per_file=per_file)
    for sampler in (samplers.Shuffled(seed=seed), samplers.Shuffled(window, seed=seed)):
        found = [epoch(sampler, k, data) for k in range(3)]
        assert all(sorted(each) == list(range(size)) for each in found)
        orders = orders_of(sampler, data)
        parts = [orders.at(2)[k : k + 7].tolist() for k in range(0, size, 7)]
        assert list(chain(*parts)) == found[2]  # whatever is asked for, and in whatever order


def test_windows_keep_to_few_files():
    """A window of samples lies in as many files as it takes; and files come in another order."""
    data = index(1000, per_file=20)
    firsts = []
    for number in range(3):
        found = np.array(epoch(samplers.Shuffled(60), number, data)) // 20
        assert all(len(set(found[k : k + 60])) == 3 for k in range(0, 960, 60))
        assert not np.array_equal(found[:20], np.full(20, found[0]))
        firsts.append(tuple(sorted(set(found[:60]))))
    assert len(set(firsts)) == 3


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_permutation_comes_equally_often(size):
    orders = orders_of(samplers.Shuffled(), index(size))
    kinds = list(permutations(range(size)))
    found = Counter(tuple(orders.at(k)[0:size].tolist()) for k in range(100 * len(kinds)))
    assert all(abs(found[each] - 100) < 50 for each in kinds)


def test_a_thousand_million_samples():
    """Nothing of the size is kept: any position is there at once, also after a checkpoint."""
    size = 10**9
    orders = orders_of(samplers.Shuffled(seed=2), Index(size))
    order = ReadingOrder(1, epochs=orders, num_shards=8, shard_id=5)
    first = order.draw(1000)
    assert len(set(first)) == 1000
    assert all(np.histogram(first, 10, (0, size))[0] > 50)
    later = ReadingOrder(1, epochs=orders, num_shards=3, shard_id=2)
    later.deal({"shards": 8, "shard": 5, "state": order.state()})
    assert later.rest_size() == size - 8000
    assert not set(later.draw(1000)) & set(first)


@pytest.mark.parametrize("sticks", [False, True])
def test_shards_of_a_shuffled_order_jump_to_the_same_epoch(sticks):
    """Else a sample would come from two of them, as epochs differ in order."""
    orders = [
        ReadingOrder(
            1,
            epochs=orders_of(samplers.Shuffled(), index(11)),
            num_shards=2,
            shard_id=k,
            stick_to_shard=sticks,
        )
        for k in range(2)
    ]
    for order in orders:
        order.draw(6)  # all of a shard, and one more than all of the other
        order.next_epoch()
    assert len({order.epoch for order in orders}) == 1
    sizes = [(11 * (k + 1) // 2) - 11 * k // 2 for k in (order.shard for order in orders)]
    found = [e for order, size in zip(orders, sizes, strict=True) for e in order.draw(size)]
    assert sorted(found) == list(range(11))


def test_weights():
    weights = np.array([0, 1, 2, 3, 0, 4])
    data = index(6)
    sampler = samplers.Weighted(weights, size=20_000)
    counts = np.bincount(epoch(sampler, 1, data), minlength=6)
    assert np.abs(counts / 20_000 - weights / 10).max() < 0.02
    assert epoch(sampler, 1, data) != epoch(sampler, 2, data)
    # Without replacement the first ones are drawn by weight, and none comes twice.
    firsts = Counter()
    orders = orders_of(samplers.Weighted(weights, replacement=False, size=3), data)
    for number in range(4000):
        found = orders.at(number)[0:3].tolist()
        assert len(set(found)) == 3
        firsts[found[0]] += 1
    assert np.abs([firsts[k] / 4000 - w / 10 for k, w in enumerate(weights)]).max() < 0.03


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 80))
def test_classes_come_equally_often(labels, size):
    data = index(len(labels))
    data.labels = np.array(labels)
    drawn = []
    for number in range(4):
        found = epoch(samplers.Balanced(size=size), number, data)
        counts = Counter(labels[k] for k in found)
        per_class = [counts[label] for label in set(labels)]
        assert max(per_class) - min(per_class) <= 1
        drawn += found
    # Over the epochs, a sample of a class comes once more than another one at most; those of an
    # epoch are not in the order of the turns, so that only their number is told.
    for label in set(labels):
        own = [k for k, each in enumerate(labels) if each == label]
        times = Counter(k for k in drawn if labels[k] == label)
        assert max(times[k] for k in own) - min(times[k] for k in own) <= 1


def test_samplers_are_told_apart_and_serialized():
    made = [
        samplers.Shuffled(),
        samplers.Shuffled(seed=1),
        samplers.Shuffled(5),
        samplers.Weighted([1, 2]),
        samplers.Weighted([2, 1]),
        samplers.Weighted([1, 2], replacement=False),
        samplers.Balanced(),
        samplers.Balanced([1, 2]),
        samplers.Balanced(size=4),
        np.array([1, 2]),
        np.array([2, 1]),
    ]
    told = [str(identity_of(each)) for each in made]
    assert len(set(told)) == len(told)
    assert [str(identity_of(from_plain(to_plain(each)))) for each in made] == told


def test_a_bad_sample_is_replaced_by_one_of_the_sampler():
    assert orders_of(np.array([7, 3, 5]), index(9)).before(5) == 3
    assert orders_of(np.array([7, 3, 5]), index(9)).before(3) == 7
    assert orders_of(samplers.Weighted([0, 1, 0, 1, 0, 0]), index(6)).before(1) == 3


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: samplers.Shuffled(0), "`window` of `samplers.Shuffled` is 0"),
        (lambda: samplers.Shuffled(seed="1"), "`seed` of `samplers.Shuffled` is '1'"),
        (lambda: samplers.Weighted([1, -1]), "-1 for sample 1"),
        (lambda: samplers.Weighted([np.nan]), "nan for sample 0"),
        (lambda: samplers.Weighted([0, 0]), "All `weights`"),
        (lambda: samplers.Weighted([[1]]), r"shape \(1, 1\)"),
        (lambda: samplers.Weighted([1, 0], replacement=False), "smaller `size`"),
        (lambda: samplers.Balanced([0.5]), "`labels` of `samplers.Balanced` are float64"),
        (lambda: samplers.Balanced(size=0), "`size` of `samplers.Balanced` is 0"),
        (lambda: epoch(samplers.Balanced(), 0, index(3)), "give `labels`"),
        (lambda: epoch(samplers.Balanced([1]), 0, index(3)), "1 `labels`, and .* 3 samples"),
        (lambda: epoch(samplers.Weighted([1]), 0, index(3)), "1 `weights`, and .* 3 samples"),
    ],
)
def test_errors(make, words):
    with pytest.raises((ArgumentValueError, ArgumentTypeError), match=words):
        make()

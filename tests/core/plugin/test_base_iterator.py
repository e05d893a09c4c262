"""The base of all iterators: DALI's epochs, and what goes beyond them."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownLengthError, UsageError
from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.tensors import TensorListCPU
from headrace.types import PipelineAPIType
from tests.support.counting_pipeline import CountingPipeline, NumberIterator

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL

# Printed by DALI 2.4.0: samples 0..N-1, S shards, batches of B; last-batch policy; number of
# batches of the first epoch; three epochs in a row. One word is a step, with the samples of one
# pipeline after the other; "-" is none. "alone" is the pipeline of shard 1 by itself, "size" an
# iterator with `size=N` in place of `reader_name`.
DALI = (Path(__file__).parents[2] / "data/dali_epochs.txt").read_text()

# DALI gives the padding that a dropped batch leaves over as the only batch of the next epoch. Here
# it is dropped as well.
BETTER = """
N=10 S=3 B=3 pad | DROP | 1 | 012/345/678 | 345/678/012 | 678/012/345
N=10 S=3 B=3 stick pad | DROP | 1 | 012/345/678 | 012/345/678 | 012/345/678
N=9 S=2 B=4 pad | DROP | 1 | 0123/4567 | 4567/0123 | 0123/4567
"""


def rows(table):
    found = []
    for line in table.strip().splitlines():
        case, policy, length, *epochs = (cell.strip() for cell in line.split("|"))
        found.append(pytest.param(case, policy, int(length), epochs, id=f"{case} {policy}"))
    return found


def iterator(case, policy, **arguments):
    words = case.split()
    size, shards, batch_size = (int(word[2:]) for word in words[:3])
    pipelines = [
        CountingPipeline(
            size,
            batch_size,
            num_shards=shards,
            shard_id=k,
            stick_to_shard="stick" in words,
            pad_last_batch="pad" in words,
        )
        for k in ([1] if "alone" in words else range(shards))
    ]
    if "size" in words:
        arguments |= {"size": size, "last_batch_padded": "pad" in words}
        with pytest.warns(Warning, match="reader_name"):
            return NumberIterator(pipelines, last_batch_policy=policy, **arguments)
    return NumberIterator(pipelines, reader_name="reader", last_batch_policy=policy, **arguments)


def shown(step):
    return "/".join("".join(map(str, numbers)) or "-" for numbers in step)


def epoch(it):
    return " ".join(map(shown, it))


@pytest.mark.parametrize(("case", "policy", "length", "epochs"), rows(f"{DALI}{BETTER.lstrip()}"))
def test_epochs(case, policy, length, epochs):
    for way, prepare in itertools.product(("reset", "loop", "auto_reset"), (True, False)):
        check_epochs(case, policy, length, epochs, prepare, way)


def check_epochs(case, policy, length, epochs, prepare, way):
    it = iterator(
        case,
        LastBatchPolicy[policy],
        prepare_first_batch=prepare,
        auto_reset=way == "auto_reset",
    )
    assert len(it) == length
    for expected in epochs:
        assert len(it) == len(expected.split())
        if way == "loop":
            assert epoch(it) == expected
            continue
        steps = []
        while (step := next(it, None)) is not None:
            steps.append(shown(step))
            assert len(it) == len(expected.split())
        assert " ".join(steps) == expected
        if way == "reset":
            with pytest.raises(StopIteration):
                it.next()
            it.reset()
            it.reset()  # has nothing to do


@pytest.mark.parametrize("case", ["N=7 S=1 B=8", "N=7 S=1 B=8 pad"])
def test_no_batch_at_all(case):
    with pytest.raises(UsageError, match="there is no data in the pipeline"):
        iterator(case, DROP)
    it = iterator(case, DROP, prepare_first_batch=False)
    assert len(it) == 0
    assert list(it) == []


# -- beyond DALI ---------------------------------------------------------------------------------


CASES = st.tuples(
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 7),
    st.sampled_from([FILL, DROP, PARTIAL]),
    st.sampled_from(["", " pad", " stick", " stick pad"]),
)


def made(case):
    size, shards, batch_size, policy, options = case
    name = f"N={size} S={min(size, shards)} B={batch_size}{options}"
    return iterator(name, policy, prepare_first_batch=False), size


@given(CASES, st.integers(1, 5), st.integers(0, 12))
def test_break_begins_a_fresh_epoch(case, stop, before):
    """After a break, the next loop shows every sample of every shard, from its beginning."""
    it, size = made(case)
    for _ in range(before):
        if next(it, None) is None:
            it.reset()
    it.reset()
    broken = False
    for number, _ in enumerate(it, 1):
        if number == stop and it._epochs.steps_left() != 0:
            broken = True
            break
    if not broken:
        return
    length = None
    steps = []
    for step in it:
        if length is None:
            length = len(it)
            firsts = [numbers[0] for numbers in step if len(numbers)]
            assert len(set(firsts)) == len(firsts)  # each pipeline reads another shard
        steps.append(step)
    assert len(steps) == (length or 0)
    policy = case[3]
    shown_samples = [n for step in steps for numbers in step for n in numbers]
    if policy is FILL:
        assert set(shown_samples) == set(range(size))
    elif policy is PARTIAL:
        assert sorted(shown_samples) == list(range(size))
    else:
        assert len(set(shown_samples)) == len(shown_samples)


@given(CASES, st.integers(0, 40))
def test_length_is_right_at_every_moment(case, start):
    it, _ = made(case)
    for _ in range(start):
        next(it, None)
    for _ in range(3):
        it.reset()
        expected = len(it)
        count = 0
        for _ in it:
            count += 1
            assert len(it) == expected
        assert count == expected
        following = len(it)
        it.reset()
        assert len(it) == following


def test_reset_in_the_middle_of_an_epoch():
    it = iterator("N=7 S=1 B=2", FILL)
    assert [shown(it.next()), shown(it.next())] == ["01", "23"]
    it.reset()
    it.reset()
    assert epoch(it) == "01 23 45 60"


def test_break_in_an_epoch_with_samples_read_ahead():
    it = iterator("N=7 S=1 B=2", FILL)
    assert epoch(it) == "01 23 45 60"
    for step in it:
        assert shown(step) == "12"
        break
    assert epoch(it) == "01 23 45 60"


def test_break_after_the_last_batch_is_an_end():
    it = iterator("N=7 S=1 B=2", FILL)
    steps = [shown(it.next()) for _ in range(len(it))]
    assert steps == ["01", "23", "45", "60"]
    assert epoch(it) == "12 34 56"


def test_shards_stay_apart_after_a_break():
    it = iterator("N=7 S=2 B=2", FILL)
    next(iter(it))
    assert epoch(it) == "34/01 56/23"


@pytest.mark.parametrize("auto_reset", [False, True])
@pytest.mark.parametrize("prepare", [False, True])
def test_a_loop_goes_on_behind_next(auto_reset, prepare):
    it = iterator("N=8 S=1 B=2", PARTIAL, auto_reset=auto_reset, prepare_first_batch=prepare)
    for _ in range(2):
        assert [shown(next(it)), shown(it.next())] == ["01", "23"]
        assert epoch(it) == "45 67"  # and now, a loop has begun
        assert epoch(it) == "01 23 45 67"
        it.reset()
    for taken in range(5):
        for _ in range(taken):
            next(it, None)
        whole = ["01", "23", "45", "67"]
        assert epoch(it) == " ".join(whole[taken % 4 :] if taken < 4 else whole)
        it.reset()
    assert shown(next(it)) == "01"
    for _ in it:
        break
    assert epoch(it) == "01 23 45 67"  # a loop that was left is an epoch


def test_first_batch_is_not_lost_by_iter():
    it = iterator("N=7 S=1 B=2", FILL)
    assert shown(next(iter(iter(it)))) == "01"


def test_peeking_does_not_shorten_the_epoch():
    it = iterator("N=6 S=1 B=2", FILL)
    next(iter(it))
    assert epoch(it) == "01 23 45"


def test_loops_of_one_batch_each_are_warned_of():
    it = iterator("N=6 S=1 B=2", FILL)
    assert [shown(next(iter(it))) for _ in range(3)] == ["01"] * 3
    with pytest.warns(UserWarning, match=r"first batch of the next epoch. Keep one iterator") as w:
        next(iter(it))
    assert w[0].filename == __file__
    for _ in range(5):  # once is enough
        next(iter(it))
    it = iterator("N=2 S=1 B=2", FILL)  # an epoch of one batch loses nothing
    assert [shown(next(iter(it))) for _ in range(9)] == ["01"] * 9


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("bad", [{3}, {0, 1, 2}, {6}, {5, 6}, {0, 6}, {2, 4, 5}])
@pytest.mark.parametrize("pad", [True, False])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_skipped_samples_leave_every_good_one_once(bad, pad, batch_size):
    pipeline = CountingPipeline(7, batch_size, bad=bad, pad_last_batch=pad)
    it = NumberIterator(pipeline, reader_name="reader", last_batch_policy=PARTIAL)
    first = [n for step in it for n in step[0]]
    assert sorted(first) == sorted(set(range(7)) - bad)
    if pad:
        assert sorted(n for step in it for n in step[0]) == sorted(first)
        assert len(it) == -(-7 // batch_size)


def test_skipped_samples_do_not_change_the_number_of_padded_batches():
    pipelines = [
        CountingPipeline(20, 2, bad=bad, pad_last_batch=True, num_shards=2, shard_id=k)
        for k, bad in enumerate([{1, 2, 3, 5}, ()])
    ]
    it = NumberIterator(pipelines, reader_name="reader", last_batch_policy=FILL)
    assert [len(list(it)) for _ in range(3)] == [5, 5, 5]


def test_failed_batch_is_left_out():
    class Failing(CountingPipeline):
        def share_outputs(self):
            outputs = super().share_outputs()
            if self.shared == 2:
                raise ValueError("bad luck")
            return outputs

    pipelines = [
        CountingPipeline(12, 2, num_shards=2, shard_id=0),
        Failing(12, 2, num_shards=2, shard_id=1),
    ]
    it = NumberIterator(pipelines, reader_name="reader")
    assert shown(next(it)) == "01/67"
    with pytest.raises(ValueError, match="bad luck"):
        next(it)
    assert shown(next(it)) == "45/1011"
    with pytest.raises(StopIteration):
        next(it)


# -- data that ends by itself --------------------------------------------------------------------


class EndingPipeline(CountingPipeline):
    """Gives batches of the sizes in `batches`, then ends until it is reset."""

    def __init__(self, batches, batch_size=4):
        super().__init__(100, batch_size, depth=2)
        self.batches = batches
        self.left = list(batches)
        self.resets = 0
        self.asked = 0

    def schedule_run(self):
        for _ in range(1 if self._started else self._depth):
            self.asked += 1
            if self.left:
                self._queue.append((None, self.order.draw(self.left.pop(0)), 0, None))
        self._started = True

    def _built(self):
        return SimpleNamespace(queues=SimpleNamespace(batches_of_epoch=lambda following: None))

    def reset(self):
        if not self.left and not self._queue:
            self.left = list(self.batches)
            self.resets += 1
            self._started = False

    def _restart_epoch(self):
        self._queue.clear()
        self.left = list(self.batches)
        self._started = False
        return {}


@pytest.mark.parametrize("size", [-1, -5])
def test_epoch_as_long_as_the_data(size):
    pipeline = EndingPipeline([4, 4, 3])
    it = NumberIterator(pipeline, size=size, last_batch_policy=DROP)
    assert it
    with pytest.raises(UnknownLengthError, match="`reader_name`"):
        len(it)
    for first in (0, 11, 22):
        steps = [step[0] for step in it]
        assert [len(step) for step in steps] == [4, 4, 3]
        assert steps[0][0] == first
        with pytest.raises(StopIteration):
            it.next()


def test_end_of_data_with_auto_reset():
    it = NumberIterator(EndingPipeline([4, 4]), auto_reset="yes")
    for _ in range(3):
        assert [len(step[0]) for step in (it.next(), it.next())] == [4, 4]
        with pytest.raises(StopIteration):
            it.next()


def test_data_that_ends_before_the_size():
    with pytest.warns(Warning, match="reader_name"):
        it = NumberIterator(EndingPipeline([4, 4]), size=100)
    assert [len(list(it)) for _ in range(3)] == [2, 2, 2]


def test_break_where_data_ends_by_itself():
    it = NumberIterator(EndingPipeline([4, 4, 4]))
    for _ in it:
        break
    assert len(list(it)) == 3


def test_how_much_is_prepared():
    pipeline = EndingPipeline([4] * 10)
    NumberIterator(pipeline, prepare_first_batch=False)
    assert pipeline.asked == 0
    it = NumberIterator(EndingPipeline([4] * 10))
    assert it._pipes[0].asked == 3
    pipeline = EndingPipeline([4] * 10)
    it = NumberIterator(pipeline, prepare_first_batch=False)
    it.next()
    assert pipeline.asked == 3


def test_batches_of_varying_size_need_an_open_end():
    with pytest.warns(Warning, match="reader_name"), pytest.raises(UsageError, match="3 samples"):
        NumberIterator(EndingPipeline([3, 4]), size=7)


# -- arguments -------------------------------------------------------------------------------------


def test_outputs_are_released():
    pipeline = CountingPipeline(6, 2)
    it = NumberIterator(pipeline, reader_name="reader")
    list(it)
    assert pipeline.released == pipeline.shared == 3


def test_iterators_take_pipelines_for_themselves():
    pipeline = CountingPipeline(6, 2)
    NumberIterator(pipeline, reader_name="reader")
    assert pipeline.api is PipelineAPIType.ITERATOR
    pipeline = CountingPipeline(6, 2)
    pipeline.api = PipelineAPIType.BASIC
    with pytest.raises(UsageError, match="Mixing"):
        NumberIterator(pipeline, reader_name="reader")


def test_size_is_truncated():
    with pytest.warns(Warning, match="reader_name"):
        it = NumberIterator(CountingPipeline(6, 2), size=5.9)
    assert it.size == it._size == 5
    assert it.batch_size == 2


@pytest.mark.parametrize(
    ("value", "resets"),
    [(False, False), (None, False), ("no", False), (True, True), ("yes", True)],
)
def test_auto_reset(value, resets):
    it = NumberIterator(CountingPipeline(4, 2), reader_name="reader", auto_reset=value)
    assert len(list(it)) == 2
    assert next(it, None) is None if not resets else shown(next(it)) == "01"


@pytest.mark.parametrize(("old", "policy"), [(True, FILL), (False, PARTIAL)])
def test_fill_last_batch_is_deprecated(old, policy):
    with pytest.warns(DeprecationWarning, match=policy.name):
        it = NumberIterator(
            CountingPipeline(7, 2),
            reader_name="reader",
            fill_last_batch=old,
            last_batch_policy=DROP,
        )
    assert it._last_batch_policy is policy


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 0}, "cannot be 0"),
        ({"size": 5, "reader_name": "reader"}, "both say"),
        ({"last_batch_padded": True, "reader_name": "reader"}, "pad_last_batch"),
        ({"auto_reset": "maybe"}, "auto_reset"),
        ({"auto_reset": []}, "auto_reset"),
        ({"last_batch_policy": "FILL"}, "last_batch_policy"),
        ({"last_batch_policy": 1}, "last_batch_policy"),
        ({"reader_name": "reader", "output_map": ["a", "a"]}, "distinct"),
        ({"reader_name": "reader", "output_map": ["a", "b"]}, "1 outputs"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(ArgumentValueError, match=words):
        NumberIterator(CountingPipeline(6, 2), **arguments)


def test_a_string_is_one_name():
    it = NumberIterator(CountingPipeline(6, 2), reader_name="reader", output_map="label")
    assert it.output_map == ["label"]


@pytest.mark.parametrize("none", [None, [], [None]])
def test_no_pipeline(none):
    with pytest.raises(ArgumentValueError, match="at least 1"):
        NumberIterator(none, reader_name="reader")


def test_pipelines_that_do_not_fit():
    pipelines = [CountingPipeline(6, 2), CountingPipeline(6, 3)]
    with pytest.raises(ArgumentValueError, match=r"\[2, 3\]"):
        NumberIterator(pipelines, reader_name="reader")
    with pytest.raises(ArgumentValueError, match="single pipeline"):
        NumberIterator([CountingPipeline(6, 2), CountingPipeline(6, 2)])
    for options in (
        {"num_shards": 2},
        {"pad_last_batch": True},
        {"stick_to_shard": True},
    ):
        with pytest.raises(ArgumentValueError, match="differ in"):
            NumberIterator(
                [CountingPipeline(6, 2), CountingPipeline(6, 2, **options)], reader_name="reader"
            )
    with pytest.raises(ArgumentValueError, match="size of the data set: 6, 7"):
        NumberIterator([CountingPipeline(6, 2), CountingPipeline(7, 2)], reader_name="reader")


def test_no_warning_with_reader_name():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NumberIterator(CountingPipeline(6, 2), reader_name="reader")


def test_outputs_are_batches():
    assert isinstance(CountingPipeline(6, 2, depth=1).max_batch_size, int)
    pipeline = CountingPipeline(6, 2)
    pipeline.schedule_run()
    assert isinstance(pipeline.share_outputs()[0], TensorListCPU)


class Doubled(NumberIterator):
    """The usual wrapper: steps of another form."""

    def __next__(self):
        return [[2 * number for number in numbers] for numbers in super().__next__()]


class DoubledUnderBothNames(Doubled):
    """As wrappers are written that are called `next`, too."""

    def __next__(self):
        return super().__next__()

    next = __next__


class DoubledNext(NumberIterator):
    """A wrapper of the method only."""

    def next(self):
        return [[2 * number for number in numbers] for numbers in super().next()]


@pytest.mark.parametrize("kind", [Doubled, DoubledUnderBothNames])
def test_sub_classes_override_the_step(kind):
    it = kind([CountingPipeline(6, 2)], reader_name="reader")
    assert next(it) == [[0, 2]]
    assert it.next() == [[4, 6]]
    assert list(it) == [[[8, 10]]]
    assert list(it) == [[[0, 2]], [[4, 6]], [[8, 10]]]


def test_sub_classes_override_next():
    it = DoubledNext([CountingPipeline(6, 2)], reader_name="reader")
    assert it.next() == [[0, 2]]
    assert next(it) == [[2, 3]]


def test_a_size_is_a_number_of_samples():
    pipe = CountingPipeline(6, 2)
    for size in ("6", None):
        with pytest.raises(ArgumentTypeError, match=f"`size` is {size!r}"):
            NumberIterator(pipe, size=size)

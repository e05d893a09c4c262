"""Branches: nodes that run for some samples of a batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import (
    ArgumentTypeError,
    DataTypeError,
    LayoutError,
    ShapeError,
    UsageError,
)
from headrace.executor.cpu.merging import merged
from headrace.graph.branches import guarded, merge
from headrace.operators import BatchOperator, Input, SampleOperator, operator
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import Spec

SIZE = 6
SEEN: list = []


@operator("testing.seen", inputs=Input(), hidden=True)
class Seen(SampleOperator):
    """Notes the positions and values of the samples that it is called with."""

    def cpu(self, c, data):
        """One sample."""
        SEEN.append((c.index, data.item()))
        return data


@operator("testing.members", inputs=Input(), hidden=True)
class Members(BatchOperator):
    """Gives each sample all that its batch holds."""

    def infer(self, data):
        """One dimension more."""
        return data._replace(ndim=1)

    def cpu(self, c, data):
        """The whole batch."""
        SEEN.append(len(data))
        return [np.array(data) for _ in data]


@operator("testing.late_double", inputs=Input(), data_dependent_type=True, hidden=True)
class LateDouble(BatchOperator):
    """Tells only with the data what comes out."""

    def infer(self, data):
        """Nothing is known."""
        return Spec(types.NO_TYPE, None)

    def cpu(self, c, data):
        """The whole batch."""
        values = np.array(data) * 2
        return (RuntimeTypedBatch(values, Spec(types.FLOAT, values.ndim - 1)),)


@operator("testing.not_negative", inputs=Input(), hidden=True)
class NotNegative(SampleOperator):
    """Fails for negative numbers."""

    def cpu(self, c, data):
        """One sample."""
        if data < 0:
            raise ValueError("negative")
        return data


def fed(values, **traits):
    return fn.external_source(lambda: [np.asarray(v) for v in values], **traits)


def numbers():
    return fed(np.arange(SIZE, dtype=np.float32))


def outputs(definition, *, runs=2, threads=2, **traits):
    @pipeline_def(batch_size=SIZE, num_threads=threads, device_id=None, seed=5)
    def pipe():
        return definition()

    made = pipe(**traits)
    for _ in range(runs):
        found = made.run()
    return [[np.array(s).tolist() for s in o] for o in found]


@pytest.mark.in_threads
def test_a_step_sees_the_samples_of_its_branch_only():
    def definition():
        x = numbers()
        with guarded(x > 3):
            y = fn.testing.seen(x)
        return y, x

    SEEN.clear()
    y, _ = outputs(definition, runs=1)
    assert set(SEEN) == {(4, 4.0), (5, 5.0)}
    assert y == [4.0, 5.0]  # what a branch has, and no more


@pytest.mark.parametrize("fuse", [True, False])
def test_nested_branches(fuse):
    def definition():
        x = numbers()
        odd = fn.cast(x, dtype=types.INT32) % 2
        with guarded(odd):
            large = x > 2
            with guarded(large):
                a = fn.testing.seen(x) * 100
            with guarded(large, holds=False):
                b = x * 10
            y = merge(large, a, b)
        return merge(odd, y, x)

    assert outputs(definition, fuse=fuse) == [[0.0, 10.0, 2.0, 300.0, 4.0, 500.0]]


@pytest.mark.in_threads
@pytest.mark.parametrize("wanted", [0, 1])
def test_a_branch_that_no_sample_takes(wanted):
    def definition():
        x = numbers()
        p = fed([np.bool_(wanted)] * SIZE)
        with guarded(p):
            y = fn.testing.members(fn.testing.seen(x))[0]
        with guarded(p, holds=False):
            z = x - 1
        return merge(p, y, z)

    SEEN.clear()
    assert outputs(definition, runs=1) == [[0.0] * SIZE if wanted else list(range(-1, SIZE - 1))]
    assert set(SEEN) == ({SIZE, *((k, float(k)) for k in range(SIZE))} if wanted else set())


def test_batch_operators_get_the_samples_of_their_branch_packed():
    def definition():
        x = numbers()
        p = x > 1
        with guarded(p):
            y = fn.testing.members(x)
        with guarded(p, holds=False):
            z = fn.expand_dims(x, axes=[0])
        return merge(p, y, z)

    assert outputs(definition) == [[[0.0], [1.0], *([[2.0, 3.0, 4.0, 5.0]] * 4)]]


@pytest.mark.parametrize("where", ["none", "some", "all"])
def test_what_only_the_data_tells_the_type_of(where):
    def definition():
        x = numbers()
        p = {"none": x > 9, "some": x > 3, "all": x >= 0}[where]
        with guarded(p):
            y = fn.testing.late_double(x) + 0.5
        return merge(p, y, x)

    limit = {"none": 9, "some": 3, "all": -1}[where]
    assert outputs(definition) == [[2 * k + 0.5 if k > limit else float(k) for k in range(SIZE)]]


@pytest.mark.parametrize(("limit", "given"), [(3, [8.0, 10.0]), (9, [])])
def test_what_only_the_data_tells_the_type_of_is_returned_from_a_branch(limit, given):
    def definition():
        with guarded(numbers() > limit):
            return fn.testing.late_double(numbers())

    assert outputs(definition) == [given]


def test_draws_are_those_of_the_position_in_the_whole_batch():
    def definition(branch):
        x = numbers()
        like = fn.expand_dims(x, axes=[0])
        if not branch:
            return fn.random.uniform(like, seed=3)
        with guarded(fn.cast(x, dtype=types.INT32) % 2):
            return fn.random.uniform(like, seed=3)

    (every,) = outputs(lambda: definition(False))
    (some,) = outputs(lambda: definition(True))
    assert some == every[1::2]


def test_planned_draws_are_those_of_the_position_in_the_whole_batch():
    def definition(branch):
        image = fed(np.arange(SIZE * 300, dtype=np.uint8).reshape(SIZE, 10, 10, 3), layout="HWC")
        if not branch:
            return fn.random_resized_crop(image, size=(3, 3), seed=3)
        with guarded(fn.cast(numbers(), dtype=types.INT32) % 2):
            return fn.random_resized_crop(image, size=(3, 3), seed=3)

    (every,) = outputs(lambda: definition(False))
    (some,) = outputs(lambda: definition(True))
    assert some == every[1::2]


def test_what_has_no_inputs_runs_for_all():
    def definition():
        x = numbers()
        with guarded(x > 3):
            u = fn.random.uniform(range=[0.0, 1.0], seed=3)
        return u, fn.random.uniform(range=[0.0, 1.0], seed=3)

    one, other = outputs(definition)
    assert one == other
    assert len(one) == SIZE


@pytest.mark.parametrize("value", [np.nan, np.inf, -2, np.uint8(3), np.float16(0.5)])
def test_any_number_but_zero_is_true(value):
    def definition():
        p = fed(np.array([value] * 3 + [0] * 3, np.asarray(value).dtype))
        x = numbers()
        with guarded(p):
            y = x + 100
        return merge(p, y, x)

    assert outputs(definition) == [[100.0, 101.0, 102.0, 3.0, 4.0, 5.0]]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda x: fn.cast(x, dtype=types.INT32), DataTypeError, "INT32 where the condition holds"),
        (lambda x: fn.expand_dims(x, axes=[0]), ShapeError, "3 where the condition holds, 2"),
        (lambda x: fn.reshape(x, layout="CD"), LayoutError, '"CD" where'),
        (lambda x: fn.reshape(x, layout=""), LayoutError, '"" where'),
    ],
)
def test_branches_must_agree(change, error, match):
    def definition():
        x = fed(np.zeros((SIZE, 2, 2), np.float32), layout="AB")
        p = numbers() > 2
        with guarded(p):
            y = change(x)
        return merge(p, y, x)

    with pytest.raises(error, match=match):
        outputs(definition)


def test_a_predicate_is_a_single_number():
    def definition():
        x = fed(np.zeros((SIZE, 1), np.float32))
        with guarded(x):
            return x + 1

    with pytest.raises(ShapeError, match="Got a 1-d input as a condition"):
        outputs(definition)


def test_what_a_branch_makes_is_not_there_outside():
    def definition():
        x = numbers()
        with guarded(x > 3):
            y = x + 1
        return x + y

    with pytest.raises(UsageError, match=r"reads `.*`, which exists only for the samples of a"):
        outputs(definition)
    with pytest.raises(ArgumentTypeError, match="must be a `DataNode`"), guarded(1):
        pass


@pytest.mark.parametrize("threads", [1, 4])
def test_bad_samples_are_replaced_in_all_outputs(threads):
    def definition():
        x = fed(np.array([0, 1, -2, 3, -4, 5], np.float32))
        label = fed(np.arange(SIZE, dtype=np.int32))
        p = fn.cast(label, dtype=types.INT32) % 3
        with guarded(p):
            y = fn.testing.not_negative(x) * 10
            total = fn.testing.members(y)
        with guarded(p, holds=False):
            z = fn.expand_dims(x, axes=[0])
        return merge(p, total, z), label, p, y

    total, label, p, y = outputs(definition, on_bad_sample="replace", threads=threads)
    assert label == [0, 1, 1, 3, 3, 5]  # 4 takes after 3, which did not take its branch
    assert p == [k % 3 for k in label]
    assert y == [10.0, 10.0, 50.0]
    assert total == [[0.0], y, y, [3.0], [3.0], y]


def test_where_samples_come_from_follows_the_branch(tmp_path):
    for k in range(SIZE):
        (tmp_path / f"a{k}").write_bytes(bytes([k]))
        (tmp_path / f"b{k}").write_bytes(bytes([k, k]))

    def definition():
        one, label = fn.readers.file(files=[str(tmp_path / f"a{k}") for k in range(SIZE)])
        other, _ = fn.readers.file(files=[str(tmp_path / f"b{k}") for k in range(SIZE)])
        p, q = label[0] % 2, label[0] < 3
        with guarded(p):
            odd = one + fn.cast(label * 0, dtype=types.UINT8)
        with guarded(p, holds=False):
            with guarded(q):
                same = one | one
            with guarded(q, holds=False):
                other = fn.slice(other, start=[0], shape=[1], axes=[0])
            other = merge(q, same, other)
        return fn.get_property(merge(p, odd, other), key="source_info")

    (found,) = outputs(definition, runs=1)
    names = [bytes(row).decode() for row in found]
    assert [name[-2:] for name in names] == ["a0", "a1", "a2", "a3", "b4", "a5"]


@pytest.mark.in_threads
@pytest.mark.parametrize("pixels", [False, True])
@pytest.mark.parametrize("bad", [False, True])
def test_branches_of_branches_are_joined_by_one_step(monkeypatch, pixels, bad):
    joining = []

    def noted(step, *rest):
        joining.append(step)
        return merged(step, *rest)

    monkeypatch.setattr("headrace.executor.cpu.runner.merged", noted)

    def definition():
        x = fed([np.full(100, k, np.float32) for k in range(SIZE)])
        number = x[0] if pixels else numbers()
        if number < 1:
            y = x - bad
            y = fn.testing.not_negative(y[0]) + y
        elif number < 2:
            y = x * 20
        elif number < 4:
            y = x
        else:
            y = x * 40 if number < 5 else x * 50
        return y + 1 if pixels else y, number

    traits = {"enable_conditionals": True, "on_bad_sample": "replace" if bad else "raise"}
    y, _ = outputs(definition, runs=1, threads=1, **traits)
    wanted = [0, 20, 2, 3, 160, 250]
    if bad:
        wanted[0] = 20
    assert [row[-1] for row in y] == [value + pixels for value in wanted]
    assert len({id(step) for step in joining}) == 1


@pytest.mark.in_threads  # a process would note places of its own
def test_the_last_step_of_a_branch_writes_to_the_merged_batch():
    rows = []

    @operator("testing.notes_memory", inputs=Input(), hidden=True)
    class NotesMemory(SampleOperator):
        """Notes where its output is."""

        def cpu(self, c, data):
            """One sample."""
            out = c.empty(data.shape, data.dtype)
            np.add(data, 1, out=out)
            rows.append(out.ctypes.data)
            return out

    @pipeline_def(batch_size=SIZE, num_threads=2, device_id=None)
    def pipe():
        x = fed(np.zeros((SIZE, 100), np.float32))
        p = numbers() > 2
        with guarded(p):
            y = fn.testing.notes_memory(x)
        return merge(p, y, x)

    made = pipe()
    out = made.run()[0].as_array()
    step = out.strides[0]
    places = {out.ctypes.data + k * step for k in range(SIZE)}
    assert len(places.intersection(rows)) == 3  # rows of batches that are made ahead are elsewhere


@pytest.mark.in_threads
@pytest.mark.parametrize(("limit", "is_shared"), [(-1, True), (2, False), (9, True)])
def test_a_branch_that_all_samples_take_is_handed_on(limit, is_shared):
    @pipeline_def(batch_size=SIZE, num_threads=2, device_id=None)
    def pipe():
        x, y = [fn.external_source(itertools.repeat(np.full((SIZE, 9), k))) for k in range(2)]
        return merge(fed(np.arange(SIZE) > limit), x, y), x, y

    for _ in range(2):
        merged, *branches = [batch.as_array() for batch in pipe().run()]
        assert merged[:, 0].tolist() == [int(k <= limit) for k in range(SIZE)]
        assert any(np.shares_memory(merged, each) for each in branches) is is_shared


@pytest.mark.parametrize("limit", [2, 9])
def test_branches_and_reductions_in_worker_processes(limit):
    def definition():
        x = fed([np.full((k + 1, 3), k, np.float32) for k in range(SIZE)])
        label = fed(np.arange(SIZE, dtype=np.int32))
        p = label > limit
        with guarded(p):
            y = fn.pad(fn.normalize(x, batch=True)) + 1
        with guarded(p, holds=False):
            z = fn.random.uniform(x, seed=3)
        return merge(p, y, z), label

    expected = outputs(definition, workers="threads")
    assert outputs(definition, workers="processes") == expected

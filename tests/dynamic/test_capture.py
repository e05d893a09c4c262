import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.experimental.dynamic import invariants
from headrace.experimental.dynamic.capture.steps import LoopStep
from headrace.experimental.dynamic.modes import THREAD

COUNT = 23
SIZE = 3


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "class0"
    folder.mkdir()
    for k in range(COUNT):
        (folder / f"{k:02d}.jpg").write_bytes(bytes(range(k, k + 6)))
    return str(tmp_path)


@pytest.fixture(autouse=True)
def _no_loop_is_left():
    yield
    gc.collect()
    assert THREAD.capture is None


@pytest.fixture
def steps_ahead(monkeypatch):
    """Calls whose results came from work done ahead."""
    found = []
    results = LoopStep.results

    def counted(self, number):
        found.append(self._plan.calls[number].operation.schema.name)
        return results(self, number)

    monkeypatch.setattr(LoopStep, "results", counted)
    return found


def made(root, **arguments):
    return ndd.readers.File(file_root=root, **arguments)


def values(batch):
    return [np.array(sample) for sample in batch]


def same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


def plain_chain(data, label, rng, step):
    x = ndd.cast(data, dtype=ndd.float32)
    return values(ndd.reshape(x, shape=[2, 3]))


def arithmetic(data, label, rng, step):
    x = (data * 2 + label) / 3
    return values(ndd.math.sqrt(x)) + values(data.slice[1:4])


def random_numbers(data, label, rng, step):
    gain = ndd.random.uniform(range=(0.5, 2), batch_size=SIZE, rng=rng)
    noise = ndd.random.normal(data, rng=rng)
    return values(data * gain + noise)


def numbers_by_hand(data, label, rng, step):
    first = rng()
    drawn = ndd.random.uniform(batch_size=SIZE, rng=rng)
    rng.advance(3)
    return [*values(drawn), np.uint32(first), np.uint32(rng())]


def default_numbers(data, label, rng, step):
    return values(ndd.random.coin_flip(batch_size=SIZE, shape=[4]))


def looks_in_between(data, label, rng, step):
    x = data + 1
    y = x * 2
    return values(y) + values(x)


def looks_in_between_later(data, label, rng, step):
    x = data + 1
    y = x * 2
    return values(y) + (values(x) if step > 4 else [])


def temporaries(data, label, rng, step):
    return values(ndd.cast(ndd.cast(data + 1, dtype=ndd.float32) * 0.5, dtype=ndd.float64))


def other_arguments(data, label, rng, step):
    x = ndd.reshape(data + 1, shape=[6] if step % 2 else [3, 2])
    return values(x + 1) + values(data + 3)


def other_calls(data, label, rng, step):
    x = data + 1
    if step % 3 == 1:
        x = ndd.cast(x, dtype=ndd.float32)
    return values(x * 2)


def numbers_from_outside(data, label, rng, step):
    x = data + 1
    return values(x + step) + values(x * np.float32([1, 2, 3, 4, 5, 6]))


def constants_from_outside(data, label, rng, step):
    return values(data * CONSTANT) + values(ndd.cast(CONSTANT, dtype=ndd.int32) + label)


CONSTANT = ndd.tensor(np.arange(6, dtype=np.float32))


def by_sample(data, label, rng, step):
    total = [int(np.asarray(sample[0])) for sample in data.tensors]
    return [np.int64(total), *values(data + 1)]


def arguments_of_samples(data, label, rng, step):
    low = ndd.cast(label, dtype=ndd.float32)
    shape = ndd.random.uniform(range=(1, 4), batch_size=SIZE, dtype=ndd.int32, rng=rng)
    return values(ndd.random.normal(mean=low * 0 + 5, shape=[2], rng=rng)) + values(shape)


def an_inner_loop(data, label, rng, step):
    found = []
    for k in range(2):
        found += values(data + k)
    return found


BODIES = [
    plain_chain,
    arithmetic,
    random_numbers,
    numbers_by_hand,
    default_numbers,
    looks_in_between,
    looks_in_between_later,
    temporaries,
    other_arguments,
    other_calls,
    numbers_from_outside,
    constants_from_outside,
    by_sample,
    arguments_of_samples,
    an_inner_loop,
]


def run(root, body, capture, epochs=2, **arguments):
    ndd.random.set_seed(7)
    reader, rng = made(root, random_shuffle=True, seed=3, **arguments), ndd.random.RNG(11)
    found, step = [], 0
    for _ in range(epochs):
        for data, label in reader.next_epoch(batch_size=SIZE, capture=capture):
            found.append(body(data, label, rng, step) + values(data))
            step += 1
    return found, str(rng.state), str(ndd.random.get_default_rng().state)


@pytest.mark.parametrize("body", BODIES)
def test_captured_loops_give_the_same(root, body):
    expected, *expected_states = run(root, body, False)
    found, *states = run(root, body, True)
    same(found, expected)
    assert states == expected_states


@pytest.mark.sweep
@pytest.mark.parametrize("mode", list(ndd.EvalMode))
@pytest.mark.parametrize("body", [arithmetic, random_numbers, looks_in_between, other_calls])
def test_in_every_mode(root, body, mode):
    expected = run(root, body, False)[0]
    with mode:
        found = run(root, body, True)[0]
    same(found, expected)


@pytest.mark.parametrize("body", [random_numbers, temporaries])
def test_with_any_number_of_threads(root, body):
    expected = run(root, body, False)[0]
    for threads in (1, 3):
        with ndd.EvalContext(num_threads=threads):
            same(run(root, body, True)[0], expected)


def test_work_is_done_ahead(root, steps_ahead):
    run(root, arithmetic, True, epochs=1)
    steps = -(-COUNT // SIZE) - 2
    assert len(steps_ahead) == 5 * steps


def test_what_was_looked_at_once_is_kept(root, monkeypatch):
    again = []
    original = LoopStep._again
    monkeypatch.setattr(
        LoopStep, "_again", lambda self, *where: again.append(where) or original(self, *where)
    )
    run(root, looks_in_between, True, epochs=1)
    assert 1 <= len(again) <= 3


@pytest.mark.parametrize("threads", [2])
def test_threads_capture_loops_of_their_own(root, threads):
    expected = run(root, random_numbers, False)[0]
    found = [None] * threads

    def loop(k):
        found[k] = run(root, random_numbers, True)[0]

    workers = [threading.Thread(target=loop, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in found:
        same(result, expected)


@pytest.mark.parametrize("taken", [1, 2, 3, 5])
def test_leaving_the_loop_loses_nothing(root, taken):
    results = []
    for capture in (False, True):
        reader, rng = made(root), ndd.random.RNG(1)
        found = []
        for limit in (taken, None):
            for number, (data, label) in enumerate(
                reader.next_epoch(batch_size=SIZE, capture=capture), 1
            ):
                found.append(random_numbers(data, label, rng, 0))
                if number == limit:
                    break
        results.append((found, str(rng.state)))
    same(results[1][0], results[0][0])
    assert results[1][1] == results[0][1]


def test_states_in_captured_loops(root):
    reader = made(root, enable_checkpointing=True)
    states, found = [], []
    for data, label in reader.next_epoch(batch_size=SIZE, capture=True):
        found.append(plain_chain(data, label, None, 0))
        states.append(reader.get_state())
    other = made(root)
    other.set_state(states[3])
    data, label = next(other.next_epoch(batch_size=SIZE))
    same([plain_chain(data, label, None, 0)], [found[4]])


def test_a_bad_file_belongs_to_its_step(root):
    files = [f"{root}/class0/{k:02d}.jpg" for k in range(12)]
    files[7] = f"{root}/nope.jpg"
    reader = ndd.readers.File(files=files)
    good, bad = 0, []
    for data, _ in reader.next_epoch(batch_size=2, capture=True):
        result = ndd.cast(data, dtype=ndd.float32) * 2
        try:
            values(result)
            good += 1
        except RuntimeError as error:
            bad.append(str(error))
    assert good == 5
    (text,) = bad
    assert "nope.jpg" in text


def test_errors_of_operators_name_their_line(root):
    reader = made(root)
    seen = []

    def reshaped(data):
        return ndd.reshape(data, shape=[4])

    for data, _ in reader.next_epoch(batch_size=SIZE, capture=True):
        result = reshaped(data)
        with pytest.raises(ValueError) as caught:
            values(result)
        seen.append(str(caught.value))
    assert len(seen) == 8
    assert len({text.partition(":\n")[0] for text in seen}) == 1
    assert "test_capture.py" in seen[-1]
    assert len({text.partition("created at")[2] for text in seen}) == 1  # with those that led there
    assert "called from" in seen[-1]


def test_errors_come_up_in_the_call_in_synchronous_modes(root):
    with ndd.EvalMode.sync_cpu:
        for data, _ in made(root).next_epoch(batch_size=SIZE, capture=True):
            values(data + 1)
            with pytest.raises(ValueError, match="shape"):
                ndd.reshape(data, shape=[4])


def test_bad_files_in_synchronous_modes(root):
    files = [f"{root}/class0/{k:02d}.jpg" for k in range(12)]
    files[7] = f"{root}/nope.jpg"
    with ndd.EvalMode.sync_cpu:
        loop = ndd.readers.File(files=files).next_epoch(batch_size=2, capture=True)
        found, bad = [], 0
        while True:
            try:
                data, _ = next(loop)
                found.append(int(values(data + 1)[0][0]))
            except StopIteration:
                break
            except RuntimeError:
                bad += 1
    assert bad == 1
    assert found == [1, 3, 5, 9, 11]


@pytest.mark.sweep
@pytest.mark.parametrize("step_of_change", [2, 3, 5])
@pytest.mark.parametrize("change", ["word", "seed", "state", "call"])
def test_other_draws_than_expected_are_errors(root, change, step_of_change):
    rng = ndd.random.RNG(1)

    def loop():
        for step, _ in enumerate(made(root).next_epoch(batch_size=SIZE, capture=True)):
            ndd.random.uniform(batch_size=SIZE, rng=rng)
            if step == step_of_change:
                if change == "word":
                    rng()
                elif change == "seed":
                    rng.seed = 5
                elif change == "state":
                    rng.set_state(ndd.random.RNG(8).get_state())
                else:
                    ndd.random.uniform(batch_size=SIZE, rng=rng)

    with pytest.raises(RuntimeError, match="random numbers"):
        loop()


def test_generators_may_be_set_between_loops(root):
    results = []
    for capture in (False, True):
        reader, rng, found = made(root), ndd.random.RNG(), []
        for epoch in range(3):
            rng.seed = epoch
            for data, label in reader.next_epoch(batch_size=SIZE, capture=capture):
                found.append(random_numbers(data, label, rng, 0))
        results.append(found)
    same(*results)


def test_loops_do_not_nest(root):
    outer = made(root).next_epoch(batch_size=SIZE, capture=True)
    next(outer)
    with pytest.raises(RuntimeError, match="one loop"):
        next(made(root).next_epoch(batch_size=SIZE, capture=True))
    outer.close()
    assert len(list(outer)) == 0


def test_ordinary_loops_may_be_inside(root):
    def nested(capture):
        outer, inner, found = made(root), made(root), []
        for data, _ in outer.next_epoch(batch_size=SIZE, capture=capture):
            found.append(values(data + 1))
            for other, _ in inner.next_epoch(batch_size=SIZE):
                found.append(values(other + 2))
            found.append(values(data + 3))
        return found

    same(nested(True), nested(False))


def test_nothing_to_capture(root):
    with pytest.warns(UserWarning, match="capture"):
        found = [values(d) for d, _ in made(root).next_epoch(batch_size=SIZE, capture=True)]
    same(found, [values(d) for d, _ in made(root).next_epoch(batch_size=SIZE)])

    def varying():
        for step, (data, _) in enumerate(made(root).next_epoch(batch_size=SIZE, capture=True)):
            values(ndd.reshape(data, shape=[1] * step + [6]))

    with pytest.warns(UserWarning, match="capture"):
        varying()


def test_one_step_is_too_short_to_warn(root):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data, _ in made(root).next_epoch(batch_size=COUNT, capture=True):
            values(data + 1)


def test_what_cannot_be(root):
    with pytest.raises(ValueError, match="batch_size"):
        made(root).next_epoch(capture=True)
    reader = made(root)
    next(reader.next_epoch(batch_size=SIZE))
    with pytest.raises(RuntimeError, match="capture"):
        next(reader.next_epoch(batch_size=SIZE, capture=True))
    reader = made(root)
    next(reader.next_epoch(batch_size=SIZE, capture=True))
    with pytest.raises(RuntimeError, match="capture"):
        next(reader.next_epoch(batch_size=SIZE))
    with pytest.raises(ValueError):
        next(reader.next_epoch(batch_size=SIZE + 1, capture=True))


def test_the_largest_size_is_the_usual_one(root):
    reader = made(root, max_batch_size=4)
    data, _ = next(reader.next_epoch(capture=True))
    assert data.batch_size == 4


@pytest.mark.parametrize(
    "value", [5, 2.5, "abc", True, None, (1, 2), [1, 2], {"a": 1}, np.float32(3), ndd.float32]
)
def test_invariants_pass_for_their_values(value):
    found = ndd.capture.invariant(value)
    assert isinstance(found, type(value))
    assert type(found).__name__ == f"_Invariant_{type(value).__name__}"
    assert found == value
    assert ndd.capture.invariant(found) is found
    assert invariants.plain(found) is value
    assert str(found) == str(value)
    assert bool(found) == bool(value)


def test_arithmetic_of_invariants_is_plain():
    five = ndd.capture.invariant(5)
    for result, expected in [
        (five + 1, 6),
        (1 + five, 6),
        (2**five, 32),
        (-five, -5),
        (five // 2, 2),
        (divmod(five, 2), (2, 1)),
        (five * five, 25),
    ]:
        assert result == expected
        assert type(result) is type(expected)
    assert five < 6
    assert [*range(9)][five] == 5
    assert f"{five:03d}" == "005"
    assert hash(five) == hash(5)
    assert list(ndd.capture.invariant([1, 2])) == [1, 2]
    with pytest.raises(AttributeError):
        five.x = 1


def test_invariants_as_arguments(root):
    shape = ndd.capture.invariant([3, 2])
    dtype = ndd.capture.invariant(ndd.float32)
    x = ndd.reshape(ndd.batch([np.arange(6)]), shape=shape)
    assert x.shape == [(3, 2)]
    assert ndd.cast(x, dtype=dtype).dtype == ndd.float32


def test_work_with_invariants_is_done_ahead(root, steps_ahead):
    four, sizes, angle, none = map(ndd.capture.invariant, (4, [2, 3], 0.0, None))
    for data, _ in made(root).next_epoch(batch_size=SIZE, capture=True):
        data = ndd.reshape(data, shape=sizes)
        data = ndd.cast(data, dtype=ndd.capture.invariant(ndd.float32))
        data = ndd.resize(ndd.expand_dims(data, axes=[2]), size=[four, four])
        ndd.rotate(data, angle=angle, fill_value=none)
    assert len(steps_ahead) == 5 * (-(-COUNT // SIZE) - 2)


def test_steps_leave_nothing_behind(root, monkeypatch):
    alive = weakref.WeakSet()
    begin = LoopStep.__init__

    def noted(self, *arguments):
        begin(self, *arguments)
        alive.add(self)

    monkeypatch.setattr(LoopStep, "__init__", noted)
    gc.collect()
    gc.disable()  # memory of batches must not have to wait for it
    try:
        run(root, looks_in_between, True)
        assert not alive
    finally:
        gc.enable()


@pytest.mark.parametrize("step_of_change", [0, 1])
def test_what_was_drawn_irregularly_at_first_is_not_drawn_ahead(root, steps_ahead, step_of_change):
    results = []
    for capture in (False, True):
        rng = ndd.random.RNG(1)
        found = []
        epoch = made(root).next_epoch(batch_size=SIZE, capture=capture)
        for step, (data, _) in enumerate(epoch):
            first = ndd.random.uniform(batch_size=SIZE, rng=rng)
            if step == step_of_change:
                rng.advance(3)
            second = ndd.random.uniform(batch_size=SIZE, rng=rng)
            found.append([*values(data + 1), *values(first), *values(second)])
        results.append(found)
    same(*results)
    assert steps_ahead
    assert "random.uniform" not in steps_ahead

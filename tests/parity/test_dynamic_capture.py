"""Captured loops and external sources of dynamic mode against DALI's."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import pytest

import headrace.experimental.dynamic as ndd

LIBRARIES = [dali, ndd]
COUNT = 17
SIZE = 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    (path / "class0").mkdir()
    for k in range(COUNT):
        (path / "class0" / f"{k:02d}.jpg").write_bytes(bytes(range(k, k + 4)))
    return str(path)


def values(batch):
    return [np.array(sample) for sample in batch]


def compare(one, other, rtol=1e-6):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(y, x, rtol=rtol, atol=1e-6)


def operators(lib, data, label, rng):
    x = lib.cast(data, dtype=lib.float32)
    return values(lib.reshape(x, shape=[2, 2]))


def gains(lib, data, label, rng):
    gain = lib.random.uniform(range=(0.5, 2), batch_size=SIZE, rng=rng)
    noise = lib.random.normal(batch_size=SIZE, shape=[4], rng=rng)
    return values(lib.cast(data, dtype=lib.float32) * gain + noise)


def numbers_by_hand(lib, data, label, rng):
    first = np.uint32(rng())
    drawn = lib.random.coin_flip(batch_size=SIZE, rng=rng)
    lib.cast(data, dtype=lib.float32)
    return [first, *values(drawn), np.uint32(rng())]


def default_numbers(lib, data, label, rng):
    lib.cast(data, dtype=lib.float32)
    return values(lib.random.uniform(batch_size=SIZE, shape=[2]))


def skipped(lib, data, label, rng):
    x = lib.cast(data, dtype=lib.float32)
    if int(np.array(label.tensors[0])[0]) == 0 and int(np.array(data.tensors[0])[0]) % 2:
        x = lib.cast(x, dtype=lib.int32)
    return values(x)


def run(lib, root, body, capture, epochs=2):
    lib.random.set_seed(5)
    reader = lib.readers.File(file_root=root, random_shuffle=True, seed=3)
    rng = lib.random.RNG(11)
    found = []
    for _ in range(epochs):
        for data, label in reader.next_epoch(batch_size=SIZE, capture=capture):
            found.append(values(data) + values(label) + body(lib, data, label, rng))
    states = str(rng.get_state()), str(lib.random.get_default_rng().get_state())
    return found, states


@pytest.mark.sweep
@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("body", [operators, gains, numbers_by_hand, default_numbers, skipped])
def test_the_same_values(root, body, capture):
    theirs, their_states = run(dali, root, body, capture)
    ours, our_states = run(ndd, root, body, capture)
    compare(theirs, ours)
    assert our_states == their_states


@pytest.mark.parametrize("change", ["word", "call", "seed"])
def test_other_draws_than_expected(root, change):
    def loop(lib):
        rng = lib.random.RNG(1)
        reader = lib.readers.File(file_root=root)
        for step, (data, _) in enumerate(reader.next_epoch(batch_size=SIZE, capture=True)):
            lib.random.uniform(batch_size=SIZE, rng=rng)
            lib.cast(data, dtype=lib.float32)
            if step == 3:
                if change == "word":
                    rng()
                elif change == "call":
                    lib.random.uniform(batch_size=SIZE, rng=rng)
                else:
                    rng.seed = 4

    for lib in LIBRARIES:
        with pytest.raises(RuntimeError):
            loop(lib)


def test_misuse(root):
    for lib in LIBRARIES:

        def made(lib=lib):
            return lib.readers.File(file_root=root)

        def loop(reader, size=SIZE, capture=True, lib=lib):
            for data, _ in reader.next_epoch(batch_size=size, capture=capture):
                lib.cast(data, dtype=lib.float32)

        with pytest.raises(ValueError):
            loop(made(), None)
        reader = made()
        loop(reader)
        with pytest.raises(RuntimeError):
            loop(reader, capture=False)
        with pytest.raises(ValueError):
            loop(reader, SIZE + 1)
        reader = made()
        loop(reader, capture=False)
        with pytest.raises(RuntimeError):
            loop(reader)

        def nested(lib=lib, made=made, loop=loop):
            for _ in made().next_epoch(batch_size=SIZE, capture=True):
                loop(made())

        with pytest.raises(RuntimeError):
            nested()


def test_nothing_to_capture(root):
    for lib in LIBRARIES:
        reader = lib.readers.File(file_root=root)
        with pytest.warns(UserWarning, match="capture"):
            found = [values(d) for d, _ in reader.next_epoch(batch_size=SIZE, capture=True)]
        assert len(found) == 6


def test_arithmetic_alone_is_captured(root):
    """DALI captures none and warns."""

    def loop(lib):
        for data, _ in lib.readers.File(file_root=root).next_epoch(batch_size=SIZE, capture=True):
            values((data + 1).slice[1:])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop(ndd)
    with pytest.warns(UserWarning, match="capture"):
        loop(dali)


def test_a_loop_that_was_left_can_be_gone_on_with(root):
    """DALI makes the reader unusable where random numbers were drawn."""

    def left(lib, reader):
        rng = lib.random.RNG(1)
        for step, (data, _) in enumerate(reader.next_epoch(batch_size=SIZE, capture=True)):
            lib.random.uniform(batch_size=SIZE, rng=rng)
            lib.cast(data, dtype=lib.float32)
            if step == 2:
                break

    ours, theirs = (lib.readers.File(file_root=root) for lib in (ndd, dali))
    left(ndd, ours)
    assert values(next(ours.next_epoch(batch_size=SIZE, capture=True))[0])[0][0] == 9
    left(dali, theirs)
    with pytest.raises(RuntimeError):
        next(theirs.next_epoch(batch_size=SIZE, capture=True))


def test_readers_with_states_can_be_captured(root):
    """DALI has yet to support it."""
    ours, theirs = (
        lib.readers.File(file_root=root, enable_checkpointing=True) for lib in (ndd, dali)
    )
    next(ours.next_epoch(batch_size=SIZE, capture=True))
    assert ours.get_state()
    with pytest.raises(NotImplementedError):
        next(theirs.next_epoch(batch_size=SIZE, capture=True))


def test_a_bad_file_ends_the_loop_in_dali_only(root):
    files = [f"{root}/class0/{k:02d}.jpg" for k in range(10)]
    files[5] = f"{root}/nope.jpg"

    def loop(lib):
        good = 0
        for data, _ in lib.readers.File(files=files).next_epoch(batch_size=2, capture=True):
            try:
                values(lib.cast(data, dtype=lib.float32))
                good += 1
            except RuntimeError:
                pass
        return good

    assert loop(ndd) == 4
    with pytest.raises(RuntimeError):
        loop(dali)


# -- external sources ------------------------------------------------------------------------------


def array(*numbers):
    return np.array(numbers, np.int32)


def generator():
    yield array(1)
    yield array(2)


def until_the_end(source, most=6):
    found = []
    for _ in range(most):
        try:
            found.append(np.asarray(source()).tolist())
        except StopIteration:
            found.append(None)
    return found


@pytest.mark.parametrize("cycle", [None, False, "no", True, "quiet", "raise"])
def test_ends_and_cycles(cycle):
    for source in ([array(1), array(2)], generator):
        theirs, ours = (until_the_end(lib.ExternalSource(source, cycle=cycle)) for lib in LIBRARIES)
        assert ours == theirs


SOURCES = {
    "tensor": (lambda lib: array(1, 2), {}),
    "number": (lambda lib: 5, {}),
    "real": (lambda lib: 5.5, {}),
    "list": (lambda lib: [array(1), array(2)], {}),
    "nested": (lambda lib: [[1, 2], [3, 4]], {}),
    "batch": (lambda lib: lib.batch([array(1), array(2)]), {}),
    "two": (lambda lib: (array(1), array(2)), {"num_outputs": 2}),
    "two of a list": (lambda lib: [array(1), array(2)], {"num_outputs": 2}),
    "mixed": (lambda lib: (lib.batch([array(1), array(2)]), array(5)), {"num_outputs": 2}),
    "too many": (lambda lib: (array(1),) * 3, {"num_outputs": 2}),
    "layout": (lambda lib: array(1), {"layout": "X"}),
    "bad layout": (lambda lib: array(1), {"layout": "XY"}),
    "converted": (lambda lib: array(300), {"dtype": np.uint8}),
    "by name": (lambda lib: array(3), {"dtype": "f32"}),
    "bad name": (lambda lib: array(3), {"dtype": "zz"}),
    "nothing": (lambda lib: None, {}),
    "text": (lambda lib: "x", {}),
}


@pytest.mark.sweep
@pytest.mark.parametrize("batch_size", [None, 2, 3])
@pytest.mark.parametrize("name", SOURCES)
def test_outputs(name, batch_size):
    function, arguments = SOURCES[name]

    def plain(lib, output):
        if isinstance(output, tuple):
            return [plain(lib, part) for part in output]
        samples = list(output) if isinstance(output, lib.Batch) else [output]
        kind = type(output).__name__
        return kind, str(output.dtype), output.layout, [np.asarray(s).tolist() for s in samples]

    def run(lib):
        source = lib.ExternalSource(lambda: function(lib), **arguments)
        try:
            return plain(lib, source(batch_size=batch_size))
        except Exception as error:
            return error

    theirs, ours = run(dali), run(ndd)
    if isinstance(theirs, Exception):
        builtin = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        assert isinstance(ours, builtin), ours
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"source": 5}, TypeError),
        ({"source": lambda i: i}, ValueError),
        ({"source": lambda *i: i}, TypeError),
        ({"source": lambda: 1, "cycle": True}, ValueError),
        ({"source": [1], "cycle": "bogus"}, ValueError),
        ({"source": [1], "num_outputs": 0}, ValueError),
        ({"source": [1], "num_outputs": "a"}, TypeError),
        ({"source": [1], "layout": ["X", "Y"]}, ValueError),
    ],
)
def test_what_is_no_source(arguments, error):
    for lib in LIBRARIES:
        with pytest.raises(error):
            lib.ExternalSource(**arguments)


@pytest.mark.parametrize("cycle", [None, "raise"])
def test_captured_sources(cycle):
    def run(lib):
        batches = [lib.batch([array(k), array(-k)]) for k in range(7)]
        source = lib.ExternalSource(batches, cycle=cycle)
        return [
            [np.asarray(s).tolist() for s in lib.cast(data, dtype=lib.float32)]
            for _ in range(2)
            for data in source.captured(2)
        ]

    assert run(ndd) == run(dali)


def test_uses_of_sources_do_not_mix():
    for lib in LIBRARIES:
        source = lib.ExternalSource(lambda: array(1))
        source()
        with pytest.raises(RuntimeError):
            next(source.captured(2))


def test_where_nothing_was_captured_other_uses_are_free(root):
    for lib in LIBRARIES:
        source = lib.ExternalSource([lib.batch([array(k)] * 2) for k in range(3)], cycle="raise")
        reader = lib.readers.File(file_root=root)
        for loop in source.captured(2), reader.next_epoch(batch_size=2, capture=True):
            with pytest.warns(UserWarning, match="no operators were captured"):
                list(loop)
        assert values(source()) == [array(0)] * 2
        assert next(iter(reader.next_epoch(batch_size=2)))[0].batch_size == 2


def numbered(lib, count=9, **arguments):
    """A source of batches of two, numbered from 0."""
    return lib.ExternalSource([lib.batch([array(k)] * 2) for k in range(count)], **arguments)


def first(lib, batch):
    return int(np.asarray(lib.cast(batch, dtype=lib.float32).tensors[0])[0])


def leave(lib, loop, steps, way):
    """The numbers of the first steps of a loop, which is left then."""
    found = []
    if way == "close":
        found = [first(lib, next(loop)) for _ in range(steps)]
        loop.close()
        return found
    try:
        for batch in loop:
            found.append(first(lib, batch))
            if len(found) == steps:
                if way == "break":
                    break
                raise KeyError
    except KeyError:
        pass
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("way", ["break", "error", "close"])
def test_a_source_whose_loop_was_left_can_be_called(way, steps):
    """DALI loses the elements that it has read ahead."""
    for lib in LIBRARIES:
        source = numbered(lib, cycle="raise")
        assert leave(lib, source.captured(2), steps, way) == list(range(steps))
        found = first(lib, source(batch_size=2)) if steps < 9 else None
        assert lib is dali or found == (steps if steps < 9 else None)
        if steps < 9:
            with pytest.raises(RuntimeError):
                next(source.captured(2))
        else:
            with pytest.raises(StopIteration):  # the element after the last one
                [source() for _ in range(10)]


def test_a_source_whose_loop_came_to_its_end_cannot_be_called():
    for lib in LIBRARIES:
        source = numbered(lib, 5, cycle="raise")
        for _ in range(2):
            assert [first(lib, batch) for batch in source.captured(2)] == list(range(5))
            with pytest.raises(RuntimeError):
                source()


def test_a_source_whose_loop_failed_can_be_called():
    for lib in LIBRARIES:

        def broken():
            raise KeyError("boo")

        source = lib.ExternalSource(broken)
        for use in (lambda: next(source.captured(2)), source):  # noqa: B023
            with pytest.raises(KeyError, match="boo"):
                use()


def test_a_source_whose_loop_was_left_can_be_called_in_another_loop():
    for lib in LIBRARIES:
        source = numbered(lib, 20)
        assert leave(lib, source.captured(2), 3, "break") == [0, 1, 2]
        found = [
            first(lib, lib.cast(batch, dtype=lib.float32) * 0 + source(batch_size=2))
            for batch in numbered(lib, 6).captured(2)
        ]
        assert [number - found[0] for number in found] == list(range(6))
        assert lib is dali or found[0] == 3


def in_a_thread(function, *arguments):
    """The result of a function in a thread of its own, with which DALI forgets open loops."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


@pytest.mark.parametrize("steps", [2, 4])
def test_two_loops_over_one_source_that_are_open_are_one(steps):
    def run(lib):
        source = numbered(lib)
        one = source.captured(2)
        found = [first(lib, next(one)) for _ in range(steps)]
        other = source.captured(2)
        found += [first(lib, next(loop)) for loop in (other, one, other, one)]
        with pytest.raises(ValueError):
            next(source.captured(3))
        return found

    for lib in LIBRARIES:
        assert in_a_thread(run, lib) == list(range(steps + 4))


def test_two_loops_over_one_reader_that_are_open_are_one(root):
    def run(lib):
        reader = lib.readers.File(file_root=root)
        one = reader.next_epoch(batch_size=SIZE, capture=True)
        found = [first(lib, next(one)[0]) for _ in range(2)]
        other = reader.next_epoch(batch_size=SIZE, capture=True)
        return found + [first(lib, next(loop)[0]) for loop in (other, one, other)]

    for lib in LIBRARIES:
        assert in_a_thread(run, lib) == [0, 3, 6, 9, 12]


def test_calls_of_sources_in_a_captured_loop_give_batches_of_its_size():
    for lib in LIBRARIES:
        source = lib.ExternalSource([array(k, 1) for k in range(20)])
        for k, batch in enumerate(numbered(lib, 6).captured(2)):
            first(lib, batch)
            called = source()
            assert isinstance(called, lib.Batch)
            assert [np.asarray(s).tolist() for s in called.tensors] == [[k, 1]] * 2


@pytest.mark.parametrize("size", [2**31, 2**40])
def test_sizes_that_no_batch_has(root, size):
    for lib in LIBRARIES:
        for capture in (False, True):
            with pytest.raises(RuntimeError):
                next(lib.readers.File(file_root=root).next_epoch(batch_size=size, capture=capture))


def test_what_is_no_context(root):
    for lib in LIBRARIES:
        reader = lib.readers.File(file_root=root)
        for loop in (
            numbered(lib).captured(2, 5),
            reader.next_epoch(batch_size=SIZE, ctx=5, capture=True),
        ):
            with pytest.raises(TypeError):
                next(loop)


def test_another_size_in_a_captured_loop():
    for lib in LIBRARIES:

        def loop(lib=lib):
            for batch in numbered(lib).captured(2):
                lib.cast(batch, dtype=lib.float32, batch_size=3)

        with pytest.raises(RuntimeError):
            loop()


def test_attributes_of_invariants_are_those_of_the_value():
    for lib in LIBRARIES:
        value = Exception()
        found = lib.capture.invariant(value)
        found.number = 3
        assert value.number == 3
        del found.number
        assert not hasattr(value, "number")


@pytest.mark.parametrize("value", [5, 2.5, "abc", True, None, (1, 2), [1], {"a": 1}], ids=repr)
def test_invariants(value):
    for lib in LIBRARIES:
        found = lib.capture.invariant(value)
        assert type(found).__name__ == f"_Invariant_{type(value).__name__}"
        assert isinstance(found, type(value))
        assert found == value
        assert lib.capture.invariant(found) is found
    if isinstance(value, int):
        assert type(ndd.capture.invariant(value) + 1) is type(dali.capture.invariant(value) + 1)


class Part:
    size = (3, 4)

    def __init__(self):
        self.angle = 30
        self.scales = [1.5, 2.5]
        self.make = list

    def scales_of_it(self):
        return self.scales

    def itself(self):
        return self

    @property
    def sides(self):
        return {"left": 1}


LOOKS = {
    "attribute": lambda mark: mark(Part()).angle,
    "of the class": lambda mark: mark(Part()).size,
    "class": lambda mark: mark(Part).size,
    "property": lambda mark: mark(Part()).sides,
    "function in it": lambda mark: mark(Part()).make,
    "what that makes": lambda mark: mark(Part()).make("ab"),
    "method": lambda mark: type(mark(Part()).scales_of_it),
    "method's": lambda mark: mark(Part()).scales_of_it(),
    "item of that": lambda mark: mark(Part()).scales_of_it()[0],
    "attribute of itself": lambda mark: mark(Part()).itself().angle,
    "shape": lambda mark: mark(np.zeros((2, 3))).shape,
    "sum": lambda mark: mark(np.arange(3)).sum(),
    "documentation": lambda mark: mark(5).__doc__,
    "rounded": lambda mark: round(mark(2.55), mark(1)),
    "reversed": lambda mark: list(reversed(mark([1, 2]))),
    "copy": lambda mark: copy.copy(mark([1])),
    "deep copy": lambda mark: copy.deepcopy(mark([[1]])),
    "pickled": lambda mark: pickle.loads(pickle.dumps(mark({"a": 1}))),
    "callable": lambda mark: (callable(mark(5)), callable(mark(len))),
    "class of": lambda mark: isinstance(True, mark(int)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_what_is_found_in_invariants(look):
    found = []
    for lib in LIBRARIES:
        module = importlib.import_module(f"{lib.__name__}.capture._invariant")
        value = LOOKS[look](lib.capture.invariant)
        found.append((module.is_invariant(value), module.unwrap_invariant(value)))
    assert found[0] == found[1]


def test_items_of_invariants_are_set():
    for lib in LIBRARIES:
        value = [1, 2, 3]
        found = lib.capture.invariant(value)
        found[0] = 5
        del found[1]
        found += [7]
        assert value == found == [5, 3, 7]
        assert type(found) is list


@pytest.mark.parametrize("make", ["tensor", "as_tensor", "batch", "as_batch"])
def test_data_that_are_invariants(make):
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = []
    for lib in LIBRARIES:
        mark = lib.capture.invariant
        given = [data, list(data), lib.as_tensor(data), lib.as_batch(list(data))]
        made = [getattr(lib, make)(mark(each)) for each in given]
        made += [getattr(lib, make)(data, dtype=mark(kind)) for kind in (lib.int32, np.int32)]
        results.append([np.array(lib.as_tensor(each)) for each in made])
        assert {type(each) for each in made} == {lib.Batch if "batch" in make else lib.Tensor}
    compare(*results)

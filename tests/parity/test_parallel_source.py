"""`fn.external_source(parallel=True)` beside DALI's: sources, ends, resets, arguments, errors."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same, attempt
from tests.parity.words import check_words, conditional
from tests.support.sweeps import always


@pytest.fixture(autouse=True)
def _workers_end():
    yield
    gc.collect()


def run(pipe, most=6):
    found = []
    with contextlib.suppress(StopIteration):
        for _ in range(most):
            batch = pipe.run()[0]
            found.append([np.asarray(batch.at(i)).tolist() for i in range(len(batch))])
    return found


def epochs(pipe, count=3, most=6):
    found = []
    for _ in range(count):
        found.append(run(pipe, most))
        pipe.reset()
    return found


def fed_by(source, workers=2, settings=None, **keywords):
    """A scenario: three epochs of a pipeline with this parallel source; ``source()`` makes it."""

    def scenario(lib):
        pipe = lib.pipe(
            lambda: lib.fn.external_source(source=source(), **{"parallel": True, **keywords}),
            py_num_workers=workers,
            **(settings or {}),
        )
        return epochs(pipe)

    return scenario


def batch(k, count=2):
    return [np.array([k], np.int32)] * count


def at(index):
    if index >= 3:
        raise StopIteration
    return batch(index)


def at_info(info):
    return (
        [np.array([info.iteration, info.epoch_idx], np.int32)] * 2 if info.iteration < 2 else stop()
    )


def stop():
    raise StopIteration


def sample(info):
    if info.idx_in_epoch >= 5:
        raise StopIteration
    return np.array(
        [info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx], np.int32
    )


def generate():
    for k in range(3):
        yield batch(k)


class Iterable:
    def __iter__(self):
        return generate()


class At:
    def __call__(self, index):
        return at(index)


def ragged(index):
    return [np.full((index + k, k), k, np.float32) for k in range(2)] if index < 4 else stop()


def shrinking(index):
    return [np.array([index])] * (2 - index % 2) if index < 4 else stop()


scenarios = Table()

for _workers in (1, 2):
    scenarios(
        **{
            f"function_{_workers}": fed_by(lambda: at, _workers),
            f"object_{_workers}": fed_by(At, _workers),
            f"samples_{_workers}": fed_by(lambda: sample, _workers, batch=False),
            f"batch_info_{_workers}": fed_by(lambda: at_info, _workers, batch_info=True),
            f"depth_{_workers}": fed_by(lambda: at, _workers, prefetch_queue_depth=4),
            f"generator_function_{_workers}": fed_by(lambda: generate, _workers),
            f"generator_{_workers}": fed_by(generate, _workers),
            f"iterable_{_workers}": fed_by(Iterable, _workers),
            f"list_{_workers}": fed_by(lambda: [batch(0), batch(1)], _workers),
            f"shapes_{_workers}": fed_by(lambda: ragged, _workers),
            f"sizes_{_workers}": fed_by(lambda: shrinking, _workers),
        }
    )

scenarios(
    ends_quietly=fed_by(lambda: generate, cycle="quiet"),
    ends_true=fed_by(lambda: generate, cycle=True),
    ends_raising=fed_by(lambda: generate, cycle="raise"),
    ends_no=fed_by(lambda: generate, cycle="no"),
    list_raising=fed_by(lambda: [batch(0), batch(1)], cycle="raise"),
    iterable_raising=fed_by(Iterable, cycle="raise"),
    generator_raising=fed_by(generate, cycle="raise"),
    function_cycle=fed_by(lambda: at, cycle=True),
    unknown_cycle=fed_by(lambda: generate, cycle="maybe"),
    no_copy=fed_by(lambda: at, no_copy=True),
    no_copy_false=fed_by(lambda: at, no_copy=False),
    depth_of_none=fed_by(lambda: at, prefetch_queue_depth=0),
    negative_depth=fed_by(lambda: at, prefetch_queue_depth=-1),
    hint=fed_by(lambda: at, bytes_per_sample_hint=1000),
    hint_of_none=fed_by(lambda: at, bytes_per_sample_hint=0),
    no_workers=fed_by(lambda: at, 0),
    negative_workers=fed_by(lambda: at, -1),
    no_method=fed_by(lambda: at, settings={"py_start_method": "teleport"}),
    two_arguments=fed_by(lambda: lambda a, b: batch(0)),
    layout=fed_by(lambda: lambda i: [np.zeros((2, 3, 1))] * 2 if i < 1 else stop(), layout="HWC"),
    wrong_type=fed_by(lambda: lambda i: batch(0), dtype=None, ndim=2),
    one_too_many=fed_by(lambda: lambda i: batch(0, 3)),
    queue=fed_by(lambda: at, settings={"prefetch_queue_depth": 1}),
)


def outputs(source, **keywords):
    def scenario(lib):
        pipe = lib.pipe(
            lambda: tuple(
                lib.fn.external_source(source=source, num_outputs=2, parallel=True, **keywords)
            ),
            py_num_workers=2,
        )
        return pipe.run(), pipe.run()

    return scenario


scenarios(
    two_outputs=outputs(lambda i: (batch(i), batch(2 * i))),
    two_outputs_of_samples=outputs(
        lambda info: (np.array([info.idx_in_epoch]), np.array(0.5, np.float32)), batch=False
    ),
    two_outputs_of_an_iterable=outputs([(batch(0), batch(1)), (batch(2), batch(3))] * 3),
)


@scenarios
def error_of_a_source(lib):
    def source(index):
        if index == 1:
            raise KeyError("mine")
        return batch(index)

    pipe = lib.pipe(
        lambda: lib.fn.external_source(source=source, parallel=True), prefetch_queue_depth=1
    )
    return pipe.run(), isinstance(attempt(pipe.run), Exception)


@scenarios
def class_form_gives_samples(lib):
    return epochs(lib.pipe(lambda: lib.ops.ExternalSource(source=sample, parallel=True)()))


@scenarios
def class_form_told_to_give_batches(lib):
    return epochs(lib.pipe(lambda: lib.ops.ExternalSource(source=at, parallel=True, batch=True)()))


@scenarios
def class_form_without_workers_gives_batches(lib):
    return epochs(lib.pipe(lambda: lib.ops.ExternalSource(source=at)()))


@scenarios
def pool_of_processes(lib):
    plain, parallel = (
        lib.pipe(lambda p=p: lib.fn.external_source(sample, batch=False, parallel=p), 2)
        for p in (False, True)
    )

    def seen():
        return [(each._py_pool is None, each._py_pool_started) for each in (plain, parallel)]

    before = seen()
    plain.build()
    parallel.build()
    return before, seen(), len(parallel._py_pool.pids())


@scenarios
def workers_started_by_hand(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(source=at, parallel=True), py_num_workers=2)
    pipe.start_py_workers()
    return epochs(pipe)


@scenarios
def start_without_parallel_sources(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(source=at))
    pipe.start_py_workers()
    return pipe.external_source_shm_statistics(), epochs(pipe)


@scenarios
def keys_of_the_statistics(lib):
    pipe = lib.pipe(lambda: lib.fn.external_source(source=at, parallel=True))
    pipe.run()
    found = pipe.external_source_shm_statistics()
    return sorted(found), all(c > 0 for values in found.values() for c in values)


@scenarios
def two_sources_end_with_the_shorter(lib):
    def define():
        return (
            lib.fn.external_source(source=at, parallel=True),
            lib.fn.external_source(source=sample, parallel=True, batch=False),
        )

    return epochs(lib.pipe(define, py_num_workers=2))


@scenarios
def beside_a_plain_source(lib):
    def define():
        return (
            lib.fn.external_source(source=at, parallel=True),
            lib.fn.external_source(source=at),
        )

    return epochs(lib.pipe(define, py_num_workers=2))


@scenarios
def with_operators(lib):
    def define():
        images = lib.fn.external_source(
            source=lambda info: np.full((4, 6, 3), info.idx_in_epoch, np.uint8),
            parallel=True,
            batch=False,
            layout="HWC",
        )
        return lib.fn.crop(images, crop=(2, 3))

    pipe = lib.pipe(define, py_num_workers=2)
    return pipe.run(), pipe.run()


@pytest.mark.parametrize("name", scenarios)
def test_parallel_sources(name):
    assert_same(scenarios[name])


same = [[[1], [1]]] * 6
three = [[[[0], [0]], [[1], [1]], [[2], [2]]]] * 3
DIFFERENT = {
    # The same; but DALI leaves sockets open, of which Python warns.
    "new processes": (fed_by(lambda: at, settings={"py_start_method": "spawn"}), three, three),
    "nothing ahead": (
        fed_by(lambda: at, settings={"exec_async": False, "exec_pipelined": False}),
        AssertionError,
        three,
    ),
    "a function without argument": (
        fed_by(lambda: lambda: batch(1), 1, parallel="processes"),
        TypeError,
        [same] * 3,
    ),
    "samples of an iterable": (
        fed_by(
            lambda: [np.array([k]) for k in range(5)],
            1,
            batch=False,
            cycle="raise",
            parallel="processes",
        ),
        TypeError,
        [[[[0], [1]], [[2], [3]]]] * 3,
    ),
    "numbers": (fed_by(lambda: lambda i: [1, 2], 1), Exception, [[[1, 2]] * 6] * 3),
    "without a source": (
        lambda lib: lib.pipe(lambda: lib.fn.external_source(parallel=True)).build(),
        AttributeError,
        ValueError,
    ),
    "another word": (
        fed_by(lambda: at, parallel="yes"),
        three,
        TypeError,
    ),
}


def refused(source, **keywords):
    """A scenario: a definition, with conditions on data, that gives a parallel source."""

    def scenario(lib):
        keywords_of_all = {"source": source(), "parallel": True, **keywords}
        return lib.pipe(lambda: lib.fn.external_source(**keywords_of_all), py_num_workers=1).build()

    return scenario


def rewritten(make):
    """A scenario: `make` is called in a definition with conditions on data."""

    def scenario(lib):
        def define():
            return lib.fn.external_source(make(), parallel=True)

        return conditional(lib, define)

    return scenario


def makes_a_source():
    def source(i):
        return batch(i)

    return source


def test_sources_that_workers_cannot_share():
    one = "must accept exactly one argument"
    check_words(
        [
            (refused(lambda: lambda: batch(1)), one),
            (refused(lambda: lambda: batch(1)[0], batch=False), one),
            (refused(lambda: generate, batch=False), "with a generator function must be run in a"),
            (refused(generate, batch=False), "with an iterable must be run in a batch mode"),
            (refused(lambda: [batch(1)[0]], batch=False), "with an iterable must be run in a"),
            (refused(lambda: at, prefetch_queue_depth=0), "must be a positive integer, got 0"),
            (refused(lambda: at, bytes_per_sample_hint=0), "must be a positive integer, got 0"),
            (rewritten(makes_a_source), "was created in a scope that was converted"),
            (rewritten(lambda: lambda i: batch(i)), "was created in a scope that was converted"),
            (
                refused(lambda: at, parallel=False, prefetch_queue_depth=1),
                "is valid only for parallel external sources",
            ),
        ]
    )


@pytest.mark.parametrize("name", always(*(DIFFERENT.keys() - {"new processes"}), of=DIFFERENT))
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])


def test_stacked_batches():
    """DALI's worker dies of them."""
    from tests.parity.outcomes import HEADRACE, outcome

    found = outcome(HEADRACE, fed_by(lambda: lambda i: np.full((2, 1), i) if i < 2 else stop()))
    assert found.value == [[[[0], [0]], [[1], [1]]]] * 3

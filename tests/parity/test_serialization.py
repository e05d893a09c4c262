"""Serialized pipelines, in DALI and here: what comes back and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.outcomes import assert_differs, assert_same

FED = np.arange(6, dtype=np.float32).reshape(2, 3)


def pipe(lib, **settings):
    def graph():
        x = lib.fn.external_source(name="x", layout="C")
        rows = lib.fn.constant(idata=[3, -4])
        return x * rows[0] + 1, rows, lib.fn.cast(x[1], dtype=lib.types.INT16), x.shape()

    given = {"batch_size": 2, "num_threads": 1, "device_id": None, "seed": 7}
    given["prefetch_queue_depth"] = 1
    return lib.pipeline_def(graph)(**{**given, **settings})


def data(lib, **settings):
    return pipe(lib, **settings).serialize()


def loaded(lib, **overrides):
    return lib.Pipeline.deserialize(data(lib), **overrides)


def own(lib, **settings):
    made = lib.Pipeline(device_id=None, **settings)
    made.deserialize_and_build(data(lib))
    return made


SAME = {
    "values": lambda lib: loaded(lib).run(x=FED),
    "before_and_after_the_build": lambda lib: [
        len(pipe(lib).serialize()) > 0,
        (made := pipe(lib)).build(),
        len(made.serialize()) > 0,
    ],
    "settings": lambda lib: [
        (made := loaded(lib)).max_batch_size,
        made.num_threads,
        made.device_id,
        made.seed,
        made.prefetch_queue_depth,
        made.num_outputs,
    ],
    "overrides": lambda lib: [
        (made := loaded(lib, batch_size=5, num_threads=3, seed=9)).max_batch_size,
        made.num_threads,
        made.seed,
    ],
    "a_smaller_batch": lambda lib: loaded(lib, batch_size=1).run(x=FED),
    "no_threads": lambda lib: lib.Pipeline.deserialize(
        data(lib, num_threads=-1), num_threads=1
    ).run(x=FED),
    "build_with_no_threads": lambda lib: pipe(lib, num_threads=-1).build(),
    "an_own_pipeline": lambda lib: own(lib, batch_size=3, num_threads=2).max_batch_size,
    "an_own_pipeline_runs": lambda lib: own(
        lib, batch_size=2, num_threads=2, prefetch_queue_depth=1
    ).run(x=FED),
    "nothing_given": lambda lib: lib.Pipeline.deserialize(),
    "both_given": lambda lib: lib.Pipeline.deserialize(data(lib), "file"),
    "garbage": lambda lib: lib.Pipeline.deserialize(b"garbage"),
    "text": lambda lib: lib.Pipeline.deserialize("garbage"),
    "no_file": lambda lib: lib.Pipeline.deserialize(filename="/nowhere/at/all"),
    "a_file_name_first": lambda lib: pipe(lib).serialize("file"),
    "duplicate_definition": lambda lib: pipe(lib).serialize(lambda: 1),
    "no_definition": lambda lib: lib.Pipeline(2, 1, None).serialize(),
    "a_definition": lambda lib: lib.Pipeline.deserialize(
        lib.Pipeline(2, 1, None).serialize(lambda: lib.fn.constant(idata=[3]))
    ).run(),
    "depth_with_wrong_keys": lambda lib: loaded(lib, prefetch_queue_depth={"wrong": 2}),
}

DIFFERENT = {
    "a_source": (
        lambda lib: bool(lib.source(np.zeros((2, 3), np.float32)).serialize()),
        True,
        RuntimeError,
    ),
    "no_batch_size": (
        lambda lib: (
            lib.Pipeline.deserialize(data(lib, batch_size=None), batch_size=2)
            .run(x=FED)[1]
            .as_array()
            .tolist()
        ),
        ValueError,
        [[3, -4]] * 2,
    ),
    "serialized_again": (lambda lib: loaded(lib).serialize() == data(lib), RuntimeError, True),
    "executor": (lambda lib: bool(loaded(lib).exec_dynamic), False, True),
    "unknown_override": (
        lambda lib: loaded(lib, nonsense=1).max_batch_size,
        2,
        TypeError,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_same(name):
    assert_same(SAME[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])

"""Checkpoints beside DALI's: where pipelines and PyTorch iterators go on, and what is refused."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import warnings

import numpy as np
import nvidia.dali.plugin.pytorch as dali_torch
import pytest

import headrace.plugin.pytorch as headrace_torch
from tests.parity.support import LIBRARIES

PLUGINS = {"dali": dali_torch, "headrace": headrace_torch}
BOTH = pytest.mark.parametrize("library", ["dali", "headrace"])
COUNT = 10


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "x"
    path.write_bytes(b"x")
    return str(path)


@contextlib.contextmanager
def quiet():
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def make(library, path, *, batch_size=3, count=COUNT, more=None, reader=None, **engine):
    lib = LIBRARIES[library]
    engine = {"enable_checkpointing": True, "seed": 4, **engine}
    pipe = lib.pipeline.Pipeline(batch_size, 1, None, **engine)
    with pipe:
        _, label = lib.fn.readers.file(files=[path] * count, name="R", **(reader or {}))
        pipe.set_outputs(label, *(more(lib) if more else ()))
    return pipe


def labels(pipe, batches=1):
    return [np.asarray(pipe.run()[0].as_array()).ravel().tolist() for _ in range(batches)]


def both(scenario):
    found = {}
    for library in LIBRARIES:
        with quiet():
            found[library] = scenario(library)
    assert found["headrace"] == found["dali"]


ORDERS = [
    {},
    {"random_shuffle": True},
    {"random_shuffle": True, "initial_fill": 3, "pad_last_batch": True},
    {"shuffle_after_epoch": True},
    {"pad_last_batch": True},
    {"num_shards": 3, "shard_id": 1},
    {"num_shards": 3, "shard_id": 2, "stick_to_shard": True, "random_shuffle": True},
]


@pytest.mark.sweep
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("before", [0, 1, 4, 9])
def test_readers(path, order, before):
    def scenario(library):
        pipe = make(library, path, reader=order)
        first = labels(pipe, before)
        again = make(library, path, reader=order, checkpoint=pipe.checkpoint())
        found = labels(again, 12)
        assert found == labels(pipe, 12)
        return first, found, again.is_restored_from_checkpoint

    both(scenario)


def test_other_settings(path):
    def scenario(library):
        pipe = make(library, path)
        labels(pipe, 2)
        checkpoint = pipe.checkpoint()
        engines = (
            {"batch_size": 4},
            {"batch_size": 1},
            {"prefetch_queue_depth": 5},
            {"seed": 99},
            {"exec_dynamic": False},
            {"exec_pipelined": False, "exec_async": False},
        )
        return [labels(make(library, path, checkpoint=checkpoint, **e), 3) for e in engines]

    both(scenario)


def run(pipe):
    try:
        return np.asarray(pipe.run()[0].as_array()).tolist()
    except StopIteration:
        pipe.reset()
        return "end"


def of_number(k):
    if k >= 5:
        raise StopIteration
    return np.full((2, 1), k, np.int32)


def of_batch(info):
    if info.iteration >= 5:
        raise StopIteration
    return np.full((2, 1), info.iteration + 10 * info.epoch_idx, np.int32)


def of_sample(info):
    if info.iteration >= 5:
        raise StopIteration
    return np.full((1,), info.idx_in_epoch + 100 * info.epoch_idx, np.int32)


@pytest.mark.sweep
@pytest.mark.parametrize("before", range(8))
@pytest.mark.parametrize(
    ("source", "keywords"),
    [(of_number, {}), (of_batch, {"batch_info": True}), (of_sample, {"batch": False})],
)
def test_sources(source, keywords, before):
    def scenario(library):
        lib = LIBRARIES[library]

        def fed(checkpoint=None):
            engine = {"enable_checkpointing": True, "checkpoint": checkpoint}
            pipe = lib.pipeline.Pipeline(2, 1, None, **engine)
            with pipe:
                pipe.set_outputs(lib.fn.external_source(source, **keywords))
            return pipe

        pipe = fed()
        first = [run(pipe) for _ in range(before)]
        again = fed(pipe.checkpoint())
        return first, [run(again) for _ in range(9)]

    both(scenario)


def iterator(
    library, path, policy, prepared, auto, checkpoints, *, shards=1, batch_size=3, **order
):
    plugin = PLUGINS[library]
    pipes = [
        make(
            library,
            path,
            batch_size=batch_size,
            checkpoint=checkpoint,
            reader={**order, "num_shards": shards, "shard_id": k},
        )
        for k, checkpoint in zip(range(shards), checkpoints or itertools.repeat(None), strict=False)
    ]
    return plugin.DALIGenericIterator(
        pipes,
        ["label"],
        reader_name="R",
        last_batch_policy=plugin.LastBatchPolicy[policy],
        prepare_first_batch=prepared,
        auto_reset=auto,
    )


def step(it):
    try:
        return [batch["label"].ravel().tolist() for batch in next(it)]
    except StopIteration:
        return "end"


def loops(it, count=3):
    return [[[b["label"].ravel().tolist() for b in batch] for batch in it] for _ in range(count)]


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("policy", ["FILL", "DROP", "PARTIAL"])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize(("shards", "batch_size"), [(1, 3), (1, 5), (3, 2), (2, 1)])
@pytest.mark.parametrize("auto", [False, True])
def test_iterators(path, policy, pad, shards, batch_size, auto):
    """Loops behind a checkpoint, made after each step of two epochs and at their ends."""
    for before, prepared in itertools.product(range(10), (True, False)):
        ended = False

        def scenario(library, before=before, prepared=prepared):
            nonlocal ended
            new = functools.partial(
                iterator,
                library,
                path,
                policy,
                prepared,
                auto,
                shards=shards,
                batch_size=batch_size,
                pad_last_batch=pad,
            )
            it = new(checkpoints=None)
            taken = []
            for _ in range(before):
                taken.append(step(it))
                if taken[-1] == "end" and not auto and len(taken) < before:
                    it.reset()
            ended = bool(taken) and taken[-1] == "end"
            return taken, loops(new(checkpoints=it.checkpoints()))

        if prepared:
            both(scenario)
            continue
        with quiet():
            found = {library: scenario(library) for library in LIBRARIES}
        if ended and not auto:
            # Behind the end, DALI's first loop is empty once more; nothing was left to end.
            assert found["dali"][1][0] == []
            assert found["headrace"][1][:2] == found["dali"][1][1:]
        else:
            assert found["headrace"] == found["dali"]


REFUSED = {
    "not enabled": lambda lib, path: make(lib, path, enable_checkpointing=False).checkpoint(),
    "not enabled, restored": lambda lib, path: make(
        lib, path, enable_checkpointing=False, checkpoint=make(lib, path).checkpoint()
    ).build(),
    "garbage": lambda lib, path: make(lib, path, checkpoint=b"abc").build(),
    "text": lambda lib, path: make(lib, path, checkpoint="abc").build(),
    "empty": lambda lib, path: make(lib, path, checkpoint=b"").build(),
    "no such folder": lambda lib, path: make(lib, path).checkpoint("/nonexistent/file"),
    "operator that is not there": lambda lib, path: make(
        lib,
        path,
        checkpoint=make(lib, path, more=lambda lib: [lib.fn.random.uniform()]).checkpoint(),
    ).build(),
    "operator that is new": lambda lib, path: make(
        lib,
        path,
        checkpoint=make(lib, path).checkpoint(),
        more=lambda lib: [lib.fn.random.uniform()],
    ).build(),
    "iterator": lambda lib, path: (
        PLUGINS[lib]
        .DALIGenericIterator(make(lib, path, enable_checkpointing=False), ["x"], reader_name="R")
        .checkpoints()
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(path, case):
    def one(library):
        try:
            REFUSED[case](library, path)
        except Exception as error:
            return error
        return None

    with quiet():
        dali, ours = one("dali"), one("headrace")
    assert dali is not None
    assert any(isinstance(ours, kind) for kind in type(dali).__mro__[:1])


def differs(scenario):
    with quiet():
        found = {library: scenario(library) for library in LIBRARIES}
    assert found["dali"] != found["headrace"]
    return found["dali"], found["headrace"]


@pytest.mark.parametrize("kind", ["list", "generator function"])
def test_iterables_go_on(kind):
    """DALI begins them anew, and warns."""

    def generated():
        yield from batches

    batches = [np.full((2, 1), k, np.int32) for k in range(5)]

    def scenario(library):
        lib = LIBRARIES[library]

        def fed(checkpoint=None):
            engine = {"enable_checkpointing": True, "checkpoint": checkpoint}
            pipe = lib.pipeline.Pipeline(2, 1, None, **engine)
            source = generated if kind == "generator function" else batches
            with pipe:
                pipe.set_outputs(lib.fn.external_source(source, cycle="raise"))
            return pipe

        pipe = fed()
        run(pipe), run(pipe)
        return run(fed(pipe.checkpoint()))

    assert differs(scenario) == ([[0], [0]], [[2], [2]])


def test_other_data_is_refused(path):
    """DALI goes on at the same number, wherever that is."""

    def scenario(library):
        pipe = make(library, path)
        labels(pipe, 1)
        try:
            return labels(make(library, path, count=5, checkpoint=pipe.checkpoint()))
        except ValueError:
            return "refused"

    assert differs(scenario) == ([[3, 4, 0]], "refused")


def test_depths_given_apart(path):
    def scenario(library):
        try:
            depth = {"cpu_size": 2, "gpu_size": 2}
            return labels(make(library, path, prefetch_queue_depth=depth, exec_dynamic=False))
        except RuntimeError:
            return "refused"

    assert differs(scenario) == ("refused", [[0, 1, 2]])


def test_more_operators_without_state(path):
    def scenario(library):
        checkpoint = make(library, path).checkpoint()
        more = {"more": lambda lib: [lib.fn.copy(np.array([1]))]}
        try:
            return labels(make(library, path, checkpoint=checkpoint, **more))
        except RuntimeError:
            return "refused"

    assert differs(scenario) == ("refused", [[0, 1, 2]])


def test_some_pipelines_of_an_iterator(path):
    """DALI logs a warning and goes on."""

    def scenario(library):
        first = iterator(library, path, "FILL", True, False, None, shards=2)
        step(first)
        one = first.checkpoints()[0]
        try:
            iterator(library, path, "FILL", True, False, [one, None], shards=2)
        except ValueError:
            return "refused"
        return "taken"

    assert differs(scenario) == ("taken", "refused")


def test_checkpoints_of_a_pipeline_for_an_iterator(path):
    """They do not say where in the epoch the iterator was; DALI begins to count at 0."""

    def scenario(library):
        pipe = make(library, path)
        labels(pipe, 2)
        try:
            found = loops(
                iterator(library, path, "FILL", True, False, [pipe.checkpoint()]), count=1
            )
        except ValueError:
            return "refused"
        return found[0][0]

    assert differs(scenario) == ([[6, 7, 8]], "refused")

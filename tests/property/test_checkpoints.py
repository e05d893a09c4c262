"""A pipeline that is resumed gives what it would have given without an interruption."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Pipeline, fn
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from tests.support.image_chains import steps
from tests.support.images import encoded

ORDERS: list[dict[str, Any]] = [
    {},
    {"random_shuffle": True, "initial_fill": 4},
    {"shuffle_after_epoch": True},
    {"pad_last_batch": True},
    {"pad_last_batch": True, "random_shuffle": True, "initial_fill": 100},
    {"stick_to_shard": True, "pad_last_batch": True},
    {"stick_to_shard": True, "random_shuffle": True, "initial_fill": 3},
]
ENGINES = st.fixed_dictionaries(
    {
        "num_threads": st.integers(1, 3),
        "prefetch_queue_depth": st.integers(1, 4),
        "fuse": st.booleans(),
        "seed": st.sampled_from([None, 5]),
        "exec_pipelined": st.booleans(),
    }
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """23 files whose content is their number; those that end in 5 are empty."""
    folder = tmp_path_factory.mktemp("files")
    found = []
    for number in range(23):
        path = folder / f"{number:02d}.bin"
        path.write_bytes(b"" if number % 10 == 5 else bytes([number]))
        found.append(str(path))
    return found


def values(batches: Any) -> list[list[Any]]:
    return [[np.asarray(sample).tolist() for sample in batch] for batch in batches]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("images")
    found = []
    for number in range(7):
        path = folder / f"{number}.jpg"
        path.write_bytes(encoded(40 + 9 * number, 70 - 7 * number, seed=number).tobytes())
        found.append(str(path))
    return found


@given(
    steps(),
    st.sampled_from(ORDERS),
    st.sampled_from([fn.decoders.image, fn.decoders.image_random_crop]),
    st.integers(1, 5),
    st.integers(0, 9),
    ENGINES,
    ENGINES,
)
def test_any_pipeline(images, chain, order, decode, batch_size, before, engine, other) -> None:
    """Whatever becomes of the images, wherever it stops: the remaining bytes are the same."""

    def make(engine: Any, **more: Any) -> Pipeline:
        pipe = Pipeline(batch_size, device_id=None, enable_checkpointing=True, **engine, **more)
        with pipe:
            data, label = fn.readers.file(files=images, **order)
            x = decode(data)
            for step in chain:
                x = step(x)
            pipe.set_outputs(x, label, fn.random.normal())
        return pipe

    whole = make(engine)
    for _ in range(before):
        whole.run()
    resumed = make(other, checkpoint=whole.checkpoint())
    for _ in range(3):
        for ours, expected in zip(resumed.run(), whole.run(), strict=True):
            assert [np.array(a).tobytes() for a in ours] == [
                np.array(a).tobytes() for a in expected
            ]


class Collecting(_DaliBaseIterator):
    def _assemble(self, batches: list[PipelineBatch]) -> Any:
        found = []
        for batch in batches:
            kept = range(batch.kept) if isinstance(batch.kept, int) else batch.kept
            found.append([[np.asarray(o[i]).tolist() for i in kept] for o in batch.outputs])
        return found


def reading(files: list[str], batch_size: int, order: dict[str, Any], engine: Any, **more: Any):
    pipe = Pipeline(batch_size, device_id=None, enable_checkpointing=True, **engine, **more)
    with pipe:
        data, label = fn.readers.file(files=files, name="R", dont_use_mmap=False, **order)
        angle = fn.random.uniform(range=(0.0, 1.0))
        noise = fn.random.normal(label, seed=9)
        pipe.set_outputs(data, label, angle + noise, fn.random.coin_flip(probability=angle))
    return pipe


@given(
    st.data(),
    st.sampled_from(ORDERS),
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(0, 20),
    ENGINES,
    ENGINES,
    st.sampled_from(["skip", "replace"]),
)
def test_readers(files, data, order, batch_size, shards, before, engine, other, policy) -> None:
    """Several epochs, with bad samples; whatever threads and depths there are on either side."""
    order = {**order, "num_shards": shards, "shard_id": data.draw(st.integers(0, shards - 1))}
    make = functools.partial(reading, files, batch_size, order, on_bad_sample=policy)
    whole = make(engine)
    for _ in range(before):
        whole.run()
    checkpoint = whole.checkpoint()
    assert whole.checkpoint() == checkpoint
    resumed = make(other, checkpoint=checkpoint)
    assert resumed.checkpoint() == checkpoint
    assert resumed.is_restored_from_checkpoint
    for _ in range(8):
        assert values(resumed.run()) == values(whole.run())
    assert resumed.checkpoint() == whole.checkpoint()


@given(
    st.sampled_from(ORDERS),
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(0, 20),
    st.sampled_from(list(LastBatchPolicy)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["reader", "size"]),
    ENGINES,
    ENGINES,
)
def test_iterators(
    files, order, batch_size, shards, before, policy, prepared, auto, counts, engine, other
) -> None:
    """All shards in one iterator, stopped in the middle of an epoch or at its end."""
    keywords: dict[str, Any] = {"reader_name": "R"} if counts == "reader" else {"size": 23}

    def make(engine: Any, checkpoints: Any) -> Collecting:
        pipes = [
            reading(
                files,
                batch_size,
                {**order, "num_shards": shards, "shard_id": k},
                engine,
                on_bad_sample="skip",
                checkpoint=checkpoint,
            )
            for k, checkpoint in enumerate(checkpoints)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Warning)  # of `size`
            return Collecting(
                pipes,
                last_batch_policy=policy,
                prepare_first_batch=prepared,
                auto_reset=auto,
                **keywords,
            )

    def following(iterator: Collecting) -> Any:
        try:
            return next(iterator)
        except StopIteration:
            iterator.reset()
            return "end"

    if batch_size > 23 // shards - 2 and policy is LastBatchPolicy.DROP:
        return  # no batch at all, where two samples are bad
    whole = make(engine, [None] * shards)
    at_end = False
    for _ in range(before):
        at_end = following(whole) == "end"
    checkpoints = whole.checkpoints()
    resumed = make(other, checkpoints)
    assert resumed.checkpoints() == checkpoints
    expected = [following(whole) for _ in range(12)]
    if prepared and expected[0] == "end" and not at_end:
        expected = [*expected[1:], following(whole)]  # where DALI goes on, too
    assert [following(resumed) for _ in range(12)] == expected


class Counting:
    """Keeps a state of its own, as PyTorch's loaders do."""

    def __init__(self) -> None:
        self.at = 0

    def __call__(self) -> Any:
        self.at += 1
        if self.at % 8 == 0:
            raise StopIteration
        return np.full((3, 1), self.at, np.int32)

    def state_dict(self) -> dict[str, Any]:
        return {"at": np.int64(self.at), "more": (1, None, [True, "text", 0.5])}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert state["more"] == [1, None, [True, "text", 0.5]]
        self.at = state["at"]


class Shuffling:
    """Draws a new order whenever it is begun."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)

    def __iter__(self) -> Any:
        for k in self.random.permutation(7):
            yield np.full((3, 1), k, np.int32)


class OwnIterator:
    """Its own iterator, as in DALI's documentation."""

    def __iter__(self) -> OwnIterator:
        self.at = 0
        return self

    def __next__(self) -> Any:
        self.at += 1
        if self.at > 7:
            raise StopIteration
        return np.full((3, 1), self.at, np.int32)


def of_sample(info: Any) -> Any:
    if info.iteration >= 7:
        raise StopIteration
    return np.array([info.idx_in_epoch, info.epoch_idx], np.int32)


def of_batch(info: Any) -> Any:
    if info.iteration >= 7:
        raise StopIteration
    return np.full((3, 1), info.iteration + 100 * info.epoch_idx, np.int32)


def of_number(iteration: int) -> Any:
    if iteration >= 7:
        raise StopIteration
    return np.full((3, 1), iteration, np.int32)


def generated() -> Any:
    for k in range(22):
        yield np.array([k], np.int32)


BATCHES = [np.full((3, 1), k, np.int32) for k in range(7)]
SOURCES: dict[str, Any] = {
    "sample info": (lambda: of_sample, {"batch": False}),
    "batch info": (lambda: of_batch, {"batch_info": True}),
    "iteration": (lambda: of_number, {}),
    "list": (lambda: BATCHES, {"cycle": "raise"}),
    "quiet list": (lambda: BATCHES, {"cycle": "quiet"}),
    "list without cycle": (lambda: BATCHES, {}),
    "samples": (lambda: [np.array([k], np.int32) for k in range(22)], {"batch": False}),
    "generator function": (lambda: generated, {"batch": False, "cycle": "raise"}),
    "quiet generator function": (lambda: generated, {"batch": False, "cycle": "quiet"}),
    "generator": (lambda: generated(), {"batch": False}),
    "shuffling": (Shuffling, {"cycle": "raise"}),
    "quiet shuffling": (Shuffling, {"cycle": "quiet"}),
    "own iterator": (OwnIterator, {"cycle": "raise"}),
    "own state": (Counting, {}),
    "two": (lambda: [(b, b + 1) for b in BATCHES], {"num_outputs": 2, "cycle": "raise"}),
}


def fed(kind: str, parallel: Any, engine: Any, checkpoint: bytes | None, workers: int) -> Pipeline:
    make, keywords = SOURCES[kind]
    pipe = Pipeline(
        3,
        device_id=None,
        enable_checkpointing=True,
        checkpoint=checkpoint,
        py_num_workers=workers,
        **engine,
    )
    with pipe:
        found = fn.external_source(make(), parallel=parallel, **keywords)
        more = fn.external_source([np.full((3, 1), k) for k in range(50)], cycle="quiet")
        found = found if isinstance(found, list) else [found]
        pipe.set_outputs(*found, more, fn.random.uniform())
    return pipe


def following(pipe: Pipeline, *, resets: bool = True) -> Any:
    try:
        return values(pipe.run())
    except StopIteration:
        if resets:
            pipe.reset()
        return "end"


@pytest.mark.filterwarnings("ignore:Only:UserWarning")  # workers that have nothing to do
@pytest.mark.filterwarnings("ignore:This epoch is empty:UserWarning")
@given(
    st.sampled_from(sorted(SOURCES)),
    st.sampled_from([False, False, "threads"]),
    st.integers(0, 20),
    st.booleans(),
    ENGINES,
    ENGINES,
    st.integers(1, 3),
)
def test_sources(kind, parallel, before, resets, engine, other, workers) -> None:
    """In the middle of an epoch, at its end, and behind it."""
    if kind == "own state":
        parallel = False  # workers cannot tell it
    whole = fed(kind, parallel, engine, None, workers)
    for number in range(before):
        following(whole, resets=resets or number < before - 1)
    checkpoint = whole.checkpoint()
    resumed = fed(kind, parallel, other, checkpoint, 4 - workers)
    assert resumed.checkpoint() == checkpoint
    for _ in range(12):
        assert following(resumed) == following(whole)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore:Only:UserWarning")
@pytest.mark.parametrize("kind", ["sample info", "batch info", "list", "quiet generator function"])
@pytest.mark.parametrize("before", [0, 3, 7, 12])
def test_sources_in_processes(kind: str, before: int) -> None:
    engine = {"num_threads": 1, "seed": 1}
    whole = fed(kind, "processes", engine, None, 2)
    for _ in range(before):
        following(whole)
    resumed = fed(kind, "processes", engine, whole.checkpoint(), 1)
    for _ in range(10):
        assert following(resumed) == following(whole)


class Divided:
    """An iterable that workers share; its parts have different lengths and count their passes."""

    num_parts = 3

    def __init__(self) -> None:
        self.passes = [0, 0, 0]

    def __iter__(self) -> Any:
        raise AssertionError("its parts are iterated")

    def begin_at_pass(self, passes: int, part: int) -> None:
        self.passes[part] = passes

    def iterate_part(self, part: int) -> Any:
        number = self.passes[part]
        self.passes[part] += 1
        for k in range(2 + 2 * part):
            yield np.full((3, 1), 1000 * number + 100 * part + k, np.int32)


@pytest.mark.filterwarnings("ignore:Only:UserWarning")
@pytest.mark.filterwarnings("ignore:This epoch is empty:UserWarning")
@given(
    st.integers(0, 40),
    st.sampled_from(["raise", "quiet", None]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["threads", "threads", "processes"]),
)
def test_divided_sources(before, cycle, workers, others, depth, parallel) -> None:
    """The order in which parts take turns goes on, too."""

    def make(workers: int, checkpoint: bytes | None) -> Pipeline:
        pipe = Pipeline(
            3,
            1,
            None,
            py_num_workers=workers,
            prefetch_queue_depth=depth,
            enable_checkpointing=True,
            checkpoint=checkpoint,
        )
        with pipe:
            pipe.set_outputs(fn.external_source(Divided(), parallel=parallel, cycle=cycle))
        return pipe

    whole = make(workers, None)
    for _ in range(before):
        following(whole)
    resumed = make(others, whole.checkpoint())
    for _ in range(15):
        assert following(resumed) == following(whole)

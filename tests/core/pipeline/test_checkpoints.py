"""Checkpoints of pipelines: what they refuse, what they say about it, files, odd sources."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Pipeline, fn, pipeline_def, types
from headrace.errors import ArgumentTypeError, CheckpointError, UsageError
from headrace.executor.checkpoint import PipelineCheckpoint
from headrace.operators.support.registry import all_schemas

COUNT = 10


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{k}.bin" for k in range(COUNT)]
    for k, path in enumerate(paths):
        path.write_bytes(bytes([k]))
    return [str(path) for path in paths]


def reading(
    files: list[str],
    batch_size: int = 3,
    *,
    name: str | None = "R",
    engine: Any = None,
    **args: Any,
) -> Pipeline:
    options = {"seed": 1, "enable_checkpointing": True, **(engine or {})}
    pipe = Pipeline(batch_size, 2, None, **options)
    with pipe:
        _, label = fn.readers.file(files=files, name=name, **args)
        pipe.set_outputs(label, fn.random.uniform())
    return pipe


def fed(source: Any, checkpoint: bytes | None = None, **keywords: Any) -> Pipeline:
    pipe = Pipeline(2, 1, None, enable_checkpointing=True, checkpoint=checkpoint)
    with pipe:
        pipe.set_outputs(fn.external_source(source, **keywords))
    return pipe


def labels(pipe: Pipeline, batches: int = 1) -> list[int]:
    return [int(v) for _ in range(batches) for v in np.asarray(pipe.run()[0].as_array()).ravel()]


def resumed(pipe: Pipeline, make: Any, **arguments: Any) -> Pipeline:
    return make(engine={"checkpoint": pipe.checkpoint()}, **arguments)


# -- making them --------------------------------------------------------------------------------


def test_before_the_first_run_and_before_the_build(files: list[str]) -> None:
    pipe = reading(files)
    assert not pipe.is_restored_from_checkpoint
    first = pipe.checkpoint()
    assert labels(pipe, 2) == [0, 1, 2, 3, 4, 5]
    again = reading(files, engine={"checkpoint": first})
    assert not again.is_restored_from_checkpoint
    again.build()
    assert again.is_restored_from_checkpoint
    assert labels(again, 2) == [0, 1, 2, 3, 4, 5]


def test_what_is_worked_on_ahead_is_not_lost(files: list[str]) -> None:
    pipe = reading(files, engine={"prefetch_queue_depth": 5})
    for _ in range(3):
        pipe.schedule_run()
    for k in range(4):
        pipe.share_outputs()
        pipe.release_outputs()
        again = resumed(pipe, reading, files=files)
        assert labels(again) == [(3 * k + 3 + i) % COUNT for i in range(3)]


def test_small(files: list[str]) -> None:
    pipe = reading(files, random_shuffle=True)
    labels(pipe, 20)
    assert len(pipe.checkpoint()) < 1000


def test_into_a_file(files: list[str], tmp_path: Path) -> None:
    pipe = reading(files)
    path = tmp_path / "latest.checkpoint"
    path.write_bytes(b"something older and longer" * 1000)
    labels(pipe)
    assert pipe.checkpoint(str(path)) == path.read_bytes() == pipe.checkpoint()
    assert [p.name for p in tmp_path.iterdir()] == ["latest.checkpoint"]
    with pytest.raises(FileNotFoundError):
        pipe.checkpoint(tmp_path / "nowhere" / "x")
    with pytest.raises(IsADirectoryError):
        pipe.checkpoint(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["latest.checkpoint"]


def test_must_be_asked_for(files: list[str]) -> None:
    pipe = reading(files, engine={"enable_checkpointing": False})
    with pytest.raises(UsageError, match="enable_checkpointing=True"):
        pipe.checkpoint()
    other = reading(files, engine={"enable_checkpointing": False, "checkpoint": b"x"})
    with pytest.raises(UsageError, match="enable_checkpointing=True"):
        other.build()


def test_operators_outside_of_the_definition(files: list[str]) -> None:
    outside = fn.random.uniform()
    pipe = Pipeline(2, 1, None, enable_checkpointing=True)
    pipe.set_outputs(outside)
    words = (  # DALI's, from "not" to "operator" and "outside the pipeline"
        r"not support checkpointing, because it contains operator `fn.random.uniform`, which was "
        r"created outside the pipeline, at .*test_checkpoints"
    )
    with pytest.raises(UsageError, match=words):
        pipe.build()


# -- restoring ------------------------------------------------------------------------------------


def test_by_a_definition(files: list[str]) -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, enable_checkpointing=True)
    def numbers():
        return fn.readers.file(files=files)[1]

    pipe = numbers()
    labels(pipe)
    assert labels(numbers(checkpoint=pipe.checkpoint())) == [3, 4, 5]


def test_another_batch_size_goes_on_at_the_same_sample(files: list[str]) -> None:
    pipe = reading(files)
    labels(pipe, 2)
    assert labels(resumed(pipe, reading, files=files, batch_size=4), 2) == [6, 7, 8, 9, 0, 1, 2, 3]


def test_seeds_come_from_the_checkpoint(files: list[str]) -> None:
    def make(seed: int | None, checkpoint: bytes | None = None) -> Pipeline:
        engine = {"seed": seed, "checkpoint": checkpoint}
        return reading(files, random_shuffle=True, engine=engine)

    pipe = make(None)
    labels(pipe, 5)
    again = make(77, pipe.checkpoint())
    for _ in range(6):
        for a, b in zip(pipe.run(), again.run(), strict=True):
            np.testing.assert_array_equal(a.as_array(), b.as_array())


def test_after_errors(files: list[str], tmp_path: Path) -> None:
    names = [*files[:4], str(tmp_path / "missing"), *files[5:]]
    pipe = reading(names)
    labels(pipe)
    with pytest.raises(RuntimeError, match="missing"):
        pipe.run()
    again = resumed(pipe, reading, files=names)
    assert labels(again) == labels(pipe) == [6, 7, 8]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"files": 5}, r"`number of samples` is 5 and was 10"),
        ({"pad_last_batch": True}, r"`pad_last_batch` is True and was False"),
        ({"random_shuffle": True}, r"`initial_fill` is 1024 and was None; `random_shuffle` is Tr"),
        ({"shuffle_after_epoch": True}, r"`shuffle_after_epoch` is True"),
        ({"stick_to_shard": True, "num_shards": 2}, r"`stick_to_shard` is True and was False\."),
    ],
)
def test_readers_that_read_something_else(files: list[str], arguments: Any, what: str) -> None:
    pipe = reading(files)
    arguments = {"files": files, **arguments}
    if arguments["files"] == 5:
        arguments["files"] = files[:5]
    with pytest.raises(CheckpointError, match=rf'reader "R", created at .*: {what}'):
        resumed(pipe, reading, **arguments).build()


def test_window_that_is_not_used_may_differ(files: list[str]) -> None:
    pipe = reading(files, initial_fill=5)
    resumed(pipe, reading, files=files, initial_fill=6).build()


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 9])
def test_the_checkpoint_of_one_shard_serves_the_others(
    files: list[str], shuffle: bool, pad: bool, stick: bool, steps: int
) -> None:
    args = {"random_shuffle": shuffle, "initial_fill": 4, "pad_last_batch": pad}
    args |= {"stick_to_shard": stick, "num_shards": 3}

    def make(shard: int, checkpoint: bytes | None = None) -> Pipeline:
        engine = {"seed": 1, "checkpoint": checkpoint}
        return reading(files, 2, engine=engine, shard_id=shard, **args)

    first = make(0)
    first._restart_epoch()
    labels(first, steps)
    for shard in (1, 2):
        whole = make(shard)
        whole._restart_epoch()
        labels(whole, steps)
        again = make(shard, first.checkpoint())
        assert labels(again, 8) == labels(whole, 8)
        again._restart_epoch()
        whole._restart_epoch()
        assert labels(again, 3) == labels(whole, 3)


def test_another_graph(files: list[str]) -> None:
    checkpoint = reading(files).checkpoint()

    def build(define: Any) -> None:
        pipe = Pipeline(3, 1, None, enable_checkpointing=True, checkpoint=checkpoint)
        with pipe:
            pipe.set_outputs(*define())
        pipe.build()

    with pytest.raises(CheckpointError, match=r'checkpoint has "R", which the pipeline does not'):
        build(lambda: [fn.random.uniform()])
    with pytest.raises(CheckpointError, match=r'has "random.normal #0", which the checkpoint does'):
        build(
            lambda: [
                fn.readers.file(files=files, name="R")[1],
                fn.random.uniform(),
                fn.random.normal(),
            ]
        )
    with pytest.raises(CheckpointError, match=r'"R" is `fn.random.normal` and was `fn.readers.fil'):
        build(lambda: [fn.random.normal(name="R"), fn.random.uniform()])
    # What draws nothing and reads nothing may come and go.
    build(
        lambda: [
            fn.cast(fn.copy(fn.readers.file(files=files, name="R")[1]), dtype=types.FLOAT),
            fn.random.uniform() + 1,
        ]
    )


def test_names_that_look_generated(files: list[str]) -> None:
    def make(checkpoint: bytes | None = None) -> Pipeline:
        pipe = Pipeline(2, 1, None, seed=3, enable_checkpointing=True, checkpoint=checkpoint)
        with pipe:
            pipe.set_outputs(fn.random.uniform(name="random.uniform #0"), fn.random.uniform())
        return pipe

    pipe = make()
    pipe.run()
    assert len(PipelineCheckpoint.unpacked(pipe.checkpoint()).operators) == 2
    for a, b in zip(make(pipe.checkpoint()).run(), pipe.run(), strict=True):
        np.testing.assert_array_equal(a.as_array(), b.as_array())


@pytest.mark.parametrize("data", [b"", b"abc", "text", reading])
def test_garbage(files: list[str], data: Any) -> None:
    error = CheckpointError if isinstance(data, (bytes, str)) else ArgumentTypeError
    with pytest.raises(error):
        reading(files, engine={"checkpoint": data}).build()


# -- external sources -----------------------------------------------------------------------------


def batches(count: int) -> Any:
    return (np.full((2, 1), k, np.int32) for k in range(count))


def test_functions_without_argument_cannot_be_resumed() -> None:
    state = {"calls": 0}

    def source() -> Any:
        state["calls"] += 1
        return np.full((2, 1), state["calls"], np.int32)

    pipe = fed(source)
    with pytest.warns(UserWarning, match=r"test_checkpoints.*is a function without argument"):
        pipe.build()
    labels(pipe)
    calls = state["calls"]
    again = fed(source, pipe.checkpoint())
    with pytest.warns(UserWarning, match="does not know where it stands"):
        again.build()
    assert labels(again) == [calls + 1] * 2


def test_generators_that_have_begun() -> None:
    source = batches(9)
    pipe = fed(source)
    assert labels(pipe, 2) == [0, 0, 1, 1]
    again = fed(batches(9), pipe.checkpoint())
    assert labels(again) == [2, 2]
    again = fed(source, pipe.checkpoint())
    with pytest.warns(UserWarning, match="has begun already, and goes on where it is"):
        again.build()
    assert labels(again) == [3, 3]  # one had been taken ahead


def test_sources_that_have_become_shorter() -> None:
    pipe = fed(batches(9))
    labels(pipe, 5)
    with pytest.raises(CheckpointError, match="after 3 of the 5 batches") as caught:
        fed(batches(3), pipe.checkpoint()).build()
    assert "test_checkpoints.py" in caught.value.__notes__[0]
    pipe = fed([[k] for k in range(9)], batch=False, cycle="raise")
    labels(pipe, 2)
    with pytest.raises(CheckpointError, match="after 3 of the 4 samples"):
        fed([[k] for k in range(3)], pipe.checkpoint(), batch=False, cycle="raise").build()


def test_sources_of_another_kind() -> None:
    pipe = fed(batches(9))
    labels(pipe)
    with pytest.raises(CheckpointError, match=r"is of the kind 'position'; .* 'iterable'"):
        fed(lambda k: np.full((2, 1), k), pipe.checkpoint()).build()
    with pytest.raises(CheckpointError, match="is of the kind 'fed'"):
        fed(None, pipe.checkpoint()).build()


@pytest.mark.parametrize(
    ("state", "what"), [(b"x", "a bytes"), ({1: 2}, "no text"), ([{"a": np.zeros(3)}], "a ndarray")]
)
def test_states_that_cannot_be_kept(state: Any, what: str) -> None:
    class Source:
        def __call__(self, k: int) -> Any:
            return np.full((2, 1), k, np.int32)

        def state_dict(self) -> Any:
            return state

        def load_state_dict(self, state: Any) -> None: ...

    with pytest.raises(UsageError, match=rf"a Source, holds .*{what}"):
        fed(Source()).run()


def test_what_is_fed_has_to_be_fed_again() -> None:
    pipe = fed(None, name="E")
    for k in range(4):
        pipe.feed_input("E", np.full((2, 1), k, np.int32))
    labels(pipe, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fed(None, pipe.checkpoint(), name="E")
        again.build()
    assert again._engine.prefetch.number == 2
    for k in range(2, 4):
        again.feed_input("E", np.full((2, 1), k, np.int32))
    assert labels(again, 2) == labels(pipe, 2)


def test_at_the_end_of_the_data() -> None:
    pipe = fed([np.full((2, 1), k, np.int32) for k in range(3)], cycle="raise")
    labels(pipe, 3)
    with pytest.raises(StopIteration):
        pipe.run()
    again = fed([np.full((2, 1), k, np.int32) for k in range(3)], pipe.checkpoint(), cycle="raise")
    with pytest.raises(StopIteration):
        again.run()
    again.reset()
    assert labels(again) == [0, 0]


def test_every_reader_can_be_resumed() -> None:
    readers = [s for s in all_schemas() if s.reader and not s.name.startswith("testing.")]
    assert len(readers) > 0
    for schema in readers:
        for name in ("state", "restore", "follow", "identity"):
            assert callable(getattr(schema.cls, name, None)), f"{schema.name} has no `{name}`"

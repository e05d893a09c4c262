"""Errors of dynamic mode say what DALI's say in the words that programs search their texts for."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
import pytest

from tests.parity.outcomes import DALI, HEADRACE, Library, assert_same
from tests.parity.words import Rows, Scenario, check_words


def dynamic(lib: Library) -> Any:
    return importlib.import_module(f"{lib.module.__name__}.experimental.dynamic")


def called(source: Any, **settings: Any) -> Scenario:
    """A source of dynamic mode, asked once."""
    return lambda lib: dynamic(lib).ExternalSource(source, **settings)()


def loaded(entry: Any, version: int = 2) -> Scenario:
    """A checkpoint with one entry, read."""
    text = json.dumps({"version": version, "states": {"rng": entry}})
    return lambda lib: dynamic(lib).checkpoint.Checkpoint().deserialize(text)


def registered(first: str | None, second: str | None, *, collected: bool) -> Scenario:
    """A checkpoint of which a generator of another name is registered after it has states."""

    def scenario(lib: Library) -> None:
        ndd = dynamic(lib)
        saved = ndd.checkpoint.Checkpoint()
        saved.register(ndd.random.RNG(seed=1), first)
        saved.collect()
        if not collected:
            text, saved = saved.serialize(), ndd.checkpoint.Checkpoint()
            saved.deserialize(text)
        saved.register(ndd.random.RNG(seed=2), second)

    return scenario


def of_another_type(how: str) -> Scenario:
    def scenario(lib: Library) -> None:
        ndd = dynamic(lib)
        saved = ndd.checkpoint.Checkpoint()
        if how == "state":
            saved.set_state("x", "", op_type=ndd.readers.File)
        else:
            saved.register(ndd.readers.File(files=["a"]), "x")
        saved.register(ndd.random.RNG(seed=1), "x")

    return scenario


def reader(lib: Library) -> Any:
    return dynamic(lib).readers.File(files=[__file__] * 3)


def epochs(*settings: dict[str, Any]) -> Scenario:
    """One step of each of several epochs of a reader."""

    def scenario(lib: Library) -> None:
        read = reader(lib)
        for kwargs in settings:
            next(iter(read.next_epoch(**kwargs)))

    return scenario


def state_set_late(lib: Library) -> None:
    read = dynamic(lib).readers.File(files=[__file__] * 3, enable_checkpointing=True)
    next(iter(read.next_epoch(batch_size=1)))
    read.set_state(read.get_state())


def in_file(name: str, method: str) -> Scenario:
    """A checkpoint, saved to a file or loaded from it."""

    def scenario(lib: Library) -> None:
        saved = dynamic(lib).checkpoint.Checkpoint()
        saved.register(dynamic(lib).random.RNG(seed=1))
        saved.collect()
        getattr(saved, method)(name)

    return scenario


def one_tensor(lib: Library) -> None:
    """Samples of different shapes as one tensor."""
    ndd = dynamic(lib)
    with ndd.EvalMode.sync_cpu:
        ndd.as_tensor(ndd.batch([[1, 2], [3]]))


def source_in(loop: str) -> Scenario:
    """A source that is called where it, or another one, is captured."""

    def scenario(lib: Library) -> None:
        ndd = dynamic(lib)

        def made(count: int) -> Any:
            return ndd.ExternalSource([ndd.batch([[k], [k]]) for k in range(count)])

        source, other = made(1 if loop == "longer" else 3), made(3)
        if loop == "later":
            source()
        if loop == "earlier":
            source.captured(batch_size=2)
            source()
        for data in (other if loop == "longer" else source).captured(batch_size=2):
            ndd.cast(data, dtype=ndd.int64)
            ndd.cast(source(), dtype=ndd.int64)

    return scenario


PAIR = (np.zeros(3), np.zeros(3))
DYNAMIC: Rows = [
    (called(lambda: PAIR[:1], num_outputs=2), "expected 2 outputs"),
    (called(lambda info: PAIR[0]), "no parameters"),
    (called(lambda: PAIR, num_outputs=2, layout=["A"]), "expected a sequence of size 2"),
    (
        lambda lib: dynamic(lib).ExternalSource(lambda: dynamic(lib).batch([[1], [2]]))(
            batch_size=5
        ),
        "expected batch size 5",
    ),
    (lambda lib: dynamic(lib).Device("cpu:99"), "invalid device id"),
    (lambda lib: dynamic(lib).Device("gpu:0", 0), "invalid device name"),
    (lambda lib: dynamic(lib).batch([]), "element type"),
    (lambda lib: dynamic(lib).tensor(np.zeros((2, 3)), layout="ABC"), "dimensions"),
    (lambda lib: list(reader(lib).next_epoch(capture=True)), "requires a non-none batch_size"),
    (lambda lib: reader(lib).get_state(), "before its first iteration"),
    (lambda lib: reader(lib).set_state(42), "readerstate"),
    (loaded({"state": "", "type": "RNG"}, version=1), "version"),
    (loaded("text"), "invalid checkpoint entry"),
    (loaded({"type": "RNG"}), "invalid checkpoint entry"),
    (loaded({"state": "", "type": 42}), "invalid `type`"),
    (registered("a", None, collected=False), "loaded checkpoint has no state"),
    (registered("a", None, collected=True), "completed"),
    (of_another_type("state"), "type mismatch"),
    (of_another_type("object"), "cannot replace operator"),
    (lambda lib: dynamic(lib).checkpoint.Checkpoint().serialize(), "empty"),
    (in_file("/nowhere/x.json", "save"), "seq"),
    (in_file("/nowhere/x.json", "load"), "seq"),
    (state_set_late, "after iteration has begun"),
    (
        epochs({"batch_size": 1}, {"batch_size": 1, "capture": True}),
        "cannot switch to capture mode",
    ),
    (epochs({"batch_size": 1, "capture": True}, {"batch_size": 1}), "cannot switch to eager mode"),
    (
        epochs({"batch_size": 1, "capture": True}, {"batch_size": 2, "capture": True}),
        "cannot change batch_size",
    ),
    (source_in("later"), "used eagerly"),
    (source_in("earlier"), "already used in a capture-mode loop"),
    (source_in("own"), "used through .captured()"),
    (source_in("longer"), "exhausted"),
    (one_tensor, "non-uniform shape"),
    (one_tensor, "pad"),
    # The number of axes is looked at before the element type.
    (lambda lib: dynamic(lib).resize(np.zeros((5, 5))), "dimensions"),
]


def test_both_say_it():
    check_words(DYNAMIC)


@pytest.mark.parametrize("mode", ["deferred", "eager"])
@pytest.mark.parametrize("function", ["as_tensor", "tensor"])
def test_samples_of_different_shapes_as_one_tensor_are_an_error_of_the_call(mode, function):
    def made(lib):
        ndd = dynamic(lib)
        with getattr(ndd.EvalMode, mode):
            return getattr(ndd, function)(ndd.batch([[1, 2], [3]]) + 1)

    later = made(DALI)
    with pytest.raises(ValueError):
        later.evaluate()
    with pytest.raises(ValueError, match=r"ndd\.as_tensor\(batch, pad=True\)"):
        made(HEADRACE)


def test_what_is_behind_tensors_of_dynamic_mode():
    def scenario(lib):
        ndd = dynamic(lib)
        with ndd.EvalMode.sync_cpu:
            tensor = ndd.tensor([1, 2, 3], layout="A")
            batch = ndd.batch([[1.0], [2.0, 3.0]], layout="B")
        with ndd.EvalMode.deferred:
            waiting = tensor + 1
            before = waiting._storage, waiting._invocation_result._invocation._results
            known = waiting.dtype.name, waiting.ndim, waiting.layout, waiting._storage
        found = [tensor._storage, ndd.as_tensor(tensor._storage)._storage, batch._storage]
        same = tensor._is_same_tensor(tensor), tensor._is_same_tensor(ndd.tensor(tensor))
        kinds = [isinstance(each, lib.TensorCPU) for each in found]
        after = waiting.evaluate()._storage
        done = waiting._invocation_result._invocation._results is not None
        return found, same, kinds, before, known, after, done

    assert_same(scenario)

"""Errors of dynamic mode say what DALI's say in the words that programs search their texts for."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from tests.parity.outcomes import Library, assert_same
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
]


def test_both_say_it():
    check_words(DYNAMIC)


def test_what_is_behind_tensors_of_dynamic_mode():
    def scenario(lib):
        ndd = dynamic(lib)
        with ndd.EvalMode.sync_cpu:
            tensor = ndd.tensor([1, 2, 3], layout="A")
            batch = ndd.batch([[1.0], [2.0, 3.0]], layout="B")
        with ndd.EvalMode.deferred:
            waiting = tensor + 1
            before = waiting._storage
        found = [tensor._storage, ndd.as_tensor(tensor._storage)._storage, batch._storage]
        same = tensor._is_same_tensor(tensor), tensor._is_same_tensor(ndd.tensor(tensor))
        kinds = [isinstance(each, lib.TensorCPU) for each in found]
        return found, same, kinds, before, waiting.evaluate()._storage

    assert_same(scenario)

"""Pipelines as transforms in the workers of a `DataLoader`."""

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch.experimental import proxy as dali_proxy

SETTINGS = {"batch_size": 4, "num_threads": 2, "prefetch_queue_depth": 3}


@pipeline_def(**SETTINGS)
def doubled():
    x = fn.external_source(name="x")
    return fn.cast(x * 2, dtype=types.INT64)


@pipeline_def(**SETTINGS)
def sums():
    a = fn.external_source(name="a", dtype=types.FLOAT)
    b = fn.external_source(name="b", dtype=types.FLOAT)
    return a + b, a - b


class Pair(NamedTuple):
    left: Any
    right: Any


class Numbers(Dataset):
    """Arrays, transformed, beside their numbers."""

    def __init__(self, transform, count=14):
        self.transform = transform
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.transform(np.full(3, index, np.int32)), index


def check(batches, count=14):
    seen = []
    for data, target in batches:
        assert isinstance(data, torch.Tensor)
        assert data.dtype == torch.int64
        assert data.tolist() == [[2 * t] * 3 for t in target.tolist()]
        seen += target.tolist()
    assert seen == list(range(count))


@pytest.mark.sweep
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [{"num_workers": 2}, {"num_workers": 0}, {"num_workers": 1, "persistent_workers": True}],
    ids=["two", "none", "persistent"],
)
def test_a_loader(deterministic, arguments):
    with dali_proxy.DALIServer(doubled(), deterministic=deterministic) as server:
        loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, **arguments)
        assert len(loader) == 4
        for _ in range(2):
            check(loader)
        for batch in loader:  # and stop early
            assert batch[0].shape == (4, 3)
            break
        check(loader)


def test_the_loader_of_pytorch_and_a_server_that_is_started_late():
    server = dali_proxy.DALIServer(doubled())
    loader = DataLoader(Numbers(server.proxy), batch_size=4, num_workers=1)
    with server:
        batches = list(loader)
        assert "DALIOutputBatchRef" in repr(batches[0][0])
        batches = batches[::-1]  # in any order
        produced = server.produce_data(batches)
        assert produced is batches
        check(produced[::-1])
    with pytest.raises(RuntimeError, match="does not run"):
        server.produce_data(list(DataLoader(Numbers(server.proxy), batch_size=4)))
    ours = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=2)
    check(ours)
    server.stop_thread()


def test_a_loader_that_page_locks_its_batches(monkeypatch):
    pinned = []

    def pin_memory(tensor, device=None):
        copied = tensor.clone()
        pinned.append(copied)
        return copied

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cpu"))
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda t: any(t is p for p in pinned))
    with dali_proxy.DALIServer(doubled()) as server:
        numbers = Numbers(server.proxy)
        loader = dali_proxy.DataLoader(server, numbers, batch_size=4, pin_memory=True)
        batches = list(loader)
    check(batches)
    assert all(data.is_pinned() and target.is_pinned() for data, target in batches)


def test_several_inputs_and_outputs_in_any_structure():
    class Record:
        def __init__(self, value):
            self.value = value
            self.itself = self

    with dali_proxy.DALIServer(sums()) as server:
        rng = np.random.default_rng(2)
        inputs = [(rng.random((3, 2), np.float32), torch.rand(3, 2)) for _ in range(4)]
        samples = [(*server.proxy(a=a, b=b), a) for a, b in inputs]
        total, difference, a = default_collate(samples)
        circle = [total]
        circle.append(circle)
        found = server.produce_data(
            {"pair": Pair(total, [difference, 7]), "record": Record(total), "circle": circle}
        )
        expected = np.stack([a + b.numpy() for a, b in inputs])
        np.testing.assert_array_equal(found["pair"].left.numpy(), expected)
        assert isinstance(found["pair"], Pair)
        assert found["pair"].right[1] == 7
        np.testing.assert_array_equal(
            found["pair"].right[0].numpy(), np.stack([a - b.numpy() for a, b in inputs])
        )
        assert found["record"].value is found["pair"].left
        assert found["circle"][0] is found["pair"].left
        assert found["circle"][1] is found["circle"]
        assert a.shape == (4, 3, 2)


def test_mistakes_and_errors_of_the_pipeline():
    with pytest.raises(TypeError, match="Expected a Headrace pipeline"):
        dali_proxy.DALIServer(3)
    without = pipeline_def(lambda: fn.random.uniform())(**SETTINGS)
    with pytest.raises(RuntimeError, match="doesn't have any inputs"):
        dali_proxy.DALIServer(without)
    with dali_proxy.DALIServer(sums()) as server:
        for args, kwargs in (
            ((np.zeros(3),), {}),
            ((), {"a": 1}),
            ((), {"a": 1, "b": 2, "c": 3}),
            ((1, 2), {}),
        ):
            with pytest.raises(ValueError, match=r"Expected signature is: \(\*, a, b\)"):
                server.proxy(*args, **kwargs)
        with pytest.raises(ValueError, match="too many positional arguments"):  # DALI's words
            server.proxy(1, 2)
        good = {"a": np.zeros(3, np.float32), "b": np.ones(3, np.float32)}
        one, two = ([server.proxy(**good) for _ in range(2)] for _ in range(2))
        with pytest.raises(RuntimeError, match="same batch"):
            default_collate([one[0][0], one[1][1]])
        first = default_collate([s[0] for s in one])
        with pytest.raises(RuntimeError, match="same batch"):
            default_collate([one[0][1]])
        with pytest.raises(RuntimeError, match="same batch"):
            default_collate([one[0][1], two[0][1]])
        with pytest.raises(RuntimeError, match="was not collated"):
            server.produce_data([two[0][0]])
        # An error belongs to its batch; the others are right.
        bad = default_collate([server.proxy(a=np.zeros(3), b=good["b"])])
        large = default_collate([server.proxy(**good) for _ in range(5)])
        broken = default_collate([server.proxy(a=np.zeros(2, np.float32), b=good["b"])])
        last = default_collate(two)
        with pytest.raises(TypeError, match="float64"):
            server.produce_data(bad)
        with pytest.raises(RuntimeError, match="batch_size"):
            server.produce_data(large)
        with pytest.raises(RuntimeError, match="broadcast"):
            server.produce_data(broken)
        assert server.produce_data(last)[0].tolist() == [[1.0] * 3] * 2
        assert server.produce_data(first).tolist() == [[1.0] * 3] * 2
        ragged = default_collate([server.proxy(a=np.ones(k, np.float32), b=1.0) for k in (1, 2)])
        with pytest.raises((ValueError, TypeError)):
            server.produce_data(ragged)
    with dali_proxy.DALIServer(doubled()) as server:
        one = default_collate([server.proxy(5), server.proxy(x=6)])
        assert server.produce_data(one).tolist() == [10, 12]


def test_a_server_that_is_dropped_ends_its_thread():
    server = dali_proxy.DALIServer(doubled())
    server.start_thread()
    server.start_thread()
    thread = server._thread
    del server
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_a_deterministic_server_draws_in_order():
    @pipeline_def(seed=3, **SETTINGS)
    def p():
        return fn.external_source(name="x"), fn.random.uniform()

    runs = []
    for workers in (0, 2):
        with dali_proxy.DALIServer(p(), deterministic=True) as server:
            loader = dali_proxy.DataLoader(
                server, Numbers(server.proxy), batch_size=4, num_workers=workers
            )
            runs.append([draws.tolist() for (_, draws), _ in loader])
    assert runs[0] == runs[1]

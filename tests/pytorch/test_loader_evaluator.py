"""How long a training waits for its data."""

from __future__ import annotations

import json

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from headrace.plugin.pytorch.loader_evaluator import LoaderEvaluator

KEYS = {
    *("mode", "total_batches", "total_time", "avg_batch_time", "min_batch_time"),
    *("max_batch_time", "batch_times", "cached_batches", "cache_ready"),
}


def loader(count=7):
    return DataLoader(TensorDataset(torch.arange(2 * count)), batch_size=2)


def values(batches):
    return [batch[0].tolist() for batch in batches]


def test_times_are_taken(tmp_path, capsys):
    evaluator = LoaderEvaluator(loader(), metrics_file=tmp_path / "times.json")
    assert evaluator.get_metrics() == {}
    assert len(evaluator) == 7
    assert values(evaluator) == values(loader())
    metrics = evaluator.get_metrics()
    assert metrics.keys() == KEYS
    assert metrics["total_batches"] == 7 == len(metrics["batch_times"])
    assert metrics["min_batch_time"] <= metrics["avg_batch_time"] <= metrics["max_batch_time"]
    assert sum(metrics["batch_times"]) <= metrics["total_time"]
    assert (metrics["mode"], metrics["cache_ready"]) == ("log", False)
    evaluator.save_metrics()
    assert json.loads((tmp_path / "times.json").read_text()) == metrics
    evaluator.print_summary()
    printed = capsys.readouterr().out
    for line in ("Dataset size: 14", "Number of batches: 7", "Total batches processed: 7"):
        assert line in printed


def test_batches_are_replayed():
    asked = []

    class Counting:
        def __iter__(self):
            asked.append(1)
            return iter(range(7))

    evaluator = LoaderEvaluator(Counting(), mode="replay", num_cached_batches=3)
    for _ in range(2):
        assert list(evaluator) == [4, 5, 6, 4, 5, 6, 4]
    assert asked == [1]
    assert evaluator.cache_ready
    assert evaluator.get_metrics()["cached_batches"] == 3


def test_mistakes():
    with pytest.warns(UserWarning, match='taken for "log"'):
        other = LoaderEvaluator(loader(), mode="fast")
    assert values(other) == values(loader())
    with pytest.raises(ValueError, match="num_cached_batches"):
        LoaderEvaluator(loader(), num_cached_batches=0)
    with pytest.raises(RuntimeError, match="No cached batches"):
        iter(LoaderEvaluator([], mode="replay"))
    with pytest.warns(UserWarning, match="give `filename`"):
        LoaderEvaluator(loader()).save_metrics()


def test_a_loader_without_a_length(capsys):
    evaluator = LoaderEvaluator(iter([1, 2, 3]))
    with pytest.raises(TypeError):
        len(evaluator)
    evaluator.print_summary()
    assert "Number of batches" not in capsys.readouterr().out
    replayed = LoaderEvaluator(iter([1, 2, 3]), mode="replay", num_cached_batches=2)
    assert len(replayed) == len(list(replayed)) == 3
    replayed.print_summary()
    assert "Number of batches: 3" in capsys.readouterr().out

"""`LoaderEvaluator`, in DALI and here."""

from __future__ import annotations

import nvidia.dali.plugin.pytorch.loader_evaluator as theirs
import pytest

import headrace.plugin.pytorch.loader_evaluator as ours


class Loader:
    def __len__(self):
        return 7

    def __iter__(self):
        return iter(range(7))


@pytest.mark.parametrize("mode", ["log", "replay"])
@pytest.mark.parametrize("cached", [1, 3, 20])
def test_batches_and_metrics(mode, cached):
    found = []
    for module in (theirs, ours):
        loader = module.LoaderEvaluator(Loader(), mode=mode, num_cached_batches=cached)
        before = loader.get_metrics()
        batches = [*loader, *loader]
        metrics = loader.get_metrics()
        plain = {k: v for k, v in metrics.items() if "time" not in k}
        found.append((before, batches, plain, metrics.keys(), len(metrics["batch_times"])))
    assert found[0] == found[1]

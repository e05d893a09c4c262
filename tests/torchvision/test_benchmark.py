"""The benchmark runs, and the figures in the documents are those that it wrote."""

from __future__ import annotations

import json
import sys

from tests.e2e.support import REPOSITORY

from benchmarks import torchvision as benchmark  # isort: skip


def test_figures_in_the_documents_are_those_of_the_run():
    figures = json.loads(benchmark.FIGURES.read_text())
    text = benchmark.RESULTS.read_text()
    assert benchmark.written(figures, text) == text
    assert list(figures) == list(benchmark.CASES)
    rows = {row.partition(": ")[0] for row in figures["transforms"]}
    assert rows == benchmark.TRANSFORMS.keys()
    guide = (REPOSITORY / "docs/from-torchvision.md").read_text()
    for case, row in (
        ("composites", "crop, flip, jitter, normalise: PIL"),
        ("composites", "crop, flip, jitter, normalise: 16 tensors"),
        ("loader", "crop, flip, normalise: by processor"),
    ):
        by = figures[case][row]
        times = by["torchvision"] / by["Headrace"]
        times = 1 / times if case == "loader" else times
        assert f"| {row} | {times:.1f} |" in guide


def test_the_benchmark_runs(tmp_path, monkeypatch, capsys):
    target = tmp_path / "figures.json"
    command = ["torchvision", "--case", "transforms", "--only", "Grayscale", "--only", "ToImage"]
    options = ["--rounds", "1", "--seconds", "0.01", "--json", str(target)]
    monkeypatch.setattr(sys, "argv", [*command, *options])
    monkeypatch.setattr(benchmark, "_dali", lambda: None)  # takes long to begin
    benchmark.main()
    figures = json.loads(target.read_text())
    assert figures["transforms"].keys() == {
        *(f"{name}: {kind}" for name in ("Grayscale", "ToImage") for kind in ("PIL", "tensor")),
        *(f"RandomGrayscale: {kind}" for kind in ("PIL", "tensor")),
    }
    assert all(by["Headrace"] > 0 < by["torchvision"] for by in figures["transforms"].values())
    assert "| ToImage: PIL | " in capsys.readouterr().out

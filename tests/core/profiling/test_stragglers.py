"""Reports of ranks: which rank's which operator is slow."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace
from headrace import Pipeline, errors, fn


def report(rank, decode, resize=100.0, waits=0.1):
    return {
        "rank": rank,
        "host": f"node{rank}",
        "samples_per_second": 1000.0,
        "consumer_waits": waits,
        "operators": {"fn.decoders.image": decode, "fn.resize": resize},
    }


def test_slow_operators_of_a_rank_are_found(tmp_path):
    reports = [report(rank, 200.0 + rank) for rank in range(8)]
    reports[5] = report(5, 480.0, 320.0, 0.6)
    found = headrace.stragglers(reports)
    assert [(s.rank, s.operator) for s in found.slow] == [
        (5, "fn.decoders.image"),
        (5, "fn.resize"),
    ]
    assert found.slow[1].factor == pytest.approx(3.2)
    assert found.ranks[0]["rank"] == 5
    assert "rank 5 on node5: fn.decoders.image takes 480 microseconds a sample, 2.4" in str(found)
    assert headrace.stragglers(reports, factor=4).slow == []
    # Slow, and yet too little of all to matter.
    small = [
        {**r, "operators": {**r["operators"], "fn.flip": 2 + 38 * (r["rank"] == 5)}}
        for r in reports
    ]
    assert [s.operator for s in headrace.stragglers(small).slow] == [
        "fn.decoders.image",
        "fn.resize",
    ]
    for each in reports:
        (tmp_path / f"rank-{each['rank']}.json").write_text(json.dumps(each))
    assert str(headrace.stragglers(tmp_path)) == str(found)


def test_small_differences_are_none():
    reports = [report(k, 200 + 20 * k, 3 + 3 * k) for k in range(4)]
    found = headrace.stragglers(reports)
    assert found.slow == []
    assert "No operator is slow" in str(found)


def test_a_profile_makes_the_report(tmp_path, monkeypatch):
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    with headrace.profile() as profile:
        pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
        with pipe:
            images = fn.random.uniform(shape=(8, 8, 3), range=[0, 255])
            pipe.set_outputs(fn.crop_mirror_normalize(images))
        for _ in range(4):
            np.asarray(pipe.run()[0].as_array())
    assert profile.rank_report()["rank"] is None
    monkeypatch.setenv("SLURM_PROCID", "3")
    made = profile.rank_report(folder=tmp_path)
    assert json.loads((tmp_path / "rank-3.json").read_text()) == made
    assert made["rank"] == 3
    assert "fn.crop_mirror_normalize" in made["operators"]
    assert [r["rank"] for r in headrace.stragglers(tmp_path).ranks] == [3]
    (figures,) = profile.figures()
    said = figures.perfect_loader
    waits = figures.consumer_waits + figures.consumer_asks
    assert f"save {100 * min(waits, 0.999):.0f} % of the time of a step" in said
    times = 1 / (1 - min(waits, 0.999))
    assert f" {times:.{0 if times >= 10 else 2}f} times" in said
    profile.save(tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([],), errors.ArgumentValueError, "no report in `reports`"),
        (("/nowhere",), errors.ArgumentValueError, "no report in '/nowhere'"),
        (([{"rank": 1}],), errors.ArgumentTypeError, "Report 0 .* with rank, host"),
    ],
)
def test_mistakes(arguments, error, match):
    with pytest.raises(error, match=match):
        headrace.stragglers(*arguments)
    with pytest.raises(errors.ArgumentValueError, match="`factor` is 1;"):
        headrace.stragglers([report(0, 1)], factor=1)
    with pytest.raises(errors.UsageError, match="Nothing was recorded"):
        headrace.profiling.Profile().rank_report()

"""Number of workers by rates; arguments of workers; what is told."""

from __future__ import annotations

import pytest

pytest.importorskip("ray")

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UnknownArgumentError,
    UsageError,
)
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import LastBatchPolicy, RayIterator, distribute
from headrace.plugin.ray.scaling import wanted_workers
from tests.ray.iterators import NAMES, assert_same, epochs, numbered, started

PARTIAL = {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.PARTIAL}


@pytest.mark.parametrize(
    ("trainer", "worker", "now", "bounds", "wanted"),
    [
        (0.1, 0.32, 1, (1, 16), 4),  # 3.2 workers keep up, and a little more
        (0.1, 0.32, 8, (1, 16), 5),  # down, to what is enough for certain
        (0.1, 0.32, 5, (1, 16), 5),  # steady from then on
        (0.1, 0.32, 4, (1, 16), 4),
        (0.1, 0.02, 3, (1, 16), 1),  # a trainer that is slower than one worker
        (0.1, 0.02, 3, (2, 16), 2),
        (0.1, 9.0, 3, (1, 16), 16),
        (0.0, 0.1, 3, (1, 16), 16),  # a trainer that does nothing takes all there are
        (0.1, 0.0, 3, (1, 16), 3),  # nothing is known yet
        (0.1, 0.0, 1, (2, 16), 2),
    ],
)
def test_as_many_workers_as_the_trainer_takes(trainer, worker, now, bounds, wanted):
    assert wanted_workers(trainer, worker, now, *bounds) == wanted


def test_the_number_is_steady_at_any_rate():
    for ratio in (k / 7 for k in range(1, 90)):
        now = 1
        for _ in range(3):
            now = wanted_workers(1.0, ratio, now, 1, 99)
        assert wanted_workers(1.0, ratio, now, 1, 99) == now
        assert ratio < now <= ratio * 1.3 + 1


def test_workers_follow_the_rates(images, cluster):
    """A loop that does nothing takes all that workers make: their number goes up to the bound."""
    pipe = numbered(images, batch_size=1)
    expected = epochs(DALIGenericIterator(numbered(images, batch_size=1), NAMES, **PARTIAL), 2)
    iterator = RayIterator(pipe, NAMES, **PARTIAL, num_workers=(1, 3), resources={"num_cpus": 0.2})
    found = epochs(iterator, 2)
    assert_same(found, expected)
    assert iterator.statistics()[0]["ray_workers_wanted"] == 3
    started(iterator, 3)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_workers": 0}, ArgumentValueError, "`num_workers` is 0"),
        ({"num_workers": (4, 2)}, ArgumentValueError, "must not exceed"),
        ({"num_workers": "many"}, ArgumentTypeError, "a pair of"),
        ({"resources": {"num_gpus": 1}}, UnknownArgumentError, "run on processors"),
        ({"resources": {"num_cpus": 0}}, ArgumentValueError, "positive"),
        ({"resources": {"lifetime": "detached"}}, UnknownArgumentError, "lifetime"),
        ({"resources": 2}, ArgumentTypeError, "dictionary"),
        ({"ordered": 1}, ArgumentTypeError, "True or False"),
        ({"max_restarts": -2}, ArgumentValueError, "at least -1"),
        ({"bytes_in_flight": 0}, ArgumentValueError, "at least 1"),
        ({"start_timeout_seconds": 0}, ArgumentValueError, "positive"),
    ],
)
def test_wrong_options_are_named(images, options, error, text):
    with pytest.raises(error, match=text):
        distribute(numbered(images), **options)


def test_a_pipeline_is_put_on_a_cluster_once_and_before_it_runs(images, cluster):
    pipe = distribute(numbered(images))
    with pytest.raises(UsageError, match="already"):
        distribute(pipe)
    run = numbered(images)
    run.run()
    with pytest.raises(UsageError, match="has been run"):
        distribute(run)
    built = numbered(images)
    built.build()
    iterator = RayIterator(built, NAMES, **PARTIAL, prepare_first_batch=False)
    with pytest.raises(UsageError, match="No batch has been asked for"):
        iterator.cut  # noqa: B018
    assert len(iterator) == len(epochs(iterator, 1)[0])


def test_a_worker_that_finds_no_place_is_told_of(images, cluster):
    with pytest.raises(RuntimeError, match=r"No worker has started within 0.5 seconds.*'moon': 1"):
        RayIterator(
            numbered(images),
            NAMES,
            **PARTIAL,
            resources={"moon": 1},
            start_timeout_seconds=0.5,
        )


def test_the_profile_has_workers_and_the_way(images, cluster, tmp_path):
    from headrace import profile

    with profile(tmp_path / "page.html") as recorded:
        iterator = RayIterator(
            numbered(images), NAMES, **PARTIAL, num_workers=2, resources={"num_cpus": 0.2}
        )
        epochs(iterator, 2)
    (figures,) = recorded.figures()
    lanes = [lane.name for lane in figures.lanes]
    assert any(name.startswith("worker process 1 on ") for name in lanes)
    assert figures.workers == "processes"
    page = (tmp_path / "page.html").read_text()
    assert "worker process" in page
    assert figures.batches > 8

"""Metrics of pipelines through OpenTelemetry."""

from __future__ import annotations

import gc
import socket

import numpy as np
import pytest

from headrace import Pipeline, errors, fn
from headrace.profiling import Profile

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from headrace.plugin.otel import observe


@pytest.fixture
def metrics():
    """A provider, and a function that reads the values by metric and attributes."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])

    def read():
        data = reader.get_metrics_data()
        if data is None:
            return {}
        return {
            (metric.name, *sorted(point.attributes.items())): point.value
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    yield provider, read
    provider.shutdown()


def program(**arguments):
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None, workers="threads", **arguments)
    with pipe:
        images = fn.external_source(lambda: [np.zeros((8, 8, 3), np.uint8)] * 3, layout="HWC")
        pipe.set_outputs(fn.crop_mirror_normalize(images))
    return pipe


def test_what_is_counted_is_exported(metrics, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    provider, read = metrics
    pipe = program(profile=Profile(), prefetch_queue_depth=2)
    observe(pipe, name="training", meter_provider=provider)
    assert read() == {}  # not built yet
    for _ in range(3):
        pipe.run()
    pipe._executor.finish()
    found = read()
    own = (("host", socket.gethostname()), ("pipeline", "training"), ("rank", "2"))

    def value(name, **attributes):
        return found[name, *sorted([*own, *attributes.items()])]

    counters = pipe.counters()
    assert value("headrace.samples") == counters["samples"] >= 9
    assert value("headrace.iterations") == counters["iterations"] >= 3
    assert value("headrace.skipped_samples") == 0
    assert value("headrace.failed_iterations") == 0
    assert value("headrace.consumer_wait") == counters["consumer_wait_seconds"] > 0
    pending = pipe._executor.pending()
    assert value("headrace.queue.ready") == value("headrace.queue.depth") == pending > 0
    ready = value("headrace.memory", holder="ready", place="host")
    assert ready == pipe.memory_report().ready.host > 0
    assert value("headrace.process.memory") > 10_000_000
    assert value("headrace.operator.samples", operator="fn.crop_mirror_normalize") > 0
    assert value("headrace.operator.time", operator="fn.crop_mirror_normalize") > 0


def test_pipelines_are_told_apart_and_go(metrics, monkeypatch):
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    provider, read = metrics
    first, second = program(), program()
    observe(first, name="first", meter_provider=provider)
    observe(second, name="second", rank=7, meter_provider=provider)
    first.run()
    second.run()
    kinds = {key[1:] for key in read() if key[0] == "headrace.samples"}
    host = ("host", socket.gethostname())
    assert kinds == {
        (host, ("pipeline", "first")),
        (host, ("pipeline", "second"), ("rank", "7")),
    }
    assert not any(key[0].startswith("headrace.operator") for key in read())
    del first
    gc.collect()
    assert {dict(key[1:])["pipeline"] for key in read()} == {"second"}


def test_mistakes(metrics):
    with pytest.raises(errors.ArgumentTypeError, match="`pipe` is of type list"):
        observe([program()])

"""Metrics of pipelines through OpenTelemetry, and by its exporters to Prometheus and others.

``pip install 'headrace[otel]'``. Nothing is measured that is not counted anyway: the values are
read when the program's reader of metrics asks for them.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace._optional import import_optional
from headrace._version import __version__
from headrace.errors import ArgumentTypeError
from headrace.executor.iteration import DONE
from headrace.pipeline import Pipeline
from headrace.profiling.figures import Figures, figures_of
from headrace.profiling.stragglers import own_rank

__all__ = ["observe"]

_COUNTERS = {
    "iterations": ("iterations", "{batch}", "Iterations that were finished."),
    "samples": ("samples", "{sample}", "Samples in finished iterations."),
    "skipped_samples": ("skipped_samples", "{sample}", "Bad samples that were dropped."),
    "failed_iterations": ("failed_iterations", "{batch}", "Iterations that ended in an error."),
    "consumer_wait": ("consumer_wait_seconds", "s", "Time the program waited for batches."),
    "python_function": ("python_function_seconds", "s", "Time in functions of the user's."),
}
"""By the name of the metric, the entry of `Pipeline.counters`, the unit and the description."""

Values = Iterable[tuple[float, dict[str, str]]]


def observe(
    pipe: Pipeline,
    *,
    name: str = "pipeline",
    rank: int | None = None,
    meter_provider: Any = None,
) -> None:
    """Offer what a pipeline counts as metrics of OpenTelemetry, as long as the pipeline lives.

    ======================================  =======================================================
    metric                                  meaning
    ======================================  =======================================================
    ``headrace.iterations``, ``.samples``,  counters of `Pipeline.counters`
    ``.skipped_samples``,
    ``.failed_iterations``
    ``headrace.consumer_wait``,             seconds: near zero for a pipeline that keeps up, and
    ``headrace.python_function``            seconds in functions of the user's
    ``headrace.queue.ready``, ``.depth``    complete batches that wait, and iterations ahead
    ``headrace.memory``                     bytes, by ``place`` (host, device) and ``holder``
                                            (ready, in_progress, with_user, waiting_inputs)
    ``headrace.process.memory``             resident bytes of the process
    ``headrace.operator.time``,             seconds of threads, and samples, by ``operator``: with
    ``headrace.operator.samples``           ``Pipeline(profile=...)`` only. The rate of the
                                            decoder's samples is the decode rate.
    ======================================  =======================================================

    Each has the attributes ``pipeline``, ``host`` and, where there are several processes, ``rank``.

    Parameters
    ----------
    pipe
        The pipeline; it need not be built.
    name
        Value of the attribute ``pipeline``, to tell several apart.
    rank
        Value of the attribute ``rank``; by default what torchrun, MPI or Slurm say.
    meter_provider
        Provider of meters; by default the one that the program has set.

    Raises
    ------
    MissingDependencyError
        If OpenTelemetry is not installed.
    ArgumentTypeError
        If `pipe` is no pipeline.
    """
    if not isinstance(pipe, Pipeline):
        raise ArgumentTypeError(
            f"`pipe` is of type {type(pipe).__name__}; expected a Pipeline. Of an iterator, give "
            "the pipelines it was made of."
        )
    metrics = import_optional(
        "opentelemetry.metrics", purpose="`observe`", install="headrace[otel]"
    )
    own = {"pipeline": name, "host": socket.gethostname()}
    number = own_rank() if rank is None else rank
    if number is not None:
        own["rank"] = str(number)
    provider = meter_provider or metrics.get_meter_provider()
    with _lock:
        observed = _observed.get(provider)
        if observed is None:
            observed = _observed[provider] = weakref.WeakKeyDictionary()
            _create_instruments(metrics, provider, observed)
        observed[pipe] = own


_Observed = weakref.WeakKeyDictionary[Pipeline, dict[str, str]]
_observed: weakref.WeakKeyDictionary[Any, _Observed] = weakref.WeakKeyDictionary()
"""By the provider of meters, the attributes of each pipeline: an instrument is created once."""
_lock = threading.Lock()


def _create_instruments(metrics: Any, provider: Any, observed: _Observed) -> None:
    meter = provider.get_meter("headrace", __version__)

    def asked(read: Callable[[Pipeline], Values]) -> list[Callable[[Any], Iterator[Any]]]:
        def callback(_: Any) -> Iterator[Any]:
            with _lock:
                pipelines = list(observed.items())
            for pipe, own in pipelines:
                if pipe._engine is not None:
                    for value, attributes in read(pipe):
                        yield metrics.Observation(value, {**own, **attributes})

        return [callback]

    for metric, (entry, unit, text) in _COUNTERS.items():
        meter.create_observable_counter(
            f"headrace.{metric}", asked(_counter(entry)), unit=unit, description=text
        )
    for metric, read, unit, text in _GAUGES:
        meter.create_observable_gauge(
            f"headrace.{metric}", asked(read), unit=unit, description=text
        )


def _counter(entry: str) -> Callable[[Pipeline], Values]:
    return lambda pipe: [(pipe.counters().get(entry, 0), {})]


def _ready(pipe: Pipeline) -> Values:
    scheduled = pipe._built().executor.scheduled()
    return [(sum(iteration.state is DONE for iteration in scheduled), {})]


def _depth(pipe: Pipeline) -> Values:
    return [(pipe._built().executor.pending(), {})]


def _memory(pipe: Pipeline) -> Values:
    report = pipe.memory_report()
    for holder in ("ready", "in_progress", "with_user", "waiting_inputs"):
        for place, size in zip(("host", "device"), getattr(report, holder), strict=True):
            yield size, {"holder": holder, "place": place}


def _resident(pipe: Pipeline) -> Values:
    try:
        with open("/proc/self/statm") as file:
            return [(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"), {})]
    except OSError:  # not Linux
        return []


def _figures(pipe: Pipeline) -> Figures | None:
    profile = pipe.profile
    if profile is None or not profile.recorders:
        return None
    return figures_of(profile.recorders[0])


def _operator_seconds(pipe: Pipeline) -> Values:
    figures = _figures(pipe)
    for operator in figures.operators if figures else ():
        yield operator.seconds, {"operator": operator.label.name}


def _operator_samples(pipe: Pipeline) -> Values:
    figures = _figures(pipe)
    for operator in figures.operators if figures else ():
        yield operator.samples, {"operator": operator.label.name}


_GAUGES = (
    ("queue.ready", _ready, "{batch}", "Complete batches that wait for the program."),
    ("queue.depth", _depth, "{batch}", "Iterations scheduled and not handed over."),
    ("memory", _memory, "By", "Memory of batches, by holder and place."),
    ("process.memory", _resident, "By", "Resident memory of the process."),
    ("operator.time", _operator_seconds, "s", "Time of threads in an operator."),
    ("operator.samples", _operator_samples, "{sample}", "Samples through an operator."),
)
"""Metrics, with their functions, units and descriptions."""

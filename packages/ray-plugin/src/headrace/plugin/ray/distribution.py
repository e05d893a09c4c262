"""Pipelines on a cluster: `distribute`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ray

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.pipeline import Pipeline
from headrace.plugin.ray.executor import RayExecutor
from headrace.plugin.ray.fleet import TASKS_A_WORKER
from headrace.plugin.ray.options import Options, checked
from headrace.plugin.ray.recorder import ClusterRecorder
from headrace.profiling.recorder import NO_RECORD, ProfileRecorder, SpanRecorder
from headrace.tracebacks import public

if TYPE_CHECKING:
    from headrace.executor.plan import Plan
    from headrace.graph.data_node import DataNode


class OnRay:
    """`headrace.executor.elsewhere.Elsewhere` for one pipeline."""

    def __init__(self, options: Options, *, functions_travel: bool) -> None:
        self.options = options
        self.batches_ahead = TASKS_A_WORKER * options.most + 2
        self.steps_left: Callable[[], int | None] | None = None
        """Number of batches left in the iterator's epoch, if one counts them."""
        self._functions_travel = functions_travel
        self._executor: weakref.ref[RayExecutor] | None = None

    def anew(self) -> OnRay:
        """The same for a copy of the pipeline."""
        return OnRay(self.options, functions_travel=self._functions_travel)

    @property
    def executor(self) -> RayExecutor | None:
        """The executor, once the pipeline is built."""
        return None if self._executor is None else self._executor()

    def make_executor(
        self,
        plan: Plan,
        readers: dict[int, Any],
        outputs: list[DataNode],
        recorder: SpanRecorder = NO_RECORD,
        **how: Any,
    ) -> Any:
        """Make the executor."""
        made = RayExecutor(
            *(self.options, plan, readers, outputs),
            functions_travel=self._functions_travel,
            steps_left=self.steps_left,
            recorder=ClusterRecorder(recorder) if isinstance(recorder, ProfileRecorder) else None,
            **how,
        )
        self._executor = weakref.ref(made)
        return made


@public
def distribute(
    pipeline: Pipeline,
    num_workers: int | tuple[int, int] = 1,
    *,
    resources: Mapping[str, Any] | None = None,
    ordered: bool = True,
    cut: str | list[str] | None = None,
    max_restarts: int = 100,
    bytes_in_flight: int | None = None,
    start_timeout_seconds: float | None = 300.0,
) -> Pipeline:
    """Have workers on a Ray cluster carry the samples of a pipeline; return it.

    Any iterator takes it then, and its batches are those it would have made here, whatever the
    number of workers and wherever they are. Without a cluster, Ray is started on this machine.

    Parameters
    ----------
    pipeline
        A pipeline that has not been run.
    num_workers
        Number of workers; or the least and the greatest one, between which it follows what
        the trainer takes. The processors of the trainer's own node come first.
    resources
        What each worker takes: ``{"num_cpus": 2}`` has two threads; and other options of a Ray
        actor, or amounts of the cluster's own resources. One processor when not given.
    ordered
        False to take batches as they are ready. Each comes once, within its epoch.
    cut
        Names of the last operators in workers, or ``"outputs"``: all that can run there. When not
        given, the engine measures a few samples, and cuts where least bytes cross after the
        operators that cost most.
    max_restarts
        So many workers may be lost; one more is an error. -1 for any number.
    bytes_in_flight
        Bytes of batches that workers have made, or make, and the trainer has not taken. 40 % of the
        object store of the trainer's node when not given, and not more than 2 GiB.
    start_timeout_seconds
        Time to wait for the first worker; None for any time.

    Returns
    -------
    Pipeline
        The same pipeline.

    Raises
    ------
    UsageError
        If the pipeline has been run.
    ArgumentTypeError, ArgumentValueError
        If an argument makes no sense.
    """
    options = checked(
        *(num_workers, resources, ordered, cut),
        *(max_restarts, bytes_in_flight, start_timeout_seconds),
    )
    if not isinstance(pipeline, Pipeline):
        raise ArgumentTypeError(f"Expected a pipeline, got {pipeline!r}.")
    if not options.ordered and pipeline._settings.on_bad_sample == "skip":
        raise ArgumentValueError(
            '`ordered`=False does not go with `on_bad_sample`="skip", where later batches depend '
            'on what was bad before; use `on_bad_sample`="replace", or leave batches in order.'
        )
    if pipeline._elsewhere is not None:
        raise UsageError("The pipeline is on a cluster already.")
    engine = pipeline._engine
    if engine is not None and (engine.prefetch.number or engine.executor.pending()):
        raise UsageError(
            "The pipeline has been run. Hand it over before its first batch is asked for, or make "
            "another one."
        )
    if not ray.is_initialized():
        ray.init()
    travel = pipeline._settings.workers == "processes"
    if engine is not None:
        pipeline._shutdown()
    pipeline._elsewhere = OnRay(options, functions_travel=travel)
    return pipeline

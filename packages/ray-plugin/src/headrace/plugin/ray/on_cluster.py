"""Common part of iterators over pipelines on a cluster."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.plugin.iterator_arguments import as_list
from headrace.plugin.ray.distribution import OnRay, distribute
from headrace.plugin.ray.options import bounds

if TYPE_CHECKING:
    from headrace.pipeline import Pipeline
    from headrace.plugin.ray.executor import RayExecutor
    from headrace.plugin.ray.report import Cut, WorkerReport


class OnCluster:
    """Methods of an iterator that say, and change, who works for it."""

    _pipes: list[Pipeline]
    _epochs: Any

    def _distribute(
        self, pipelines: Pipeline | Sequence[Pipeline], **options: Any
    ) -> list[Pipeline]:
        """Put the pipelines on the cluster, each with workers of its own."""
        me = weakref.ref(self)

        def steps_left() -> int | None:
            it = me()
            steps: int | None = 0 if it is None else it._epochs.steps_left()
            return steps

        made = as_list(pipelines)
        for pipeline in made:
            distribute(pipeline, **options)
            elsewhere = pipeline._elsewhere
            assert isinstance(elsewhere, OnRay)
            elsewhere.steps_left = steps_left
        return made

    def _executors(self) -> list[RayExecutor]:
        found = []
        for pipeline in self._pipes:
            elsewhere = pipeline._elsewhere
            assert isinstance(elsewhere, OnRay)
            executor = elsewhere.executor
            if executor is None or executor.report is None:
                raise UsageError(
                    "No batch has been asked for yet: the first one starts the workers, and says "
                    "where the graph is cut."
                )
            found.append(executor)
        return found

    @property
    def cut(self) -> Cut:
        """Place where the graph of the first pipeline is cut in two, and the reason.

        Raises
        ------
        UsageError
            Before the first batch was asked for.
        """
        report = self._executors()[0].report
        assert report is not None
        return report.cut

    @property
    def workers(self) -> list[WorkerReport]:
        """The workers there are, those that are about to start among them.

        Raises
        ------
        UsageError
            Before the first batch was asked for.
        """
        found = []
        for executor in self._executors():
            with executor.changed:
                assert executor.report is not None
                found += executor.report.workers(executor)
        return found

    def statistics(self) -> list[dict[str, Any]]:
        """`Pipeline.counters` of each pipeline: the cut, each worker, and who waits."""
        return [pipeline.counters() for pipeline in self._pipes]

    def resize(self, num_workers: int | tuple[int, int]) -> None:
        """Have another number of workers for each pipeline, from now on, in the middle of an epoch.

        Parameters
        ----------
        num_workers
            As the argument of the class. Those that leave finish what they have begun.

        Raises
        ------
        UsageError
            Before the first batch was asked for.
        ArgumentTypeError, ArgumentValueError
            If it is no number of workers.
        """
        least, most = bounds(num_workers)
        for executor in self._executors():
            executor.resize(least, most)

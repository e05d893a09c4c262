"""Steps of DALI's iterators, which iterators of users call who have copied one to change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.plugin.base_iterator import Batch, PipelineBatch


class IteratorSteps:
    """Steps that make up the ``__next__`` of an iterator of DALI's.

    DALI takes outputs, starts on the next ones, counts, and then tells what is padding. Here the
    first step does it all, and the others tell what it found.
    """

    _ahead: Any = None
    """Batch that a sub-class without `_assemble` has made ahead, and keeps as `_first_batch`."""
    _kept: list[int | list[int]]
    """Samples of the outputs given last that are the epoch's, for each pipeline."""
    batch_size: int
    _next_by: Callable[[Callable[[list[PipelineBatch]], Any]], Any]
    _end: Callable[[], NoReturn]
    _why_no_data: Callable[[], str]

    def _get_outputs(self) -> list[tuple[Batch, ...]]:
        """Outputs of each pipeline in the next step, padding included."""
        outputs: list[tuple[Batch, ...]] = self._next_by(self._outputs_of)
        return outputs

    def _outputs_of(self, batches: list[PipelineBatch]) -> list[tuple[Batch, ...]]:
        self._kept = [batch.kept for batch in batches]
        return [batch.outputs for batch in batches]

    def _schedule_runs(self, release_outputs: bool = True) -> None:
        """Start on the next iteration: that has been done when outputs were taken."""

    def _advance_and_check_drop_last(
        self, dry_run: bool = False, end_iteration: bool = True
    ) -> bool:
        """Count the step: that has been done; batches to drop have ended the epoch."""
        return False

    def _remove_padded(self) -> tuple[list[bool], list[int | list[int]]]:
        """Tell for each pipeline whether samples are padding, and how many are none."""
        return [kept != self.batch_size for kept in self._kept], list(self._kept)

    def _end_iteration(self) -> NoReturn:
        """End the epoch."""
        self._end()

    def _report_no_data_in_pipeline(self) -> NoReturn:
        """Raise the error for a pipeline that gives no batch at all."""
        raise UsageError(self._why_no_data())

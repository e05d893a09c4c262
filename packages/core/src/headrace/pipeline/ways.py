"""The way in which a pipeline is run: all at once, by scheduling, or by an iterator."""

from __future__ import annotations

from headrace.errors import UsageError
from headrace.types import PipelineAPIType


class WaysOfRunning:
    """Check that only one way of running the pipeline is used."""

    _api: PipelineAPIType | None = None
    _api_checked = True
    _in_iterator = False
    """True while an iterator calls, which runs the pipeline by scheduling."""

    def enable_api_check(self, enable: bool) -> None:
        """Forbid (`enable`) or allow to mix `run`, the scheduling calls and iterators."""
        self._api_checked = enable

    def _latch_api(self, api: PipelineAPIType) -> None:
        if self._api is None:
            self._api = api
        if self._api is not api and self._api_checked and not self._in_iterator:
            raise UsageError(
                f"Mixing pipeline API type. Currently used: {self._api}, but trying to use {api}. "
                "Use one of `run`, `schedule_run`/`share_outputs`/`release_outputs`, or an "
                "iterator; `enable_api_check(False)` lifts this check."
            )

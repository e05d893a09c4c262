"""Private calls of DALI's pipelines, which iterators in published training code make."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from headrace.graph.user_line import stack_level
from headrace.types import PipelineAPIType

if TYPE_CHECKING:
    import threading

    from headrace.pipeline.engine import Batch, Engine


class OldCalls:
    """Calls of iterators that users have copied from DALI, from its first releases on."""

    _built: Callable[[], Engine]
    _in_iterator: bool
    _latch_api: Callable[[PipelineAPIType], None]
    _running: threading.RLock
    schedule_run: Callable[[], None]
    share_outputs: Callable[[], tuple[Batch, ...]]
    release_outputs: Callable[[], None]

    if TYPE_CHECKING:

        @property
        def _set_up(self) -> Callable[[], None] | None: ...

    def _prefetch(self) -> None:
        """Start on as many iterations as are worked on ahead, if none is on its way."""
        engine = self._built()
        with self._running:
            if not engine.prefetch.has_next():
                engine.prefetch.schedule(self._set_up)

    @contextlib.contextmanager
    def _check_api_type_scope(self, api: PipelineAPIType) -> Iterator[None]:
        """Allow the calls for scheduling as those of the way `api` of running the pipeline."""
        self._latch_api(api)
        before, self._in_iterator = self._in_iterator, True
        try:
            yield
        finally:
            self._in_iterator = before

    def _run(self) -> None:
        self._called("_run", "schedule_run")

    def _share_outputs(self) -> tuple[Batch, ...]:
        found: tuple[Batch, ...] = self._called("_share_outputs", "share_outputs")
        return found

    def _release_outputs(self) -> None:
        self._called("_release_outputs", "release_outputs")

    def _called(self, old: str, name: str) -> Any:
        """Do what has another name now, and say so."""
        warnings.warn(
            f"`{old}` is deprecated; use `{name}`.", DeprecationWarning, stacklevel=stack_level()
        )
        return getattr(self, name)()

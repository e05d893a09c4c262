"""Properties of a pipeline that can be read without running it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from headrace.graph.user_line import stack_level
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from headrace.pipeline.engine import Engine
    from headrace.pipeline.settings import Settings
    from headrace.profiling.profile import Profile
    from headrace.types import DALIDataType


_OF_DALI = frozenset(
    {
        *("_max_batch_size", "_num_threads", "_device_id", "_seed", "_exec_pipelined"),
        *("_exec_async", "_exec_dynamic", "_exec_separated", "_prefetch_queue_depth"),
        *("_cpu_queue_size", "_gpu_queue_size", "_set_affinity", "_enable_memory_stats"),
        *("_py_num_workers", "_py_start_method", "_stream_policy", "_concurrency"),
        "_num_outputs",
    }
)
"""Private names of DALI's for what has a public one: those of classes derived from its pipeline."""
_SETTINGS = frozenset({"_bytes_per_sample", "_enable_checkpointing", "_py_callback_pickler"})
"""Likewise, for what has none."""


@public_methods
class SettingsProperties:
    """The properties that mirror a pipeline's settings."""

    _settings: Settings

    if not TYPE_CHECKING:  # for which a misspelt name is to be an error

        def __getattr__(self, name: str) -> Any:
            # Asked last: a derived class may keep what it likes under these names.
            if name in _OF_DALI:
                return getattr(self, name[1:])
            if name in _SETTINGS:
                return getattr(self._settings, name[1:])
            return object.__getattribute__(self, name)  # which says what is missing, as ever

    def _built(self) -> Engine:
        """Return the engine; build the pipeline first if needed."""
        raise NotImplementedError

    @property
    def max_batch_size(self) -> int:
        """Largest number of samples in a batch."""
        return self._settings.batch_size  # type: ignore[return-value]

    @property
    def batch_size(self) -> int:
        """Deprecated name of `max_batch_size`."""
        warnings.warn(
            "`Pipeline.batch_size` is deprecated, use `max_batch_size`.",
            DeprecationWarning,
            stacklevel=stack_level(),
        )
        return self.max_batch_size

    @property
    def num_threads(self) -> int | None:
        """Number of worker threads."""
        return self._settings.num_threads

    @property
    def device_id(self) -> int | None:
        """GPU the pipeline uses; `None` on the CPU."""
        return self._settings.device_id

    @property
    def seed(self) -> int | None:
        """Seed as it was given."""
        return self._settings.seed

    @property
    def exec_pipelined(self) -> bool:
        """True if batches are worked on ahead."""
        return self._settings.exec_pipelined

    @property
    def exec_async(self) -> bool:
        """True if work continues while the consumer works."""
        return self._settings.exec_async

    @property
    def exec_dynamic(self) -> bool | None:
        """As given; outputs stay valid either way."""
        s = self._settings
        if s.exec_dynamic is None and s.exec_pipelined and s.exec_async and not self.exec_separated:
            return True
        return s.exec_dynamic

    @property
    def exec_separated(self) -> bool:
        """True if the prefetch depth was given separately for CPU and GPU."""
        return isinstance(self._settings.prefetch_queue_depth, dict)

    @property
    def prefetch_queue_depth(self) -> int | dict[str, int]:
        """As given."""
        return self._settings.prefetch_queue_depth

    @property
    def cpu_queue_size(self) -> int:
        """Number of batches worked on ahead on the CPU."""
        return self._settings.queue_sizes[0]

    @property
    def gpu_queue_size(self) -> int:
        """Number of batches worked on ahead on the GPU."""
        return self._settings.queue_sizes[1]

    @property
    def max_streams(self) -> int:
        """Deprecated; always -1."""
        return -1

    @property
    def default_cuda_stream_priority(self) -> int:
        """Deprecated; always 0."""
        return 0

    @property
    def set_affinity(self) -> bool:
        """True if workers are bound to processors."""
        return self._settings.set_affinity

    @property
    def enable_memory_stats(self) -> bool:
        """True if `executor_statistics` includes the memory of each operator."""
        return self._settings.enable_memory_stats

    @property
    def py_num_workers(self) -> int:
        """Number of workers of parallel external sources."""
        return self._settings.py_num_workers

    @property
    def py_start_method(self) -> str:
        """Start method of worker processes of parallel external sources."""
        return self._settings.py_start_method

    @property
    def stream_policy(self) -> Any:
        """As given; concerns the GPU."""
        return self._settings.stream_policy

    @property
    def concurrency(self) -> Any:
        """As given; concerns the GPU."""
        return self._settings.concurrency

    def output_stream(self) -> None:
        """Stream that outputs on the GPU are made on; `None` on the CPU."""

    def output_dtype(self) -> list[DALIDataType | None]:
        """Demanded element type of each output; `None` where any will do."""
        return self._built().checks.dtypes()

    def output_ndim(self) -> list[int | None]:
        """Demanded number of dimensions of each output; `None` where any will do."""
        return self._built().checks.ndims()

    @property
    def profile(self) -> Profile | None:
        """Recorder of the pipeline, if it was given `profile`."""
        profile: Profile | None = self._settings.profile
        return profile

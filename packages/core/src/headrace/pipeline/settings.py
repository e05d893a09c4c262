"""Arguments of a pipeline's constructor: checked, and kept for its properties."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.config import warn_of_variables_without_effect
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MisusedArgumentError,
    NumberOverflowError,
    UnknownArgumentError,
)
from headrace.executor.affinity import Affinity, find_affinity
from headrace.executor.bad_samples import check_policy
from headrace.executor.fallback import absence, tell, why_none
from headrace.executor.memory import MemoryLimit, PipelineMemory, Sizes
from headrace.executor.processes.choice import check_workers
from headrace.graph.user_line import stack_level
from headrace.profiling.profile import as_profile
from headrace.tensors.buffer_sizes import BUFFER_SETTINGS
from headrace.tensors.gpu.runtime import current_device, get_runtime
from headrace.tensors.pool import HostPool
from headrace.types import CPU_ONLY_DEVICE_ID, DALIDataType, as_data_type

_MEMORIES = ("host", "device")


@dataclass
class Settings:
    """Settings of a pipeline; defaults are DALI's.

    See `headrace.Pipeline` for the meaning of each.
    """

    batch_size: int | None = None
    num_threads: int | None = None
    device_id: int | None = None
    seed: int | None = None
    exec_pipelined: bool = True
    prefetch_queue_depth: int | dict[str, int] = 2
    exec_async: bool = True
    bytes_per_sample: int = 0
    set_affinity: bool = False
    max_streams: int | None = None
    default_cuda_stream_priority: int | None = None
    enable_memory_stats: bool = False
    enable_checkpointing: bool = False
    checkpoint: bytes | str | None = None
    py_num_workers: int = 1
    py_start_method: str = "fork"
    py_callback_pickler: Any = None
    py_worker_timeout_seconds: float | None = 60.0
    output_dtype: Any = None
    output_ndim: Any = None
    output_layout: Any = None
    exec_dynamic: bool | None = None
    experimental_exec_dynamic: bool | None = None
    stream_policy: Any = None
    concurrency: Any = None
    fuse: bool = True
    on_bad_sample: str = "raise"
    workers: str | None = None
    random_numbers: str | None = None
    profile: Any = None
    """A path, or a `Profile`; a `Profile` or None once it is checked."""
    memory_limit_bytes: int | dict[str, int] | None = None
    queue_size: int = field(init=False, default=2)
    """Prefetch depth, as asked for."""
    depth: int = field(init=False, default=2)
    """Number of batches that are worked on ahead: less where nothing may be."""
    threads_given: int | None = field(init=False, default=None)
    """`num_threads` as it was given: before it is counted on this machine."""
    device_given: int | str | None = field(init=False, default=None)
    """`device_id` as it was given, before it was resolved for this machine."""
    on_cpu_because: str = field(init=False, default="")
    """Reason why GPU work runs on the CPU by the user's choice, or ""."""
    outputs_device: str = field(init=False, default="")
    """Device that all outputs are handed over on, "cpu" or "gpu"; "": each as it is defined."""
    output_pool: HostPool | None = field(init=False, default=None)
    """Pool of outputs in host memory, where whoever takes them wants other memory than usual."""
    affinity: Affinity | None = field(init=False, default=None)
    """The processors that workers are bound to, if they are; known from the build on."""
    why_threads: str = field(init=False, default="")
    """Reason why threads carry the samples, or ""."""

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_device()
        self._check_seed()
        self._check_deprecated()
        self._check_depth()
        self._check_pickler()
        check_policy(self.on_bad_sample)
        check_workers(self.workers)
        self._check_random_numbers()
        self.profile = as_profile(self.profile)
        self._check_memory_limit()
        self.bytes_per_sample = _whole("bytes_per_sample", self.bytes_per_sample or 0, 63)
        if self.bytes_per_sample < 0:
            raise ArgumentValueError(
                f"`bytes_per_sample` is {self.bytes_per_sample}; it cannot be negative."
            )
        self.output_dtype = _each_output("output_dtype", self.output_dtype, _checked_dtype)
        self.output_ndim = _each_output("output_ndim", self.output_ndim, _checked_ndim)
        self.output_layout = _each_output("output_layout", self.output_layout, _checked_layout)

    def _check_sizes(self) -> None:
        if self.batch_size is not None:
            self.batch_size = _whole("batch_size", self.batch_size)
            if self.batch_size <= 0:
                raise ArgumentValueError(
                    f"Invalid batch size: {self.batch_size}. Please set a positive integer."
                )
        if self.num_threads is not None:
            self.num_threads = _whole("num_threads", self.num_threads)
            self.threads_given = self.num_threads

    def _check_device(self) -> None:
        given: Any = self.device_id
        if given == CPU_ONLY_DEVICE_ID:
            given = None
        self.device_given, self.device_id = given, None
        self.on_cpu_because = absence()
        if given is None:
            return
        if given == "auto":
            self.on_cpu_because = why_none()
            self.device_id = None if self.on_cpu_because else current_device()
        else:
            self.device_id = _whole("device_id", given)
        if self.on_cpu_because:
            tell(f"`device_id`={given!r}", self.on_cpu_because)
            self.device_id = None

    def _check_seed(self) -> None:
        if self.seed is None:
            return
        if not isinstance(self.seed, numbers.Integral):
            raise ArgumentTypeError(f"`seed` is {self.seed!r}; expected an integer or None.")
        if self.seed < 0:
            warnings.warn(
                f"`seed` is {self.seed}: a negative seed is taken as no seed, use None for that.",
                UserWarning,
                stacklevel=stack_level(),
            )
            self.seed = None

    def _check_random_numbers(self) -> None:
        if self.random_numbers not in (None, "dali"):
            raise ArgumentValueError(
                f"`random_numbers` is {self.random_numbers!r}; expected 'dali' or None, which both "
                "draw DALI's numbers: there are no others."
            )

    def _check_memory_limit(self) -> None:
        given = self.memory_limit_bytes
        limits = given if isinstance(given, dict) else {"host": given, "device": given}
        unknown = [name for name in limits if name not in _MEMORIES]
        if unknown or not limits:
            raise UnknownArgumentError(
                f"`memory_limit_bytes` is {given!r}; as a dictionary it has one of the keys "
                '"host" and "device", or both.'
            )
        for name, value in limits.items():
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Integral):
                raise ArgumentTypeError(
                    f"`memory_limit_bytes` is {given!r}; expected a number of bytes, or a "
                    'dictionary of such with the keys "host" and "device".'
                )
            if value <= 0:
                raise ArgumentValueError(
                    f"`memory_limit_bytes` is {given!r}; the limit of {name} memory must be "
                    "positive, or None for no limit."
                )

    def memory_limit(self, memory: PipelineMemory, estimate: Sizes) -> MemoryLimit | None:
        """Return the memory limit of a pipeline, if it has one; `estimate` is for one iteration."""
        given = self.memory_limit_bytes
        if given is None:
            return None
        limits = given if isinstance(given, dict) else dict.fromkeys(_MEMORIES, given)
        host, device = (limits.get(name) for name in _MEMORIES)
        return MemoryLimit(memory, host=host, device=device, estimate=estimate)

    @property
    def is_plainly_on_cpu(self) -> bool:
        """True if there is no GPU, and the CPU does not stand in for one."""
        return self.device_id is None and not self.on_cpu_because

    def _check_depth(self) -> None:
        depth = self.prefetch_queue_depth
        if isinstance(depth, dict):
            missing = {"cpu_size", "gpu_size"} - depth.keys()
            if missing:
                raise UnknownArgumentError(
                    f"`prefetch_queue_depth` is {depth!r}; as a dictionary it needs the keys "
                    '"cpu_size" and "gpu_size".'
                )
            for stage in self.queue_sizes:
                self._check_depth_of(stage)
            # A batch passes through both stages: as many are ahead as the longer queue holds.
            depth = max(self.queue_sizes)
            if not self.exec_async:
                raise MisusedArgumentError(
                    "`exec_async` cannot be False where `prefetch_queue_depth` is given for CPU "
                    "and GPU apart."
                )
            if self.exec_dynamic:
                raise MisusedArgumentError(
                    "`exec_dynamic` cannot be True where `prefetch_queue_depth` is given for CPU "
                    "and GPU apart; give one number."
                )
        self._check_depth_of(depth)
        self.queue_size = self.depth = int(depth)
        if not self.exec_pipelined:
            self.depth = min(self.depth, 1)

    def _check_depth_of(self, stage: Any) -> None:
        if isinstance(stage, bool) or not isinstance(stage, numbers.Integral):
            raise ArgumentTypeError(
                "Expected `prefetch_queue_depth` to be an int or a dictionary of int, got "
                f"{self.prefetch_queue_depth!r}."
            )

    @property
    def queue_sizes(self) -> tuple[int, int]:
        """Prefetch depths of the stages on the CPU and on the GPU, as asked for."""
        depth = self.prefetch_queue_depth
        if isinstance(depth, dict):
            return depth["cpu_size"], depth["gpu_size"]
        return depth, depth

    @property
    def works_ahead(self) -> bool:
        """True if work continues while the consumer is at work, so that more may be ahead."""
        return self.exec_pipelined and self.exec_async

    def _check_deprecated(self) -> None:
        if self.experimental_exec_dynamic is not None:
            warnings.warn(
                "`experimental_exec_dynamic` is deprecated, use `exec_dynamic`.",
                DeprecationWarning,
                stacklevel=stack_level(),
            )
            self.exec_dynamic = self.experimental_exec_dynamic
        for name in ("max_streams", "default_cuda_stream_priority"):
            if getattr(self, name) is not None:
                warnings.warn(
                    f"`{name}` is deprecated and has no effect.",
                    DeprecationWarning,
                    stacklevel=stack_level(),
                )

    def _check_pickler(self) -> None:
        if self.py_callback_pickler is not None and self.py_start_method == "fork":
            raise ArgumentValueError(
                '`py_callback_pickler` has no use with `py_start_method`="fork", which pickles '
                "nothing; leave it out."
            )
        seconds = self.py_worker_timeout_seconds
        if seconds is not None and not seconds > 0:
            raise ArgumentValueError(
                f"`py_worker_timeout_seconds` is {seconds}; it must be positive, or None for no "
                "limit."
            )

    def complete(self, others: dict[str, Any]) -> None:
        """Take missing sizes, device and seed from the settings `others`."""
        self.device_id = self.device_given  # type: ignore[assignment]
        for name in ("batch_size", "num_threads", "device_id", "seed"):
            if getattr(self, name) is None:
                setattr(self, name, others.get(name))
        self._check_sizes()
        self._check_device()
        self._check_seed()

    def check_for_build(self) -> None:
        """Check the requirements of running alone."""
        BUFFER_SETTINGS.read()
        warn_of_variables_without_effect()
        if self.batch_size is None:
            raise ArgumentValueError("The batch size must be set: Pipeline(batch_size=...).")
        if self.num_threads is None:
            self.num_threads = available_cpus()
        if self.num_threads < 1:
            raise ArgumentValueError(
                f"`num_threads` is {self.num_threads}; running a pipeline needs at least one "
                "(`num_threads` < 1 can only be used for serialization). Without it, there is one "
                "for each processor."
            )
        if min(self.queue_sizes) < 1:
            raise ArgumentValueError(
                f"`prefetch_queue_depth` is {self.prefetch_queue_depth}; it must be greater than 0."
            )

    def find_gpu(self) -> None:
        """Find the GPU and the processors next to it."""
        if self.device_id is not None:
            get_runtime(self.device_id)
        if self.set_affinity and self.affinity is None:
            assert self.num_threads is not None  # `check_for_build` has set it.
            self.affinity = find_affinity(self.num_threads, self.device_id)


def available_cpus() -> int:
    """Number of processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows cannot tell
        return os.cpu_count() or 1


def _whole(name: str, value: Any, bits: int = 31) -> int:
    if not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"`{name}` is {value!r}; expected an integer.")
    if int(value) >= 1 << bits:
        raise NumberOverflowError(f"`{name}` is {value}; it can be at most {(1 << bits) - 1}.")
    return int(value)


def _each_output(name: str, value: Any, checked: Callable[[str, Any], Any]) -> Any:
    """Check one requirement for all outputs, or a list with one for each; None requires nothing."""
    if isinstance(value, (list, tuple)):
        return [None if item is None else checked(name, item) for item in value]
    return None if value is None else checked(name, value)


def _checked_dtype(name: str, value: Any) -> DALIDataType:
    try:
        found = as_data_type(value)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"`{name}`: {error}.") from None
    except ArgumentValueError as error:
        raise ArgumentValueError(f"`{name}`: {error}.") from None
    if found is DALIDataType.NO_TYPE:
        raise ArgumentValueError(
            f"`{name}` cannot be types.NO_TYPE; use None for what is not checked."
        )
    return found


def _checked_ndim(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"`{name}` is {value!r}; expected an integer.")
    if value < 0:
        raise ArgumentValueError(f"`{name}` must be non-negative, got {value}.")
    return int(value)


def _checked_layout(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"`{name}` is {value!r}; expected a layout string.")
    return value

"""The thread that runs a pipeline on the inputs that workers send."""

from __future__ import annotations

import queue
import threading
from collections import deque
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import torch.multiprocessing

from headrace.errors import ArgumentTypeError, UsageError
from headrace.pipeline import Pipeline
from headrace.plugin.pytorch.convert import to_torch_tensor
from headrace.plugin.pytorch.experimental.proxy.references import (
    DALIOutputBatchRef,
    DALIOutputSampleRef,
    DALIPipelineRunRef,
    Proxy,
)
from headrace.plugin.pytorch.page_locked import page_locked
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_SECONDS = 0.5
"""A Ctrl-C that comes just as a thread falls asleep does not wake it; a server that was dropped
looks for that as often."""
_STOP = None
"""Item that wakes the queue's thread, which then checks whether it is to stop."""


@public_methods
class DALIServer:
    """Runs a pipeline for the workers of a `DataLoader`, in a thread of this process.

    Parameters
    ----------
    pipeline : Pipeline
        It has external sources without `source`, which are the inputs of the `proxy`.
    deterministic : bool
        Run batches in the order in which they are asked for, and not as soon as a worker has
        collated one: for pipelines that draw random numbers. The pipeline then works on one batch
        at a time, when it is needed.

    Raises
    ------
    ArgumentTypeError
        If `pipeline` is none.
    UsageError
        If it has no inputs.
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(f"Expected a Headrace pipeline, got: {pipeline!r}.")
        nodes = pipeline._define()
        self._thread: threading.Thread | None = None
        sources = [n for n in nodes if n.input_queue is not None and not n.input_queue.has_source]
        if not sources:
            raise UsageError(
                "The provided pipeline doesn't have any inputs: `fn.external_source(name=...)` "
                "without a `source` is one."
            )
        self._pipeline = pipeline
        # A queue for processes that are started anew serves those that are forked, too.
        self._requests: Any = torch.multiprocessing.get_context("spawn").Queue()
        names = sorted(sources, key=lambda node: node.serial)
        count = len(pipeline._definition.outputs or ())
        self._proxy = Proxy([n.name for n in names], count, self._requests, deterministic)
        self._results: dict[str, Any] = {}
        """By the batch: its outputs, or the error; guarded by `_changed`."""
        self._changed = threading.Condition()
        self._stopped = threading.Event()

    @property
    def proxy(self) -> Any:
        """Replacement for a transform: a function of the inputs of one sample."""
        return self._proxy

    # -- the thread ------------------------------------------------------------------------------

    def start_thread(self) -> None:
        """Start the thread. ``with server:`` does that, and stops it."""
        if self._thread is not None:
            return
        self._pipeline.build()
        self._stopped = threading.Event()
        work = _ServerLoop(
            self._pipeline, self._requests, self._stopped, self._results, self._changed
        ).run
        self._thread = threading.Thread(target=work, name="headrace-proxy", daemon=True)
        self._thread.start()

    def stop_thread(self) -> None:
        """Stop the thread; what was not asked for is dropped."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stopped.set()
        self._requests.put(_STOP)
        thread.join()
        with self._changed:
            self._results.clear()
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self.start_thread()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop_thread()

    def __del__(self) -> None:
        if getattr(self, "_thread", None) is not None:
            self._stopped.set()  # it looks for that by itself

    # -- outputs -----------------------------------------------------------------------------------

    def produce_data(self, obj: Any) -> Any:
        """Put tensors in the place of what stands for outputs, and wait for them where they lack.

        Parameters
        ----------
        obj
            What a `DataLoader` returned. Lists, dictionaries and objects in it are changed in
            place; tuples are made anew.

        Returns
        -------
        The same with tensors.

        Raises
        ------
        UsageError
            If the thread does not run, or samples were not collated by PyTorch's
            `default_collate`.
        ShapeError
            If the samples of an output differ in shape.
        Exception
            What the pipeline raised for this batch.
        """
        outputs: dict[str, Any] = {}

        def produce(ref: DALIOutputBatchRef) -> Any:
            run = ref.pipe_run_ref
            if run.batch_id not in outputs:
                outputs[run.batch_id] = [to_torch_tensor(out) for out in self._outputs(run)]
            tensor = outputs[run.batch_id][ref.output_idx]
            return page_locked(tensor) if ref.is_page_locked else tensor

        return _replaced(obj, produce, {})

    def _outputs(self, run: DALIPipelineRunRef) -> Any:
        if self._thread is None:
            raise UsageError("The server does not run: use it in `with server:`.")
        if not run.is_scheduled:
            run.is_scheduled = True
            self._requests.put((run.batch_id, run.call_args))
        with self._changed:
            while run.batch_id not in self._results:
                if self._stopped.is_set():
                    raise UsageError("The server was stopped while its outputs were awaited.")
                self._changed.wait(_POLL_SECONDS)
            found = self._results.pop(run.batch_id)
        if isinstance(found, BaseException):
            raise found
        return found


class _ServerLoop:
    """Loop of a server's thread; it does not keep the server alive."""

    def __init__(
        self,
        pipeline: Pipeline,
        requests: Any,
        stopped: threading.Event,
        results: dict[str, Any],
        changed: threading.Condition,
    ) -> None:
        self._pipeline = pipeline
        self._requests = requests
        self._stopped = stopped
        self._results = results
        self._changed = changed
        self._running: deque[str] = deque()
        """Batches that the pipeline works on, oldest first."""

    def run(self) -> None:
        """Run batches until the server is stopped."""
        ahead = self._pipeline.cpu_queue_size
        while not self._stopped.is_set():
            while len(self._running) < ahead:
                try:
                    request = self._requests.get(not self._running, _POLL_SECONDS)
                except queue.Empty:
                    break
                if request is not _STOP:
                    self._begin(*request)
                if self._stopped.is_set():
                    break
            if self._running and not self._stopped.is_set():
                self._end()
        while self._running:  # what was begun comes to its end, so that the next is in step
            self._end()

    def _begin(self, batch_id: str, inputs: dict[str, list[Any]]) -> None:
        pipeline = self._pipeline
        try:
            pipeline._built().queues.feed_all(inputs)
            pipeline.schedule_run()
        except Exception as error:
            self._tell(batch_id, error)
        else:
            self._running.append(batch_id)

    def _end(self) -> None:
        found: Any
        try:
            found = self._pipeline.share_outputs()
            self._pipeline.release_outputs()
        except Exception as error:
            found = error
        self._tell(self._running.popleft(), found)

    def _tell(self, batch_id: str, found: Any) -> None:
        with self._changed:
            self._results[batch_id] = found
            self._changed.notify_all()


def _replaced(obj: Any, produce: Callable[[DALIOutputBatchRef], Any], seen: dict[int, Any]) -> Any:
    """`obj` with what `produce` returns in the place of references."""
    if isinstance(obj, DALIOutputBatchRef):
        return produce(obj)
    if isinstance(obj, DALIOutputSampleRef):
        raise UsageError(
            "An output of the proxy was not collated: `produce_data` takes batches. Use PyTorch's "
            "`default_collate`, which a `DataLoader` with a `batch_size` calls."
        )
    if id(obj) in seen:
        return seen[id(obj)]
    seen[id(obj)] = obj
    if isinstance(obj, list):
        obj[:] = [_replaced(item, produce, seen) for item in obj]
    elif isinstance(obj, dict):
        for key, value in obj.items():
            obj[key] = _replaced(value, produce, seen)
    elif isinstance(obj, tuple):
        items = [_replaced(item, produce, seen) for item in obj]
        if any(new is not old for new, old in zip(items, obj, strict=True)):
            made = type(obj)(*items) if hasattr(obj, "_fields") else type(obj)(items)
            seen[id(obj)] = made
            return made
    elif hasattr(obj, "__dict__") and not isinstance(obj, (type, ModuleType, torch.Tensor)):
        for name, value in list(vars(obj).items()):
            new = _replaced(value, produce, seen)
            if new is not value:
                setattr(obj, name, new)
    return obj

"""Run one operator's `gpu`, and its `cpu` sample by sample, on plain arrays without a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.executor.cpu.frames import FrameLoop
from headrace.operators.support.batch_context import BatchContext
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.planning import PlanContext
from headrace.tensors.gpu.runtime import Runtime
from headrace.tensors.rows import Rows
from headrace.types import storage_dtype
from tests.support.gpu.prepared import Prepared
from tests.support.gpu.session import GpuSession, gpu_session
from tests.support.run_operator import PlainContext, call, draw_seed

Batch = list[np.ndarray]


class HostRows:
    """A batch in host memory."""

    segments = None
    scanned = None

    def __init__(self, rows: Batch) -> None:
        self.rows = rows
        self.dense = np.stack(rows) if rows and len({row.shape for row in rows}) == 1 else None

    def __len__(self) -> int:
        return len(self.rows)

    def note_upload(self) -> None:
        """Nothing is to be learned from it."""


def run_gpu_operator(
    name: str,
    *inputs: Batch,
    layout: str | Sequence[str] = "",
    arg_layouts: dict[str, str] | None = None,
    seed: int = 0,
    iteration: int = 0,
    sources: list[str] | None = None,
    batch_size: int | None = None,
    runtime: Runtime | None = None,
    scattered: bool | None = None,
    **args: Any,
) -> Any:
    """Outputs of operator `name` for one batch: a list of arrays, or a tuple of such.

    Parameters
    ----------
    inputs
        Samples, ragged or not.
    layout
        Of all inputs, or of each.
    arg_layouts
        Layouts of per-sample arguments; ``"F"`` for one value a frame.
    batch_size
        Where neither inputs nor arguments tell it.
    runtime
        Where to run; on GPU 0 as it is installed, when not given.
    scattered
        As of `GpuSession`.
    **args
        Constants, or lists of arrays, one a sample.
    """
    from headrace.executor.gpu.frames import GpuFrames

    prepared = Prepared(name, inputs, layout, arg_layouts or {}, batch_size, GpuFrames, args)
    with gpu_session(runtime, scattered=scattered) as session:
        uploaded = [
            HostRows(rows) if prepared.device_of(i) == "cpu" else session.upload(rows)
            for i, rows in enumerate(inputs)
        ]
        context = BatchContext(
            prepared.node,
            prepared.constants,
            prepared.tensors,
            session.queue,
            range(prepared.size),
            draw_seed(seed),
            iteration,
            sources,
        )
        result = prepared.op.gpu(context, *uploaded)
        results = result if isinstance(result, tuple) else (result,)
        outputs = tuple(_downloaded(session, r, prepared, k) for k, r in enumerate(results))
        for rows, batch in zip(inputs, uploaded, strict=True):
            if not isinstance(batch, HostRows):
                for before, after in zip(rows, session.download(batch), strict=True):
                    np.testing.assert_array_equal(before, after, "an input has been written to")
    return outputs if isinstance(result, tuple) else outputs[0]


def _downloaded(session: GpuSession, batch: Any, prepared: Prepared, output: int) -> Batch:
    spec = prepared.specs[output]
    if hasattr(batch, "rows"):  # on its way to the host
        session.synchronize()
        rows = [row.copy() for row in batch.rows]
    else:
        rows = session.download(batch)
    assert len(rows) == len(batch.rows if hasattr(batch, "rows") else batch)
    for row in rows:
        assert row.dtype == storage_dtype(spec.dtype), f"`infer` said {spec.dtype}"
        assert spec.ndim is None or row.ndim == spec.ndim, f"`infer` said {spec.ndim} axes"
    return rows


def run_cpu_operator_on_batch(
    name: str,
    *inputs: Batch,
    layout: str | Sequence[str] = "",
    arg_layouts: dict[str, str] | None = None,
    seed: int = 0,
    iteration: int = 0,
    sources: list[str] | None = None,
    batch_size: int | None = None,
    **args: Any,
) -> Any:
    """What `cpu` makes of the same batch; arguments as of `run_gpu_operator`."""
    prepared = Prepared(name, inputs, layout, arg_layouts or {}, batch_size, FrameLoop, args)
    contexts = [_context(prepared, i, seed, iteration, sources) for i in range(prepared.size)]
    arrays: tuple[Any, ...] = ()
    if isinstance(prepared.op, BatchOperator) and prepared.op.reduce is not None:
        reduced = prepared.op.reduce(_BatchContext(prepared, seed, iteration), *map(Rows, inputs))
        arrays = reduced if isinstance(reduced, tuple) else (reduced,)
        if prepared.op.chunked:
            found = []
            for c in contexts:
                given = [Rows([rows[c.index]]) for rows in inputs]
                shared = [Rows([array]) for array in arrays]
                found.append(prepared.op.apply(c.alone(), *given, *shared)[0])
            return found
    elif isinstance(prepared.op, BatchOperator):
        results = prepared.op.cpu(_BatchContext(prepared, seed, iteration), *inputs)
        return tuple(map(list, results)) if isinstance(results, tuple) else list(results)
    results = [
        call(prepared.op, prepared.specs, c, *(rows[c.index] for rows in inputs), *arrays)
        for c in contexts
    ]
    if isinstance(results[0], tuple):
        return tuple([np.asarray(r[k]) for r in results] for k in range(len(results[0])))
    return [np.asarray(r) for r in results]


def _context(
    prepared: Prepared, index: int, seed: int, iteration: int, sources: list[str] | None
) -> PlainContext:
    args = SimpleNamespace(**vars(prepared.constants))
    for key, (batch, convert) in prepared.tensors.items():
        setattr(args, key, convert(batch.rows[index]))
    context = PlainContext(args, index, seed)
    context.iteration = iteration
    context.sources = sources[index : index + 1] if sources else None
    return context


class _BatchContext(PlanContext):
    """What `BatchOperator.cpu` is handed."""

    def __init__(self, prepared: Prepared, seed: int, iteration: int) -> None:
        places = range(prepared.size)
        super().__init__(prepared.constants, prepared.tensors, places, draw_seed(seed), iteration)

    def empty(self, index: int, shape: tuple[int, ...], dtype: Any, output: int = 0) -> np.ndarray:
        return np.empty(shape, dtype)

    def temp(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def located(self, error: BaseException, index: int) -> BaseException:
        return error

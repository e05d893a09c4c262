"""Runs chains: sample by sample on several threads, or batch by batch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.batch_step import planned_program, run_batch_step
from headrace.executor.iteration import Iteration
from headrace.experimental.dynamic.values import HostValue

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.gpu.stream import StreamExecutor
    from headrace.experimental.dynamic.chains import CallGraph
    from headrace.experimental.dynamic.invocations import Invocation
    from headrace.experimental.dynamic.thread_pools import ThreadPool


def run_chain(
    chain: CallGraph,
    given: Sequence[Any],
    size: int,
    invocations: Sequence[Invocation],
    pool: ThreadPool,
    executor: StreamExecutor | None,
) -> list[Any]:
    """Do the work of a chain once."""
    plan = chain.plan
    feeds = dict(zip(chain.given, given, strict=True))
    iteration = Iteration(0, size, feeds)
    iteration.seeds = {
        k: i.seed for k, i in enumerate(invocations) if i.bound.operation.schema.random
    }
    buffers: list[Any] = [None] * len(plan.consumers)
    iteration.buffers = buffers
    for r, value in feeds.items():
        if value.batch is None:
            buffers[r] = value
    for number, stage in enumerate(plan.stages):
        make: Callable[..., Any] = partial(chain.program, number, buffers, pool.num_threads)
        if stage.device != "cpu":
            assert executor is not None
            executor.run(make(), iteration)
            continue
        for r in stage.reads:
            buffers[r].wait()
        program = planned_program(make, iteration, plan.history)
        _run_samples(chain, program, iteration, pool)
        for step in program.batch_steps:
            run_batch_step(step, program, iteration, plan.history)
    return [_finished(buffers[r]) for r in plan.outputs]


def _finished(buffer: Any) -> Any:
    return HostValue.of_buffer(buffer) if isinstance(buffer, BatchBuffer) else buffer


def _run_samples(
    chain: CallGraph, program: Program, iteration: Iteration, pool: ThreadPool
) -> None:
    size, history = iteration.size, chain.plan.history
    for r, _ in program.written:
        iteration.buffers[r] = BatchBuffer(size, program.specs[r], history[r])
    if program.steps and size:
        pool._threads.carry(iteration, program, lambda: chain.runner(program))

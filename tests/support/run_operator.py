"""Run one operator's `cpu` on plain arrays, without a pipeline: for unit tests of operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.executor.planning import Planner
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.operators.support.contexts import SampleContext
from headrace.operators.support.lazy_value import LazyValue
from headrace.operators.support.planning import Samples
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_numpy_type

_MOST_OUTPUTS = 8
_DALI_OF = {np.dtype(to_numpy_type(t)): t for t in list(DALIDataType)[1:13]}


def draw_seed(seed: int) -> DrawSeed:
    """What a pipeline makes of the seed of an operator."""
    return seed if isinstance(seed, DrawSeed) else DrawSeed.of_pipeline(seed, 8)


class PlainContext(SampleContext):
    """One whose memory is ordinary NumPy memory, outside of any graph."""

    def __init__(self, args: Any, index: int = 0, seed: int = 0) -> None:
        arena: Any = np  # has `empty`
        node: Any = None
        super().__init__(node, args, arena, draw_seed(seed), [None] * _MOST_OUTPUTS, (index,))

    def located(self, error: Exception) -> Exception:
        return error


def run_operator(name: str, *inputs: np.ndarray, layout: str = "", **args: Any) -> Any:
    """Output of operator `name` for one sample, planned alone.

    Arguments are constants; a NumPy array for a per-sample argument is taken as that sample's
    value.
    """
    schema = find(name)
    constants = {a.name: a.default for a in schema.args.values()}
    tensors: dict[str, Any] = {}
    for key, value in args.items():
        arg = schema.args[key]
        if arg.per_sample and isinstance(value, np.ndarray):
            tensors[key] = value
            constants[key] = None
        else:
            constants[key] = arg.type.constant(value)
    specs = {k: Spec(_DALI_OF[v.dtype], v.ndim) for k, v in tensors.items()}
    op = schema.cls(constants, specs)
    op.check_known(len(inputs))
    found = op.infer(*(Spec(_DALI_OF[x.dtype], x.ndim, layout) for x in inputs))
    values = type(op.args)(**vars(op.args))
    for key, value in tensors.items():
        setattr(values, key, schema.args[key].type.sample(value))
    return call(op, found, PlainContext(values), *inputs)


def call(op: Any, specs: Any, context: PlainContext, *inputs: Any, lazy: bool = False) -> Any:
    """What `cpu`, or `apply` behind `reduce`, makes of one sample that is planned alone.

    Parameters
    ----------
    op
        The operator, after its `infer`.
    specs
        What `infer` returned.
    context
        With the sample's arguments, converted.
    lazy
        Whether a lazy value is returned as it is.
    """
    work = op.cpu if getattr(op, "reduce", None) is None else op.apply

    def function(*given: Any) -> Any:
        result = work(*given)
        return result.materialise(context) if isinstance(result, LazyValue) and not lazy else result

    if op.plan is None or not op.needs_plan:
        return function(context, *inputs)
    planner = Planner(
        op, context.args, [specs] if isinstance(specs, Spec) else specs, constant=False
    )
    context.plans = planner.plan(
        [Samples([x]) for x in inputs],
        {},
        [context.index],
        seed=context.seed,
        iteration=context.iteration,
        sources=[context.source],
    )
    if context.plans.values is None:
        return function(context, *inputs)
    outputs = tuple(each[0, ...] for each in context.plans.values)
    return outputs if len(outputs) > 1 else outputs[0]

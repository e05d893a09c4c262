"""Run one operator's `cpu` on plain arrays, without a pipeline: for unit tests of operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.cpu.random import sample_uniforms
from penstock.operators.registry import find
from penstock.operators.schema import Spec
from penstock.types import DALIDataType, to_numpy_type

_DALI_OF = {np.dtype(to_numpy_type(t)): t for t in list(DALIDataType)[1:13]}


class PlainContext:
    """A `SampleContext` whose memory is ordinary NumPy memory."""

    def __init__(self, args: Any, index: int = 0, seed: int = 0) -> None:
        self.args = args
        self.index = index
        self.source = ""
        self.seed = seed
        self.iteration = 0

    def empty(self, shape: tuple[int, ...], dtype: Any, output: int = 0) -> np.ndarray:
        return np.empty(shape, dtype)

    temp = empty

    def located(self, error: Exception) -> Exception:
        return error

    def uniforms(self, count: int) -> np.ndarray:
        return sample_uniforms(self.seed, self.iteration, self.index, count)


def run_operator(name: str, *inputs: np.ndarray, layout: str = "", **args: Any) -> Any:
    """Output of operator `name` for one sample.

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
    op.infer(*(Spec(_DALI_OF[x.dtype], x.ndim, layout) for x in inputs))
    values = type(op.args)(**vars(op.args))
    for key, value in tensors.items():
        setattr(values, key, schema.args[key].type.sample(value))
    return op.cpu(PlainContext(values), *inputs)

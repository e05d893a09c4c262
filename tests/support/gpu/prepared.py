"""An operator made ready for a batch, as the engine does it, without a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.executor.cpu.frames import FrameLoop
from headrace.executor.inputs import checked, declared_input, is_for_frames
from headrace.graph.nodes import OpNode
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_numpy_type

DALI_OF = {np.dtype(to_numpy_type(t)): t for t in list(DALIDataType)[1:13]}


def _as_is(value: np.ndarray) -> np.ndarray:
    return value


def is_per_sample(value: Any) -> bool:
    """Whether an argument is a list of arrays (or NumPy's scalars), one a sample."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, np.ndarray | np.generic) for v in value)
    )


class Prepared:
    """Operator `name` with its arguments, after `infer`.

    `op`: the operator; for sequences, the loop over their frames. `specs`: what `infer` says of the
    outputs. `tensors`: batch and converter of each per-sample argument, as `BatchContext` takes
    them. `size`: number of samples.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[list[np.ndarray], ...],
        layout: str | Sequence[str],
        arg_layouts: dict[str, str],
        batch_size: int | None,
        frames: type[FrameLoop],
        args: dict[str, Any],
    ) -> None:
        schema = self.schema = find(name)
        constants = {a.name: a.default for a in schema.args.values()}
        rows: dict[str, list[np.ndarray]] = {}
        for key, value in args.items():
            arg = schema.args[key]
            if arg.per_sample and is_per_sample(value):
                rows[key] = [np.asarray(v) for v in value]
                constants[key] = None
            else:
                constants[key] = arg.type.constant(value)
        self.args = constants
        self.size = self._batch_size([*inputs, *rows.values()], batch_size)
        self.node = OpNode(schema, f"{name}_0", "gpu", [], constants, {}, "")
        layouts = [layout] * len(inputs) if isinstance(layout, str) else list(layout)
        specs = [
            checked(schema, i, Spec(DALI_OF[x[0].dtype], x[0].ndim, axes))
            for i, (x, axes) in enumerate(zip(inputs, layouts, strict=True))
        ]
        argument_specs = {
            key: Spec(DALI_OF[values[0].dtype], values[0].ndim, arg_layouts.get(key, ""))
            for key, values in rows.items()
        }
        self.op: Any = schema.cls.for_arguments(constants)(dict(constants), argument_specs)
        self.op.check_known(len(specs))
        self.constants: SimpleNamespace = self.op.args
        if is_for_frames(schema, specs, argument_specs):
            self.op = frames(self.op, specs, {k: s.layout for k, s in argument_specs.items()})
        inferred = self.op.infer(*specs)
        self.specs = (inferred,) if isinstance(inferred, Spec) else tuple(inferred)
        by_frame = self.op.frame_args
        self.tensors = {
            key: (
                SimpleNamespace(rows=values),
                _as_is if key in by_frame else schema.args[key].type.sample or _as_is,
            )
            for key, values in rows.items()
        }

    @staticmethod
    def _batch_size(batches: list[list[np.ndarray]], given: int | None) -> int:
        sizes = {len(b) for b in batches} | ({given} if given is not None else set())
        assert len(sizes) == 1, f"batches of different sizes, or of none: {sizes}"
        return sizes.pop()

    def device_of(self, position: int) -> str | None:
        """Where the GPU wants input `position`."""
        return declared_input(self.schema, position).device

"""Operators with their constant arguments, ready to be applied to data of any type."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from headrace.errors import ErrorLocation, SuspectDataWarning, located
from headrace.executor.cpu.frames import FrameLoop
from headrace.executor.inputs import (
    check_argument,
    check_frame_arguments,
    checked,
    is_for_frames,
)
from headrace.experimental.dynamic.single_sample import SingleSampleRunner
from headrace.graph.nodes import OpNode
from headrace.graph.user_line import stack_level, user_stack
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.schema import OpSchema, Spec, as_specs

_MOST_OPERATIONS = 4096
_MOST_BOUND = 64


class Recent:
    """A dictionary that forgets what was used longest ago; for any number of threads.

    A look-up takes no lock: it does not note the use, which is only done where something is added.
    """

    __slots__ = ("_items", "_lock", "_most", "get")

    def __init__(self, most: int) -> None:
        self._items: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._most = most
        self.get = self._items.get

    def add(self, key: Hashable, value: Any) -> Any:
        """Keep `value` under `key`; return it, or what another thread has put there meanwhile."""
        with self._lock:
            found = self._items.setdefault(key, value)
            while len(self._items) > self._most:
                self._items.popitem(last=False)
        return found

    def __len__(self) -> int:
        return len(self._items)


class BoundOperator:
    """An operation on inputs of known types: an operator at work, and what comes out.

    Attributes
    ----------
    operation
        The operator and its constant arguments.
    op
        The instance, shared by all threads.
    specs
        Types of the outputs.
    """

    __slots__ = ("op", "operation", "runner", "specs")

    def __init__(self, operation: ConfiguredOperator, op: Any, specs: tuple[Spec, ...]) -> None:
        self.operation = operation
        self.op = op
        self.specs = specs
        # An operator of whole batches works on a sample alone where it makes the batch's numbers of
        # it first.
        alone = operation.device == "cpu" and (
            not isinstance(op, BatchOperator) or op.reduce is not None
        )
        self.runner = SingleSampleRunner(operation.node(), op, specs) if alone else None
        """Function that applies it to a single sample."""


class ConfiguredOperator:
    """An operator on a device with its constant arguments."""

    __slots__ = ("args", "bound", "device", "schema", "shown")

    def __init__(self, schema: OpSchema, device: str, args: dict[str, Any]) -> None:
        self.schema = schema
        self.device = device
        self.args = args
        self.shown = schema.written or f"ndd.{schema.name}"
        """Name in messages."""
        self.bound = Recent(_MOST_BOUND)
        """By the types of the inputs and those of the arguments given as tensors."""

    def node(self, serial: int = -1) -> OpNode:
        """A node of a graph that does the operation."""
        return OpNode(
            schema=self.schema,
            name="",
            device=self.device,
            inputs=[],
            args=self.args,
            tensor_args={},
            user_stack=(),
            serial=serial,
        )

    def bind(
        self, inputs: tuple[Spec, ...], tensors: tuple[tuple[str, Spec], ...]
    ) -> BoundOperator:
        """The operation on inputs and tensor arguments of these types."""
        key = (inputs, tensors)
        found = self.bound.get(key)
        if found is None:
            try:
                found = self.bound.add(key, self._made(inputs, dict(tensors)))
            except Exception as error:
                raise located(error, ErrorLocation(self.shown, user_stack=user_stack())) from error
        return found  # type: ignore[no-any-return]

    def _made(self, inputs: tuple[Spec, ...], tensors: dict[str, Spec]) -> BoundOperator:
        schema = self.schema
        inputs = tuple(checked(schema, k, spec) for k, spec in enumerate(inputs))
        for name, spec in tensors.items():
            check_argument(schema.args[name], spec)
        cls = schema.cls.for_arguments(self.args)
        op: Any = cls(self.args, tensors)
        op.check_known(len(inputs))
        if is_for_frames(schema, inputs, tensors):
            op = _frame_loop(self.device)(op, inputs, {k: s.layout for k, s in tensors.items()})
        else:
            check_frame_arguments(schema, inputs, tensors)
        specs = as_specs(op.infer(*inputs))
        suspect = op.suspect(*inputs)
        if suspect:
            warnings.warn(suspect, SuspectDataWarning, stacklevel=stack_level())
        return BoundOperator(self, op, specs)


def _frame_loop(device: str) -> Any:
    if device == "cpu":
        return FrameLoop
    from headrace.executor.gpu.frames import GpuFrames

    return GpuFrames


OPERATIONS = Recent(_MOST_OPERATIONS)
"""Operations by schema, device and arguments as they were given."""

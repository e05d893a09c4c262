"""Operators of small things whose inputs are there for the whole batch: done in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import located

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration
    from penstock.executor.step import Step


class Derived:
    """What makes the output of a step out of whole batches.

    Parameters
    ----------
    step
        An operator with a method ``from_batches(size, inputs, tensors)``: all are arrays
        ``(size, ...)``, or ``(1, ...)`` for what is the same for all samples, and so is what it
        returns, ``(size, ...)``.
    constants
        Arrays that are the same for all samples, by register.
    """

    __slots__ = ("_constants", "_step")

    def __init__(self, step: Step, constants: dict[int, np.ndarray]) -> None:
        self._step = step
        self._constants = {r: array[np.newaxis] for r, array in constants.items()}

    def values(self, iteration: Iteration) -> np.ndarray:
        """The output for an iteration, whose batches are there."""
        step, size = self._step, iteration.size
        inputs = [self._whole(iteration, r) for r in step.inputs]
        tensors = {name: self._whole(iteration, r) for name, r, _ in step.tensor_args}
        try:
            found: np.ndarray = step.op.from_batches(size, inputs, tensors)
        except Exception:
            self._blame(size, inputs, tensors)
            raise
        return found

    def _whole(self, iteration: Iteration, r: int) -> np.ndarray:
        constant = self._constants.get(r)
        if constant is not None:
            return constant
        buffer: Any = iteration.buffers[r]
        whole: np.ndarray = buffer.dense
        return whole

    def _blame(self, size: int, inputs: list[np.ndarray], tensors: dict[str, np.ndarray]) -> None:
        """Raise what is wrong with the first bad sample, with its number."""

        def of(values: np.ndarray, index: int) -> np.ndarray:
            return values if len(values) == 1 else values[index : index + 1]

        for index in range(size):
            try:
                self._step.op.from_batches(
                    1, [of(v, index) for v in inputs], {n: of(v, index) for n, v in tensors.items()}
                )
            except Exception as error:
                raise located(error, self._step.node.where(index)) from error

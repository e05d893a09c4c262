"""`transforms.combine`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock._later import later
from penstock.errors import ShapeError
from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.schema import Spec
from penstock.operators.transforms.transform import (
    OUTPUT_DOC,
    REVERSE_ORDER,
    TRANSFORM,
    checked_transforms,
    transform_spec,
)

if TYPE_CHECKING:
    from penstock.kernels.cpu import affine
else:
    affine = later("penstock.kernels.cpu.affine")

_NO_CENTER = np.empty((0, 1), np.float32)
_FIRST = replace(TRANSFORM, optional=False, doc="The transform that is done first.")
_NEXT = replace(_FIRST, name="next_transform", doc="The transform that is done next.")


@operator(
    "transforms.combine",
    inputs=(_FIRST, _NEXT),
    args=(replace(REVERSE_ORDER, doc="Whether the last transform is done first."),),
    output_docs=(OUTPUT_DOC,),
    variadic=True,
    max_inputs=99,
    devices=("cpu",),
)
class Combine(Operator):
    """Combines affine transforms into one that does what they do one after the other.

    Examples
    --------
    >>> turned_and_moved = fn.transforms.combine(turn, move)
    """

    def infer(self, *inputs: Spec) -> Spec:
        self._framed = [spec.layout[:1] == "F" for spec in inputs]
        spec = transform_spec(inputs, framed=False)
        self._frames = spec.ndim == 3
        return spec

    @property
    def takes_batches(self) -> bool:
        """Whether `from_batches` may be called: there are no frames."""
        return not self._frames

    def from_batches(
        self, size: int, inputs: Sequence[np.ndarray], tensors: dict[str, np.ndarray]
    ) -> np.ndarray:
        """The transforms of `size` samples, of arrays ``(size, ...)`` or ``(1, ...)``."""
        stacks = [checked_transforms(stack, k) for k, stack in enumerate(inputs)]
        return self._combined(stacks, size)

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        stacks = [
            checked_transforms(data if framed else data[np.newaxis], k)
            for k, (data, framed) in enumerate(zip(inputs, self._framed, strict=True))
        ]
        counts = {len(s) for s, framed in zip(stacks, self._framed, strict=True) if framed}
        if len(counts) > 1:
            raise ShapeError(
                "Transforms that are combined must have as many frames each, got shapes "
                f"{[data.shape for data in inputs]}."
            )
        found = self._combined(stacks, max(counts, default=1))
        out = c.empty(found.shape if self._frames else found.shape[1:], np.float32)
        out[...] = found if self._frames else found[0]
        return out

    def _combined(self, stacks: list[np.ndarray], frames: int) -> np.ndarray:
        placed = affine.placed

        found = stacks[0]
        n = found.shape[1]
        if any(stack.shape[1] != n for stack in stacks):
            raise ShapeError(
                "Transforms that are combined must have as many axes each, got shapes "
                f"{[stack.shape[1:] for stack in stacks]}."
            )
        for stack in stacks[1:]:
            made = np.empty((frames, n, n + 1), np.float32)
            linear = np.ascontiguousarray(stack[..., :n])
            offset = np.ascontiguousarray(stack[..., n])
            placed(linear, offset, _NO_CENTER, found, bool(self.args.reverse_order), made)
            found = made
        return found

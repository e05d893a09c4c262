"""`transforms.combine`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu import affine
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Spec
from headrace.operators.support.transform import (
    OUTPUT_DOC,
    REVERSE_ORDER,
    TRANSFORM,
    for_frames,
    in_samples,
    transform_frames,
    transform_spec,
)

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
class Combine(SampleOperator):
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

    plans_values = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned | None:
        if not all(samples.are_there for samples in inputs):
            return None
        stacks = [
            transform_frames(samples, k, framed=framed)
            for k, (samples, framed) in enumerate(zip(inputs, self._framed, strict=True))
        ]
        counts = {s.shape[1] for s, framed in zip(stacks, self._framed, strict=True) if framed}
        if len(counts) > 1:
            raise ShapeError(
                "Transforms that are combined must have as many frames each, got shapes "
                f"{[samples.shape_tuples[0] for samples in inputs]}."
            )
        frames = max(counts, default=1)
        found = self._combined([for_frames(stack, frames) for stack in stacks])
        return Planned(values=in_samples(found, c.size, frames=self._frames))

    def _combined(self, stacks: list[np.ndarray]) -> np.ndarray:
        found = stacks[0]
        n = found.shape[1]
        if any(stack.shape[1] != n for stack in stacks):
            raise ShapeError(
                "Transforms that are combined must have as many axes each, got shapes "
                f"{[stack.shape[1:] for stack in stacks]}."
            )
        for stack in stacks[1:]:
            made = np.empty((len(found), n, n + 1), np.float32)
            linear = np.ascontiguousarray(stack[..., :n])
            offset = np.ascontiguousarray(stack[..., n])
            affine.placed(linear, offset, _NO_CENTER, found, bool(self.args.reverse_order), made)
            found = made
        return found

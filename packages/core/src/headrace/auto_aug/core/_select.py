"""One of several augmentations for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import math
from headrace.auto_aug.core._args import accepted, forbid_unused_kwargs
from headrace.auto_aug.core._augmentation import Augmentation, NumberedBin, SignedBin
from headrace.errors import ArgumentValueError
from headrace.graph.branches import guarded, merge
from headrace.graph.data_node import DataNode

_BINS = ("magnitude_bin", "num_magnitude_bins")


def select(
    ops: Sequence[Augmentation], selected_op_idx: DataNode, *op_args: Any, **op_kwargs: Any
) -> DataNode:
    """Apply to each sample the augmentation of its index, and no other.

    Parameters
    ----------
    ops
        The augmentations.
    selected_op_idx
        One number for each sample, on the CPU.
    op_args, op_kwargs
        Their arguments; each gets those keywords that it takes.
    """
    if not ops:
        raise ArgumentValueError("There is no augmentation to select from.")
    given = {key: value for key, value in op_kwargs.items() if key not in _BINS}
    forbid_unused_kwargs(ops, given, "select")

    magnitude, bins = map(op_kwargs.get, _BINS)
    negating = sum(op.randomly_negate for op in ops)
    if isinstance(magnitude, SignedBin) and isinstance(bins, int) and negating > 1:
        op_kwargs["magnitude_bin"] = NumberedBin.of(magnitude, bins)
    last = len(ops) - 1
    number = math.min(math.max(selected_op_idx, 0), last)
    # Halves of halves are told apart by bits of the number, which serve all of them.
    are_lower = [number & (1 << k) == 0 for k in range(last.bit_length())]

    def run(first: int, level: int) -> DataNode:
        if level == 0:
            op = ops[first]
            takes = (*_BINS, *accepted(op.op))
            return op(*op_args, **{k: v for k, v in op_kwargs.items() if k in takes})
        half = 1 << (level - 1)
        if first + half > last:  # there is no upper half
            return run(first, level - 1)
        is_lower = are_lower[level - 1]
        with guarded(is_lower):
            lower = run(first, level - 1)
        with guarded(is_lower, holds=False):
            upper = run(first + half, level - 1)
        return merge(is_lower, lower, upper)

    return run(0, len(are_lower))

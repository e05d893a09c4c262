"""One of several augmentations for each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.auto_aug.core._args import accepted, forbid_unused_kwargs
from penstock.auto_aug.core._augmentation import Augmentation
from penstock.errors import ArgumentValueError
from penstock.graph.branches import guarded, merge
from penstock.graph.data_node import DataNode

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
        What they are called with; each gets those keywords that it takes.
    """
    if not ops:
        raise ArgumentValueError("There is no augmentation to select from.")
    given = {key: value for key, value in op_kwargs.items() if key not in _BINS}
    forbid_unused_kwargs(ops, given, "select")

    def run(first: int, last: int) -> DataNode:
        if last - first == 1:
            op = ops[first]
            takes = (*_BINS, *accepted(op.op))
            return op(*op_args, **{k: v for k, v in op_kwargs.items() if k in takes})
        middle = (first + last) // 2
        is_before = selected_op_idx < middle
        with guarded(is_before):
            before = run(first, middle)
        with guarded(is_before, holds=False):
            behind = run(middle, last)
        return merge(is_before, before, behind)

    return run(0, len(ops))

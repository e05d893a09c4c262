"""Handling of samples that cannot be read or decoded, and the report about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headrace.errors import ArgumentValueError, OperatorError

POLICIES = ("raise", "skip", "replace")


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that was left out of its batch."""

    source: str
    """File or key it was read from; empty where unknown."""
    operator: str
    """Operator that failed on it."""
    reason: str
    """Message of that operator."""
    iteration: int
    """Number of the iteration, counted from the pipeline's first."""
    index: int
    """Position in the batch."""
    action: str
    """``"skip"`` or ``"replace"``."""


def check_policy(policy: str) -> str:
    """`policy`, if it is one."""
    if policy not in POLICIES:
        raise ArgumentValueError(
            f"`on_bad_sample` is {policy!r}; it can be one of {', '.join(map(repr, POLICIES))}."
        )
    return policy


def report(error: BaseException, iteration: int, index: int, action: str) -> BadSample:
    """Describe the failure of one sample."""
    where = error.where if isinstance(error, OperatorError) else None
    cause = error.__cause__ if error.__cause__ is not None else error
    return BadSample(
        source=(where.source or "") if where else "",
        operator=where.operator if where else "",
        reason=str(cause),
        iteration=iteration,
        index=index,
        action=action,
    )


def find_replacements(size: int, bad: Collection[int]) -> dict[int, int] | None:
    """For each failed sample the good one to put in its place, the one before it if there is any.

    `None` if the whole batch, of `size` samples, failed.
    """
    good = [i for i in range(size) if i not in bad]
    if not good:
        return None
    found = {}
    for index in sorted(bad):
        before = [g for g in good if g < index]
        found[index] = before[-1] if before else good[0]
    return found

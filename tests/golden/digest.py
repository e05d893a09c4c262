"""What is kept of outputs, so that machines with other processors compare it.

Of integers a hash. Of floats, whose last bits differ between processors, the norm and projections
on random vectors: a value that is off by more than rounding moves these, wherever it is.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, NamedTuple

import numpy as np

from tests.golden.running import Output, Outputs

_PROJECTIONS = 3
_TOLERANCES = {"float16": 3e-4, "float32": 1e-5, "float64": 1e-5}
"""Of the norm."""


class Digest(NamedTuple):
    """Of one output."""

    kind: str
    """Element type, layout, number of samples, shape of the first."""
    rows: tuple[str, ...]
    """A hash of each sample, bit for bit."""
    floats: tuple[float, ...]
    """Of floats the norm, then the projections."""
    frame: str
    """A hash of shapes, and of where values are not finite."""

    def stored(self) -> list[Any]:
        """What the table has."""
        if self.floats:
            return [self.kind, self.frame, *self.floats]
        return [self.kind, _hashed("".join(self.rows).encode())]


def digests(outputs: Outputs) -> list[Digest]:
    """Of all outputs of a case."""
    return [_digest(output) for output in outputs]


def _digest(output: Output) -> Digest:
    rows = [np.ascontiguousarray(row) for row in output.samples]
    first = rows[0]
    kind = f"{first.dtype} {output.layout or '-'} {len(rows)}x{list(first.shape)}".replace(
        ", ", ","
    )
    hashes = [
        _hashed(f"{row.dtype}{row.shape}{output.layout}".encode(), row.tobytes()) for row in rows
    ]
    if first.dtype.kind != "f":
        return Digest(kind, tuple(hashes), (), "")
    values = np.concatenate([row.ravel() for row in rows]).astype(np.float64)
    finite = np.isfinite(values)
    odd = np.where(finite, 0, values).astype(np.float32)
    odd[np.isnan(odd)] = np.nan  # of whatever sign
    frame = _hashed(str([row.shape for row in rows]).encode(), odd.tobytes())
    values[~finite] = 0
    # Sums in one thread: a library of linear algebra has two for numbers so few, which wait for
    # each other where all processors are busy.
    directions = _directions(1 << max(len(values) - 1, 1).bit_length())[:, : len(values)]
    projections = (directions * values).sum(axis=1)
    numbers = [float(f"{x:.9g}") for x in (np.sqrt(np.square(values).sum()), *projections)]
    return Digest(kind, tuple(hashes), tuple(numbers), frame)


@functools.cache
def _directions(length: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((_PROJECTIONS, length))


def _hashed(*parts: bytes) -> str:
    made = hashlib.blake2b(digest_size=8)
    for part in parts:
        made.update(part)
    return made.hexdigest()


def is_alike(stored: list[Any], now: list[Any]) -> bool:
    """Whether what the table has of an output is what came out, but for rounding."""
    if len(stored) != len(now) or stored[:2] != now[:2]:
        return False
    if len(now) == 2:
        return True
    limit = _TOLERANCES[now[0].partition(" ")[0]] * max(stored[2], now[2])
    return bool(np.all(np.abs(np.subtract(stored[2:], now[2:])) <= limit))

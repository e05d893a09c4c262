"""Sizes of pooled buffers, and the release of host memory: DALI's settings."""

from __future__ import annotations

import functools
import math

from headrace.config import DEVICE_GROWTH, HOST_GROWTH, HOST_SHRINK

ALIGNMENT_BYTES = 64
"""One cache line, and the widest vector register; what XLA asks for to import without a copy."""
_ROOMIEST = 1.5
"""Largest ratio of a reused buffer's size to the size needed."""
_MOST_CLASSES = 8


class BufferSettings:
    """Settings of all pools of the process; from the environment until they are set.

    `host_growth`, `device_growth`: ratio of each size of buffers to the one before, from 1 to 4.
    `host_shrink`: ordinary host memory is freed where less than this share of it has been needed
    for a while.
    """

    host_growth: float
    device_growth: float
    host_shrink: float

    def read(self) -> None:
        """Read the environment now, so that warnings come in the caller's thread."""
        _ = self.host_growth, self.device_growth, self.host_shrink

    def __getattr__(self, name: str) -> float:
        # Only where it is not set: the environment is read when it is first needed.
        switches = {
            "host_growth": HOST_GROWTH,
            "device_growth": DEVICE_GROWTH,
            "host_shrink": HOST_SHRINK,
        }
        if name not in switches:
            raise AttributeError(name)
        value = switches[name].value()
        setattr(self, name, value)
        return value


BUFFER_SETTINGS = BufferSettings()


def size_class(size_bytes: int, growth: float) -> int:
    """Size of the buffer that is made for `size_bytes`.

    Sizes grow by the factor `growth`, so that a buffer serves somewhat larger requests, too; a
    factor of 1 has buffers as large as they are asked for, up to 64 bytes more.
    """
    granules = -(-size_bytes // ALIGNMENT_BYTES)
    if growth == 1 or granules <= 1:
        return max(granules, 1) * ALIGNMENT_BYTES
    step = max(math.ceil(math.log(granules) / math.log(growth)) - 1, 0)
    while math.ceil(growth**step) < granules:
        step += 1
    return math.ceil(growth**step) * ALIGNMENT_BYTES


@functools.lru_cache(maxsize=4096)
def size_classes(size_bytes: int, growth: float) -> tuple[int, ...]:
    """Sizes of buffers that serve `size_bytes`: what is made for it, and then larger ones.

    A larger buffer is better than fresh memory, whose pages must be faulted in.
    """
    return _classes_from(size_class(size_bytes, growth), growth)


@functools.lru_cache(maxsize=4096)
def _classes_from(smallest: int, growth: float) -> tuple[int, ...]:
    # By the class, since batches of ragged samples hardly ever want as many bytes again.
    found = [smallest]
    while len(found) < _MOST_CLASSES:
        larger = size_class(found[-1] + 1, growth)
        if larger > _ROOMIEST * smallest:
            break
        found.append(larger)
    return tuple(found)

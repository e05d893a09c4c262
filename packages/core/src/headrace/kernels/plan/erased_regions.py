"""Regions that are erased, of all samples of a batch, worked out on the host."""

from __future__ import annotations

import numpy as np

from headrace.kernels.plan.compiled import compiled

_HALF = np.float32(0.5)
_FARTHEST = float(1 << 30)


@compiled
def _whole(place: float, extent: int) -> int:
    """A place along an axis, rounded down; what is not a number is the first one."""
    if not place > 0:
        return 0
    return min(int(min(place, _FARTHEST)), extent)


@compiled
def erased_regions(
    anchors: np.ndarray,
    sizes: np.ndarray,
    shapes: np.ndarray,
    axes: np.ndarray,
    ways: tuple[bool, bool, bool],
    begins: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Fill `begins` and `ends`, int64 ``(samples, regions, axes)``, with bounds within samples.

    `anchors`, `sizes`: of all regions one after the other, float32 ``(samples, numbers)``, or
    ``(1, numbers)`` for all; likewise `shapes`, int64. `axes`: those of regions. `ways`: whether
    anchors are shares of extents, sizes are, and whether anchors are the middles of regions.
    """
    count = len(axes)
    for k in range(len(begins)):
        for region in range(begins.shape[1]):
            for i in range(count):
                at = region * count + i
                extent = shapes[k if len(shapes) > 1 else 0, axes[i]]
                begin = anchors[k if len(anchors) > 1 else 0, at]
                size = sizes[k if len(sizes) > 1 else 0, at]
                if ways[0]:
                    begin *= np.float32(extent)
                if ways[1]:
                    size *= np.float32(extent)
                if ways[2]:
                    begin -= size * _HALF
                first = _whole(begin, extent)
                begins[k, region, i] = first
                ends[k, region, i] = max(first, _whole(begin + size, extent))

// What stands outside of an axis.
#pragma once
#include "common.cuh"

#include "perspective:Border"

// Which element stands at a position of an axis, or -1: what is outside, if it is constant.
template <typename Index>
__device__ __forceinline__ Index position_of(Index at, Index extent, int border) {
  if (at >= 0 && at < extent) return at;
  if (border == CONSTANT) return -1;
  if (border == REPLICATE) return at < 0 ? 0 : extent - 1;
  if (border == WRAP) return ((at % extent) + extent) % extent;
  if (extent == 1) return 0;
  const Index period = border == REFLECT ? 2 * extent : 2 * extent - 2;
  at = ((at % period) + period) % period;
  return at < extent ? at : period - at - (border == REFLECT);
}

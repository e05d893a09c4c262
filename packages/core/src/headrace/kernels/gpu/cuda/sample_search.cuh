// Which sample a block works for, where samples need different numbers of blocks.
#pragma once
#include "common.cuh"

// The last of `samples` samples whose first block, `first_of(sample)`, is not after `block`; those
// without blocks come before the one that is looked for. Whole warps search together: in 32 parts,
// then in 32 parts of the right one.
template <typename FirstOf>
__device__ __forceinline__ uint32 sample_of(uint32 samples, uint32 block, const FirstOf& first_of) {
  const uint32 lane = threadIdx.x & 31;
  uint32 low = 0, count = samples;
  while (true) {
    const uint32 step = (count + 31) / 32, at = lane * step;
    const bool before = at < count && first_of(low + at) <= block;
    const uint32 part = __popc(__ballot_sync(0xffffffffu, before)) - 1;
    low += part * step;
    if (step == 1) return low;
    count = min(step, count - part * step);
  }
}

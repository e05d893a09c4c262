// Copies of bytes that lie next to one another, whatever the alignment of either side.
#pragma once
#include "common.cuh"

// The four bytes at any address, from the two aligned words that hold them; `shift` is 8, 16 or 24
// bits.
__device__ __forceinline__ uint32 shifted(uint32 low, uint32 high, uint32 shift) {
  return low >> shift | high << (32 - shift);
}

// What a copy of words does: `count` words by `lanes` threads. Loads come before stores, so that
// several are under way at once.
template <typename Word>
__device__ __forceinline__ void copy_words(Word* target, const Word* source, uint32 count,
                                           uint32 lane, uint32 lanes) {
  uint32 i = lane;
  for (; i + 3 * lanes < count; i += 4 * lanes) {
    const Word a = __ldg(source + i), b = __ldg(source + i + lanes);
    const Word c = __ldg(source + i + 2 * lanes), d = __ldg(source + i + 3 * lanes);
    target[i] = a;
    target[i + lanes] = b;
    target[i + 2 * lanes] = c;
    target[i + 3 * lanes] = d;
  }
  for (; i < count; i += lanes) target[i] = __ldg(source + i);
}

__device__ __forceinline__ void copy_shifted(uint32* target, const uint32* source, uint32 shift,
                                             uint32 count, uint32 lane, uint32 lanes) {
  uint32 i = lane;
  for (; i + 3 * lanes < count; i += 4 * lanes) {
    uint32 low[4], high[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      low[k] = __ldg(source + i + k * lanes);
      high[k] = __ldg(source + i + k * lanes + 1);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) target[i + k * lanes] = shifted(low[k], high[k], shift);
  }
  for (; i < count; i += lanes)
    target[i] = shifted(__ldg(source + i), __ldg(source + i + 1), shift);
}

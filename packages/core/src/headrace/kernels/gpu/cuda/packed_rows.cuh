// Rows of elements that a block has put together in shared memory, stored by words of 4 bytes
// wherever they belong.
#pragma once
#include "common.cuh"

// Stores `size` bytes, `Most` or fewer, at `to` that lie in shared memory from `staged` on; `Lanes`
// threads do, 4 or more, of which the caller is number `lane`.
template <int Most, int Lanes>
__device__ __forceinline__ void store_packed(uint8* to, const uint32* staged, uint32 size,
                                             uint32 lane) {
  constexpr uint32 rounds = (Most / 4 + Lanes - 1) / Lanes;
  const uint32 begin = static_cast<uint32>(reinterpret_cast<uint64>(to)) & 3, end = begin + size;
  uint32* const target = reinterpret_cast<uint32*>(to - begin) + lane;
  const uint32* const source = staged + lane;
  const uint32 words = end / 4;
  if (begin == 0) {
#pragma unroll
    for (uint32 n = 0; n < rounds; n++) {
      if (Lanes * n + lane < words) target[Lanes * n] = source[Lanes * n];
    }
  } else {
    if (lane > 0 && lane < words) target[0] = __funnelshift_l(source[-1], source[0], 8 * begin);
#pragma unroll
    for (uint32 n = 1; n < rounds; n++) {
      if (Lanes * n + lane < words) {
        const uint32* const at = source + Lanes * n;
        target[Lanes * n] = __funnelshift_l(at[-1], at[0], 8 * begin);
      }
    }
  }
  if ((begin | end) % 4 == 0) return;
  // The first word and the last have others' bytes, too; they may be the same one.
  const uint8* const bytes = reinterpret_cast<const uint8*>(staged);
  const uint32 first = begin ? min(4 - begin, size) : 0, left = begin && !words ? 0 : end % 4;
  if (lane < first) to[lane] = bytes[lane];
  if (lane < left) to[size - left + lane] = bytes[size - left + lane];
}

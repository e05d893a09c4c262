// Rows of bytes that a block or a warp has put together in shared memory, stored by words of 4 bytes.
#pragma once
#include "common.cuh"

// Where a row that belongs at `to` has to begin in shared memory, after a multiple of 4 bytes.
__device__ __forceinline__ int row_phase(const uint8* to) {
  return static_cast<int>(reinterpret_cast<uint64>(to) & 3);
}

// Bytes of shared memory for a row: it may begin anywhere in a word.
__device__ constexpr int row_pitch(int bytes) { return (bytes + 3 + 3) / 4 * 4; }

// Stores `size` bytes at `to`, which lie in shared memory after `row_phase(to)` bytes at `staged`.
// `lane` is the caller's number among the `lanes` threads that store the row.
__device__ __forceinline__ void store_row(uint8* to, const uint8* staged, int size, int lane,
                                          int lanes) {
  const int begin = row_phase(to), end = begin + size;
  uint8* const words = to - begin;
  for (int i = 4 * lane; i < end; i += 4 * lanes) {
    if (i >= begin && i + 4 <= end) {
      *reinterpret_cast<uint32*>(words + i) = *reinterpret_cast<const uint32*>(staged + i);
    } else {
      for (int k = max(i, begin); k < min(i + 4, end); k++) words[k] = staged[k];
    }
  }
}

// Largest and smallest values in windows, along one axis after the other.
#include "borders.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "morphology:Slid"

template <typename T, bool LARGEST>
__global__ void slide(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform,
                      int32 border) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Slid& axis = *reinterpret_cast<const Slid*>(share.record);
  const int64 index = int64(share.block) * THREADS + threadIdx.x;
  if (index >= axis.size) return;
  const uint64 line = divided(uint64(index), uint64(axis.inner)).whole;
  const int32 position = int32(divided(line, uint64(axis.extent)).rest);
  const T* const first = reinterpret_cast<const T*>(axis.source) + index - position * axis.inner;
  T best = first[position * axis.inner];
  for (int32 j = 0; j < axis.window; j++) {
    const int32 at = position_of(position - axis.before + j, axis.extent, border);
    if (at < 0) continue;
    const T value = first[at * axis.inner];
    best = (LARGEST ? value > best : value < best) ? value : best;
  }
  reinterpret_cast<T*>(axis.out)[index] = best;
}

// Medians in windows, found bit by bit from the highest on.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "median:Windowed"

// Numbers as integers of the same order.
template <typename T> __device__ __forceinline__ uint32 key_of(T value) { return value; }
template <> __device__ __forceinline__ uint32 key_of(int32 value) {
  return uint32(value) ^ 0x80000000u;
}
template <> __device__ __forceinline__ uint32 key_of(float value) {
  const uint32 bits = __float_as_uint(value);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
template <typename T> __device__ __forceinline__ T value_of(uint32 key) { return T(key); }
template <> __device__ __forceinline__ int32 value_of(uint32 key) {
  return int32(key ^ 0x80000000u);
}
template <> __device__ __forceinline__ float value_of(uint32 key) {
  return __uint_as_float(key >> 31 ? key ^ 0x80000000u : ~key);
}

__device__ __forceinline__ int32 kept(int32 at, int32 extent) {
  return at < 0 ? 0 : at < extent ? at : extent - 1;
}

template <typename T>
__global__ void median_blur(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Windowed& image = *reinterpret_cast<const Windowed*>(share.record);
  const int64 index = int64(share.block) * THREADS + threadIdx.x;
  if (index >= image.size) return;
  const Quotient<uint64> pixel = divided(uint64(index), uint64(image.channels));
  const Quotient<uint64> line = divided(pixel.whole, uint64(image.width));
  const int32 y = int32(divided(line.whole, uint64(image.height)).rest), x = int32(line.rest);
  const int64 channels = image.channels, row = image.width * channels;
  const T* const first = reinterpret_cast<const T*>(image.source) + index - y * row - x * channels;
  uint32 rank = uint32(image.high * image.wide) / 2, found = 0;
  for (int32 bit = 8 * sizeof(T) - 1; bit >= 0; bit--) {
    uint32 below = 0;  // values that begin as the median does, and go on with a zero
    for (int32 j = y - image.high / 2; j <= y + image.high / 2; j++) {
      const T* const of_row = first + kept(j, image.height) * row;
      for (int32 i = x - image.wide / 2; i <= x + image.wide / 2; i++) {
        below += key_of(of_row[kept(i, image.width) * channels]) >> bit == found << 1;
      }
    }
    found <<= 1;
    if (rank >= below) {
      rank -= below;
      found |= 1;
    }
  }
  reinterpret_cast<T*>(image.out)[index] = value_of<T>(found);
}

// Pixels taken from near by: the device's side of `jitter` of kernels/cpu/displace.py.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "displace:Jittered"

__device__ __forceinline__ int64 drawn(int64 at, float unit, int32 places, int64 extent) {
  at += int64(__fmul_rn(unit, float(places))) - places / 2;
  return at < 0 ? 0 : at < extent ? at : extent - 1;
}

template <typename T>
__global__ void jitter(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                       int32 places) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Jittered& image = *reinterpret_cast<const Jittered*>(share.record);
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x, size = image.width * image.height;
  if (pixel >= size) return;
  int64 from = pixel;
  if (image.changed) {
    const float* const units = reinterpret_cast<const float*>(image.units) + pixel;
    const Quotient<uint64> line = divided(uint64(pixel), uint64(image.width));
    from = drawn(int64(line.whole), units[size], places, image.height) * image.width +
           drawn(int64(line.rest), units[0], places, image.width);
  }
  const T* const source = reinterpret_cast<const T*>(image.source) + from * image.channels;
  T* const out = reinterpret_cast<T*>(image.out) + pixel * image.channels;
  for (int64 c = 0; c < image.channels; c++) out[c] = source[c];
}

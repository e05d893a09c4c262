// Images looked up where maps say: the device's side of kernels/cpu/remap.py.
#include "looked_up.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "remap:Mapped"

template <typename T, int KIND>
__global__ void remap(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                      float shift) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Mapped& image = *reinterpret_cast<const Mapped*>(share.record);
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= image.height * image.width) return;
  const float x = reinterpret_cast<const float*>(image.x)[pixel] + shift;
  const float y = reinterpret_cast<const float*>(image.y)[pixel] + shift;
  T* const out = reinterpret_cast<T*>(image.out) + pixel * image.channels;
  look_up<T, KIND>({image.source, image.height, image.width, image.channels, false}, CONSTANT,
                   nullptr, x, y, out, 1);
}

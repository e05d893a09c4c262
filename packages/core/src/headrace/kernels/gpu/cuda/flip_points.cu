// Points and boxes that are mirrored: the device's side of kernels/cpu/flip_points.py.
#include "common.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "flip_points:Flipped"

__global__ void flip_points(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Flipped& sample = *reinterpret_cast<const Flipped*>(share.record);
  const int64 k = int64(share.block) * THREADS + threadIdx.x;
  if (k >= sample.threads) return;
  const int64 axis = k % sample.axes;
  const float number = reinterpret_cast<const float*>(sample.source)[k];
  reinterpret_cast<float*>(sample.out)[k] =
      number * sample.factors[axis] + sample.offsets[axis];
}

template <bool CORNERS>
__global__ void flip_boxes(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Flipped& sample = *reinterpret_cast<const Flipped*>(share.record);
  const int64 k = int64(share.block) * THREADS + threadIdx.x;  // an axis of a box
  if (k >= sample.threads) return;
  const int64 axis = k % 2, first = k / 2 * 4 + axis;
  const float* const box = reinterpret_cast<const float*>(sample.source) + first;
  float* const out = reinterpret_cast<float*>(sample.out) + first;
  float low = box[0], high = CORNERS ? box[2] : box[2] + low;
  if (sample.factors[axis] != 0) {
    const float end = 1 - low;
    low = 1 - high;
    high = end;
  }
  out[0] = low;
  out[2] = CORNERS ? high : high - low;
}

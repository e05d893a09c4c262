// Points mapped by affine maps: the device's side of kernels/cpu/points.py.
#include "as_float.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "points:Points"

template <typename In, typename Out>
__global__ void map_points(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Points& sample = *reinterpret_cast<const Points*>(share.record);
  const int64 element = int64(share.block) * THREADS + threadIdx.x;
  if (element >= sample.elements) return;
  const int64 point = element / sample.out_axes;
  const float* const row = sample.matrix[element - point * sample.out_axes];
  const In* const from = reinterpret_cast<const In*>(sample.source) + point * sample.axes;
  float total = row[0] * as_float(from[0]);
  for (int k = 1; k < sample.axes; k++) total += row[k] * as_float(from[k]);
  reinterpret_cast<Out*>(sample.out)[element] = saturated<Out>(total + row[sample.axes]);
}

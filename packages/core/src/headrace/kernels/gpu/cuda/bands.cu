// Weighted sums of neighbours along an axis: filter banks and cosine transforms. The device's side
// of kernels/cpu/bands_loops.py, with the same arithmetic in the same order.
#include "common.cuh"

#include "records:THREADS"

#include "bands:Sample"

struct Range {
  int64 first, count, weights;
};

__global__ void __launch_bounds__(THREADS)
apply_bands(const Sample* __restrict__ samples, uint32 blocks_per_sample) {
  const Sample& sample = samples[blockIdx.x / blocks_per_sample];
  const float* const source = reinterpret_cast<const float*>(sample.source);
  const float* const weights = reinterpret_cast<const float*>(sample.weights);
  const Range* const ranges = reinterpret_cast<const Range*>(sample.ranges);
  float* const out = reinterpret_cast<float*>(sample.out);
  const int64 i = int64(blockIdx.x % blocks_per_sample) * THREADS + threadIdx.x;
  if (i >= sample.size) return;
  const int64 row = i / sample.inner, column = i - row * sample.inner, outer = row / sample.sums;
  const Range range = ranges[row - outer * sample.sums];
  const float* const from =
      source + (outer * sample.extent + range.first) * sample.inner + column;
  const float* const weight = weights + range.weights;
  const int count = int(range.count);
  float total = 0.0f;
  int k = 0;
  constexpr int together = 8;  // reads that are under way before the first is needed
  for (; k + together <= count; k += together) {
    float values[together];
#pragma unroll
    for (int n = 0; n < together; n++) values[n] = __ldg(from + (k + n) * sample.inner);
#pragma unroll
    for (int n = 0; n < together; n++) {
      total = __fmaf_rn(values[n], __ldg(weight + k + n), total);
    }
  }
  for (; k < count; k++) {
    total = __fmaf_rn(__ldg(from + k * sample.inner), __ldg(weight + k), total);
  }
  out[i] = total;
}

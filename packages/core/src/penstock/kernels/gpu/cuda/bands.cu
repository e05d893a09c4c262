// Weighted sums of neighbours along an axis: filter banks and cosine transforms. The device's side
// of kernels/cpu/bands_loops.py, with the same arithmetic in the same order.
#include "common.cuh"

constexpr int THREADS = 256, PER_THREAD = 4;

struct Sample {
  uint64 source, out;
  uint64 ranges, weights;
  int64 size;  // of the output
  int64 inner;
  int32 extent, sums;
};

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
  const int64 first = int64(blockIdx.x % blocks_per_sample) * THREADS * PER_THREAD;
  for (int n = 0; n < PER_THREAD; n++) {
    const int64 i = first + n * THREADS + threadIdx.x;
    if (i >= sample.size) break;
    const int64 row = i / sample.inner, column = i - row * sample.inner;
    const int64 outer = row / sample.sums;
    const Range range = ranges[row - outer * sample.sums];
    const float* from = source + (outer * sample.extent + range.first) * sample.inner + column;
    const float* weight = weights + range.weights;
    float total = 0.0f;
    for (int64 k = 0; k < range.count; k++) {
      total = __fmaf_rn(__ldg(from), __ldg(weight + k), total);
      from += sample.inner;
    }
    out[i] = total;
  }
}

// Filters along any one axis, with a window of any size.
#include "filter.cuh"

#include "records:THREADS"
#include "filter:EACH"

#include "filter:AxisSample"

template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
filter_axis(const AxisSample* __restrict__ samples, uint32 tiles_per_sample) {
  const AxisSample& sample = samples[blockIdx.x / tiles_per_sample];
  const int64 begin = int64(blockIdx.x % tiles_per_sample) * (THREADS * EACH) + threadIdx.x;
  const In* const source = reinterpret_cast<const In*>(sample.source);
  const float* const weights = reinterpret_cast<const float*>(sample.weights);
  const int64 inner = sample.inner;
  const int extent = sample.extent, reach = sample.reach;
  for (int e = 0; e < EACH; e++) {
    const int64 index = begin + e * THREADS;
    if (index >= sample.size) return;
    // Divisions of 64 bits take several times as long.
    const int position = sample.size >> 32
                             ? static_cast<int>(index / inner % extent)
                             : static_cast<int>(uint32(index) / uint32(inner) % uint32(extent));
    const In* const centre = source + index;
    float sum = weights[0] * as_float(*centre);
    if (position >= reach && position < extent - reach) {
      for (int k = 1; k <= reach; k++) {
        sum = __fmaf_rn(weights[k], as_float(centre[-k * inner]) + as_float(centre[k * inner]), sum);
      }
    } else {
      for (int k = 1; k <= reach; k++) {
        const int64 before = mirrored(position - k, extent) - position;
        const int64 after = mirrored(position + k, extent) - position;
        sum = __fmaf_rn(weights[k],
                        as_float(centre[before * inner]) + as_float(centre[after * inner]), sum);
      }
    }
    reinterpret_cast<Out*>(sample.out)[index] = filtered<In, Out>(sum);
  }
}

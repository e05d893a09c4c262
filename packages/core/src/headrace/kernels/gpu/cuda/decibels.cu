// Decibels of whole samples, and the largest number of each.
#include "decibels.cuh"

#include "records:THREADS"
#include "decibels:EACH"

#include "decibels:Sample"

__global__ void __launch_bounds__(THREADS)
largest(const Sample* __restrict__ samples, uint32 blocks_per_sample) {
  const Sample sample = samples[blockIdx.x / blocks_per_sample];
  const float* const source = reinterpret_cast<const float*>(sample.source);
  const int64 first = int64(blockIdx.x % blocks_per_sample) * THREADS * EACH;
  if (first >= sample.size) return;
  float found = 0.0f;
#pragma unroll
  for (int n = 0; n < EACH; n++) {
    const int64 i = first + n * THREADS + threadIdx.x;
    if (i >= sample.size) break;
    const float value = __ldg(source + i);
    found = value > found ? value : found;
  }
  note_largest(found, reinterpret_cast<uint32*>(sample.largest));
}

__global__ void __launch_bounds__(THREADS)
decibels(const Sample* __restrict__ samples, uint32 blocks_per_sample, float reference,
         float smallest, float factor) {
  const Sample sample = samples[blockIdx.x / blocks_per_sample];
  const float* const source = reinterpret_cast<const float*>(sample.source);
  float* const out = reinterpret_cast<float*>(sample.out);
  const int64 first = int64(blockIdx.x % blocks_per_sample) * THREADS * EACH;
  if (first >= sample.size) return;
  const DecibelScale scale = {reference, smallest, factor};
  const float inverse = inverse_reference(scale, reinterpret_cast<const uint32*>(sample.largest));
#pragma unroll
  for (int n = 0; n < EACH; n++) {
    const int64 i = first + n * THREADS + threadIdx.x;
    if (i < sample.size) out[i] = decibels_of(source[i], inverse, scale);
  }
}

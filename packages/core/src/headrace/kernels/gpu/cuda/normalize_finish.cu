// From the moments of parts to what data is normalised by.
#include "moments.cuh"

#include "records:THREADS"

#include "normalize_moments:Merge"

// Puts together the parts along one axis.
template <int Lanes>
__global__ void __launch_bounds__(THREADS)
merge_moments(const Merge* __restrict__ samples, uint32 blocks_per_sample) {
  const Merge& sample = samples[blockIdx.x / blocks_per_sample];
  const int64 thread = int64(blockIdx.x % blocks_per_sample) * THREADS + threadIdx.x;
  const int64 group = thread / Lanes;
  const int lane = thread % Lanes;
  if (group >= sample.outer * sample.inner) return;
  const int64 outer = group / sample.inner, inner = group % sample.inner;
  const Moments* const parts =
      reinterpret_cast<const Moments*>(sample.parts) + outer * sample.count * sample.inner + inner;
  const Moments whole = merged<Lanes>(parts, sample.inner, sample.count, lane);
  if (lane == 0) reinterpret_cast<Moments*>(sample.out)[group] = whole;
}

#include "normalize_moments:Finish"

// Which moments belong to a position along the outer axis.
__device__ __forceinline__ int64 kept_position(const Finish& sample, int64 outer) {
  if (!sample.run_count) return outer;
  int64 kept = 0, step = 1;
  for (int r = sample.run_count - 1; r >= 0; r--) {
    if (sample.kept_runs >> r & 1) {
      kept += outer % sample.runs[r] * step;
      step *= sample.runs[r];
    }
    outer /= sample.runs[r];
  }
  return kept;
}

// Puts together the parts of each group, and writes its mean and what differences are multiplied by.
template <typename Mean, int Lanes>
__global__ void __launch_bounds__(THREADS)
finish_moments(const Finish* __restrict__ samples, uint32 blocks_per_sample, double ddof,
               double epsilon, double scale) {
  const Finish& sample = samples[blockIdx.x / blocks_per_sample];
  const int64 thread = int64(blockIdx.x % blocks_per_sample) * THREADS + threadIdx.x;
  const int64 group = thread / Lanes;
  const int lane = thread % Lanes;
  if (group >= sample.outer * sample.inner) return;
  const int64 kept = kept_position(sample, group / sample.inner), inner = group % sample.inner;
  const Moments* const parts =
      reinterpret_cast<const Moments*>(sample.parts) + kept * sample.count * sample.inner + inner;
  const Moments whole = merged<Lanes>(parts, sample.inner, sample.count, lane);
  if (lane != 0) return;

  Mean mean = static_cast<Mean>(mean_of(whole));
  if (sample.centre) {
    mean = reinterpret_cast<const Mean*>(sample.centre)[sample.centre_is_single ? 0 : group];
  }
  if (sample.mean) reinterpret_cast<Mean*>(sample.mean)[group] = mean;
  if (sample.factor) {
    reinterpret_cast<float*>(sample.factor)[group] = factor_of(whole, mean, {ddof, epsilon, scale});
  }
}

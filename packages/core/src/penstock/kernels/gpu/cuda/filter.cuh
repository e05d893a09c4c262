// Separable filters with symmetric windows: the device's side of kernels/cpu/filter.py.
// Sums begin with the centre and go outwards, pair by pair, multiplying and adding in one rounding,
// as on the CPU.
#pragma once
#include "as_float.cuh"
#include "cast.cuh"

// Which element stands at `position`: beyond both ends they repeat backwards, the outermost once.
__device__ __forceinline__ int mirrored(int position, int extent) {
  if (extent == 1) return 0;
  position = abs(position);
  if (position < extent) return position;
  const int period = 2 * (extent - 1);
  position %= period;
  return min(position, period - position);
}

// A sum as an element: rounded, halves away from zero, limits kept.
template <typename Out> __device__ __forceinline__ Out filtered(float sum) {
  if constexpr (!Limits<Out>::is_integer) return cast_to<Out>(sum);
  else if constexpr (Limits<Out>::width <= 16) return saturated<Out>(sum);
  else return cast_to<Out>(sum);
}

// Weighted sums around `Count` neighbouring elements, of which the first is `values[Reach]`. All
// loops have constant bounds, so that values stay in registers; `reach` ends them early.
template <int Count, int Reach>
__device__ __forceinline__ void weigh(const float (&values)[Count + 2 * Reach],
                                      const float* weights, int reach, float (&sums)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++) sums[i] = weights[0] * values[Reach + i];
#pragma unroll
  for (int k = 1; k <= Reach; k++) {
    if (k > reach) break;
    const float weight = weights[k];
#pragma unroll
    for (int i = 0; i < Count; i++) {
      sums[i] = __fmaf_rn(weight, values[Reach + i - k] + values[Reach + i + k], sums[i]);
    }
  }
}

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

// An element as a float, where nothing else is done with bytes: Hopper converts them as fast as it
// adds.
template <typename T> __device__ __forceinline__ float number_of(T value) {
  return as_float(value);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ float number_of(uint8 value) {
  return static_cast<float>(static_cast<uint32>(value));
}
#endif

// A sum of elements of type `In` as an element: rounded, halves away from zero, limits kept.
template <typename In, typename Out> __device__ __forceinline__ Out filtered(float sum) {
  if constexpr (!Limits<Out>::is_integer) return cast_to<Out>(sum);
  // A mean of elements of the same type is a number, and nowhere outside of their limits by as much
  // as rounding takes off again.
  else if constexpr (same<In, Out> && Limits<Out>::width <= 16 && !Limits<Out>::is_signed)
    return static_cast<Out>(static_cast<int32>(sum + 0.49999997f));
  else if constexpr (Limits<Out>::width <= 16) return saturated<Out>(sum);
  else return cast_to<Out>(sum);
}

// Conversions of element types by the rules of `slice`: kernels/cpu/cast.py with ``rounded=False``.
// Fractions are dropped, and everything saturates, infinities too. Not-a-numbers stay what they are
// in floating point types; as integers they are 0.
#pragma once
#include "cast.cuh"

// Not-a-numbers fail both comparisons.
template <typename T> __device__ __forceinline__ T within(T value, T limit) {
  value = value > limit ? limit : value;
  return value < -limit ? -limit : value;
}

template <typename Out, typename In> __device__ __forceinline__ Out truncated_to(In value) {
  if constexpr (same<Out, In>) return value;
  else if constexpr (same<In, half>) return truncated_to<Out>(__half2float(value));
  else if constexpr (same<Out, half>)
    return __float2half_rn(within(static_cast<float>(value), 65504.0f));
  else if constexpr (same<Out, float> && same<In, double>)
    return static_cast<float>(within(value, 3.4028234663852886e38));
  else if constexpr (is_real<Out> || same<In, bool>) return static_cast<Out>(value);
  else if constexpr (is_real<In>) return from_whole<Out>(trunc(value));
  else return clipped<Out>(value);
}

// Numbers of continuous distributions as elements of tensors.
#pragma once
#include "arithmetic_types.cuh"

// A number of a continuous distribution as an element. Halves are rounded away from zero.
template <typename Out, typename Work> __device__ __forceinline__ Out drawn_as(Work value) {
  if constexpr (same<Out, Work>) return value;
  else if constexpr (same<Out, half>) return __float2half_rn(value);
  else if constexpr (bits<Out> < 64) {
    constexpr double low = lowest<Out>, high = highest<Out>;
    if (value != value) return 0;
    value = value < low ? low : value > high ? high : value;
    return static_cast<Out>(round(double(value)));
  } else {
    // 2**63 or 2**64: the largest integers themselves are no doubles.
    constexpr double low = lowest<Out>, above = 2.0 * (highest<Out> / 2 + 1);
    const double rounded = trunc(value + copysign(0.5, value));
    if (rounded != rounded) return 0;
    if (rounded >= above) return static_cast<Out>(highest<Out>);
    return rounded <= low ? lowest<Out> : static_cast<Out>(rounded);
  }
}

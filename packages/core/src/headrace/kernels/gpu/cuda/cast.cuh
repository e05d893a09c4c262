// Conversions of element types by the rules of `cast`: the device's side of kernels/cpu/cast.py.
// Fractions are rounded, halves away from zero; integers saturate; what is too large for a
// floating point type becomes infinite. Not-a-numbers become 0 in types of up to 16 bits and in
// uint32, the most negative number in int32 and int64, and 2**63 in uint64.
#pragma once
#include "arithmetic_types.cuh"

template <typename Out, typename In> __device__ __forceinline__ Out clipped(In value) {
  // The range that both types have, in the type of `value`.
  constexpr bool below = is_signed<In> && (!is_signed<Out> || bits<Out> < bits<In>);
  constexpr bool above = highest<Out> < highest<In>;
  if constexpr (below) {
    constexpr In low = is_signed<Out> ? In(lowest<Out>) : In(0);
    if (value < low) return Out(low);
  }
  if constexpr (above) {
    constexpr In high = In(highest<Out>);
    if (value > high) return Out(high);
  }
  return static_cast<Out>(value);
}

template <typename Out> __device__ __forceinline__ Out not_a_number() {
  if constexpr (bits<Out> == 64) return Out(1ull << 63);
  else if constexpr (bits<Out> == 32 && is_signed<Out>) return lowest<Out>;
  else return 0;
}

// A whole number, or not a number, as an integer.
template <typename Out, typename In> __device__ __forceinline__ Out from_whole(In value) {
  // Powers of two, so both are numbers of any floating point type; the upper one does not fit.
  constexpr In low = is_signed<Out> ? -In(1ull << (bits<Out> - 1)) : In(0);
  constexpr In above = In(2) * In(1ull << (bits<Out> - 1 - (is_signed<Out> ? 1 : 0)));
  if (value >= above) return Out(highest<Out>);
  if (value <= low) return lowest<Out>;
  return value == value ? static_cast<Out>(value) : not_a_number<Out>();
}

template <typename Out> __device__ __forceinline__ Out rounded_to(float value) {
  return from_whole<Out>(roundf(value));
}

template <typename Out> __device__ __forceinline__ Out rounded_to(double value) {
  // The largest number below one half: one half itself would carry what is just below it to 1.
  return from_whole<Out>(trunc(value + copysign(0.49999999999999994, value)));
}

template <typename Out, typename In> __device__ __forceinline__ Out cast_to(In value) {
  if constexpr (same<Out, In>) return value;
  else if constexpr (same<In, half>) return cast_to<Out>(__half2float(value));
  else if constexpr (same<Out, half>) return __float2half_rn(static_cast<float>(value));
  else if constexpr (same<Out, bool>) {
    // Rounded first: 0.4 is false. Not-a-numbers are true.
    if constexpr (is_real<In>) return !((value < 0 ? -value : value) < In(0.5));
    else return value != In(0);
  }
  else if constexpr (is_real<Out> || same<In, bool>) return static_cast<Out>(value);
  else if constexpr (is_real<In>) return rounded_to<Out>(value);
  else return clipped<Out>(value);
}

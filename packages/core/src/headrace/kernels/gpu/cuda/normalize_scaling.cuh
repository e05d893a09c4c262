// The arithmetic of `normalize`, and where its parameters are.
#pragma once
#include "as_float.cuh"
#include "cast.cuh"

#include "normalize:Parameters"

// Integers of 32 bits have more digits than float32: their differences are taken in float64.
template <typename In> constexpr bool needs_double = Limits<In>::is_integer && sizeof(In) == 4;
template <bool Double> struct MeanType { using type = float; };
template <> struct MeanType<true> { using type = double; };

template <typename In> struct Scaling {
  using Mean = typename MeanType<needs_double<In>>::type;
  Mean mean;
  float scale, shift;

  __device__ __forceinline__ Scaling() {}
  __device__ __forceinline__ Scaling(const Parameters& given, int64 group, float shift)
      : mean(reinterpret_cast<const Mean*>(given.mean)[given.mean_is_single ? 0 : group]),
        scale(reinterpret_cast<const float*>(given.scale)[given.scale_is_single ? 0 : group]),
        shift(shift) {}

  __device__ __forceinline__ float operator()(In value) const {
    if constexpr (needs_double<In>) {
      return __fmaf_rn(static_cast<float>(static_cast<double>(value) - mean), scale, shift);
    } else {
      return __fmaf_rn(as_float(value) - mean, scale, shift);
    }
  }
};

// A result as an element: rounded, halves away from zero, limits kept.
template <typename Out> __device__ __forceinline__ Out scaled(float value) {
  if constexpr (Limits<Out>::is_integer && sizeof(Out) <= 2) return saturated<Out>(value);
  else return cast_to<Out>(value);
}

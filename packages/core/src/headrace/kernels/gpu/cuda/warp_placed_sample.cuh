// What becomes of the elements of a window of a warp on their way to memory: see kernels/gpu/warp.py.
#pragma once
#include "as_float.cuh"
#include "pixel_finish.cuh"
#include "warp_sample.cuh"

// What an element becomes first: nothing else, here.
template <typename T> struct Keep {
  using Type = T;

  __device__ __forceinline__ explicit Keep(const uint8*) {}
  __device__ __forceinline__ T operator()(T value) const { return value; }
};

// Or what a generated struct `Body`, of pixels of one channel, makes of it, with a row of numbers.
template <typename Body> struct Each {
  using Type = typename Body::Out;
  typename Body::Numbers numbers;

  __device__ __forceinline__ explicit Each(const uint8* row)
      : numbers(*reinterpret_cast<const typename Body::Numbers*>(row)) {}
  __device__ __forceinline__ Type operator()(typename Body::In value) const {
    const typename Body::In given[1] = {value};
    Type made[1];
    Body::pixel(numbers, given, made);
    return made[0];
  }
};

// And then: it is normalised, or left as it is.
template <typename Out, bool Normalized, typename T>
__device__ __forceinline__ Out finished(const Finish& finish, T value, int channel) {
  if constexpr (Normalized) {
    return Finish::normalized<Out>(as_float(value), finish.mean(channel), finish.factor(channel));
  } else {
    return value;
  }
}

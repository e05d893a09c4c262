// Functions of single elements: the device's side of kernels/cpu/pointwise_loops.py.
#pragma once
#include "common.cuh"

// A linear function, rounded to an integer type; as DALI does it, product and sum round apart.
template <typename Out, typename In>
__device__ __forceinline__ Out scale_and_shift(In value, float scale, float offset) {
  return saturated<Out>(__fadd_rn(__fmul_rn(static_cast<float>(value), scale), offset));
}

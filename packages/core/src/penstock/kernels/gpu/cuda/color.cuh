// Functions of pixels: the device's side of kernels/cpu/color_loops.py.
#pragma once
#include "as_float.cuh"

// The intrinsic says that the address is in global memory, which a pointer out of a table does not.
template <typename T> __device__ __forceinline__ T element_of(const T* address) {
  return __ldg(address);
}
__device__ __forceinline__ bool element_of(const bool* address) {
  return __ldg(reinterpret_cast<const uint8*>(address));
}

// One channel of a linear function: a product and a sum after the other, each rounded, as on the CPU.
template <typename Out>
__device__ __forceinline__ Out color_channel(float a, float b, float c, const float* row,
                                             float offset) {
  const float sum = __fadd_rn(__fmul_rn(a, row[0]), __fmul_rn(b, row[1]));
  return saturated<Out>(__fadd_rn(__fadd_rn(sum, __fmul_rn(c, row[2])), offset));
}

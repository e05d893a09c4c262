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

// `saturated`. For bytes the conversion itself keeps the limits, and makes 0 of what is not a number.
template <typename Out> __device__ __forceinline__ Out color_rounded(float value) {
  return saturated<Out>(value);
}
#ifndef HEADRACE_ON_CPU
template <> __device__ __forceinline__ uint8 color_rounded<uint8>(float value) {
  uint32 rounded;
  asm("{ .reg .u8 byte; cvt.rzi.u8.f32 byte, %1; cvt.u32.u8 %0, byte; }"
      : "=r"(rounded)
      : "f"(value + 0.49999997f));
  return static_cast<uint8>(rounded);
}
#endif

// A byte of a word, which becomes a float in two instructions.
struct PackedByte {
  uint32 word;
  uint32 place;

  __device__ __forceinline__ explicit operator uint8() const {
    return static_cast<uint8>(word >> 8 * place);
  }
};
__device__ __forceinline__ float as_float(PackedByte value) {
  const uint32 bits = __byte_perm(value.word, 0x4b000000u, 0x7440u | value.place);
  return __uint_as_float(bits) - 8388608.0f;
}

// One channel of a linear function: a product and a sum after the other, each rounded, as on the CPU.
template <typename Out>
__device__ __forceinline__ Out color_channel(float a, float b, float c, const float* row,
                                             float offset) {
  const float sum = __fadd_rn(__fmul_rn(a, row[0]), __fmul_rn(b, row[1]));
  return color_rounded<Out>(__fadd_rn(__fadd_rn(sum, __fmul_rn(c, row[2])), offset));
}

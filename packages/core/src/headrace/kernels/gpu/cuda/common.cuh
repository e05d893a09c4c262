// What every program uses: fixed-width names, and the conversions between element types.
#pragma once
#ifdef HEADRACE_ON_CPU
#include "cuda_on_cpu.h"
#else
#include <cuda_fp16.h>
// The shared memory whose size the launch says, as an array: DYNAMIC_SHARED(float, tile);
#define DYNAMIC_SHARED(type, name)                                                       \
  extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];                 \
  type* const name = reinterpret_cast<type*>(dynamic_shared_memory)
#endif

using uint8 = unsigned char;
using int8 = signed char;
using uint16 = unsigned short;
using int16 = short;
using uint32 = unsigned int;
using int32 = int;
using uint64 = unsigned long long;
using int64 = long long;

template <typename T> struct Limits;
#define HEADRACE_LIMITS(type, bits, is_signed_)                                          \
  template <> struct Limits<type> {                                                      \
    static constexpr bool is_integer = true;                                             \
    static constexpr bool is_signed = is_signed_;                                        \
    static constexpr int width = bits;                                                   \
  };
HEADRACE_LIMITS(uint8, 8, false)
HEADRACE_LIMITS(int8, 8, true)
HEADRACE_LIMITS(uint16, 16, false)
HEADRACE_LIMITS(int16, 16, true)
HEADRACE_LIMITS(uint32, 32, false)
HEADRACE_LIMITS(int32, 32, true)
HEADRACE_LIMITS(uint64, 64, false)
HEADRACE_LIMITS(int64, 64, true)
#undef HEADRACE_LIMITS
template <> struct Limits<half> { static constexpr bool is_integer = false; };
template <> struct Limits<float> { static constexpr bool is_integer = false; };
template <> struct Limits<double> { static constexpr bool is_integer = false; };

// The number that arithmetic is done with: half has no arithmetic of its own here.
template <typename T> __device__ __forceinline__ T widened(T value) { return value; }
__device__ __forceinline__ float widened(half value) { return __half2float(value); }

// A float at the end of arithmetic as an element: rounded, halves away from zero, limits kept.
// Not-a-numbers become 0, and in int32 the most negative number, as on the CPU.
template <typename Out> __device__ __forceinline__ Out saturated(float value) {
  if constexpr (Limits<Out>::width == 32) {
    if (!(value > -2147483648.0f)) return -2147483647 - 1;
    if (value > 2147483520.0f) return 2147483647;
    return static_cast<int32>(value + copysignf(0.49999997f, value));
  } else if constexpr (!Limits<Out>::is_signed) {
    constexpr float high = float((1 << Limits<Out>::width) - 1);
    value = value > 0.0f ? value : 0.0f;  // where it is not a number, too
    value = value < high ? value : high;
    return static_cast<Out>(static_cast<int32>(value + 0.49999997f));
  } else {
    constexpr float low = -float(1 << (Limits<Out>::width - 1));
    constexpr float high = float((1 << (Limits<Out>::width - 1)) - 1);
    if (value != value) return 0;
    value = value > low ? value : low;
    value = value < high ? value : high;
    return static_cast<Out>(static_cast<int32>(value + copysignf(0.49999997f, value)));
  }
}
template <> __device__ __forceinline__ float saturated<float>(float value) { return value; }
template <> __device__ __forceinline__ half saturated<half>(float value) {
  return __float2half_rn(value);
}

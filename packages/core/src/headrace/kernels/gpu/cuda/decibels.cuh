// Decibels: the device's side of kernels/cpu/decibel_loops.py, with the same arithmetic in the same
// order.
#pragma once
#include "common.cuh"

#include "decibels:DecibelScale"

// Natural logarithm of a positive number; see there.
__device__ __forceinline__ float logarithm(float value) {
  const bool denormal = value < 1.17549435e-38f;
  const float normal = denormal ? value * 8388608.0f : value;
  const int32 above = int32(__float_as_uint(normal) - 0x3f3504f3u);
  float power = float(above >> 23);
  if (denormal) power = power - 23.0f;
  const float x = __uint_as_float((uint32(above) & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  const float square = x * x;
  float y = 7.0376836292e-2f;
  y = __fmaf_rn(y, x, -1.1514610310e-1f);
  y = __fmaf_rn(y, x, 1.1676998740e-1f);
  y = __fmaf_rn(y, x, -1.2420140846e-1f);
  y = __fmaf_rn(y, x, 1.4249322787e-1f);
  y = __fmaf_rn(y, x, -1.6668057665e-1f);
  y = __fmaf_rn(y, x, 2.0000714765e-1f);
  y = __fmaf_rn(y, x, -2.4999993993e-1f);
  y = __fmaf_rn(y, x, 3.3333331174e-1f);
  y = y * (x * square);
  y = __fmaf_rn(power, -2.12194440e-4f, y);
  y = __fmaf_rn(square, -0.5f, y);
  y = x + y;
  y = __fmaf_rn(power, 0.693359375f, y);
  const float infinity = __uint_as_float(0x7f800000u);
  return value < infinity ? y : infinity;
}

__device__ __forceinline__ float decibels_of(float value, float inverse, const DecibelScale& scale) {
  const float ratio = value * inverse;
  return logarithm(ratio > scale.smallest ? ratio : scale.smallest) * scale.factor;
}

// What numbers are multiplied by; `largest` is the bits of the largest one that is above 0, or 0.
__device__ __forceinline__ float inverse_reference(const DecibelScale& scale,
                                                   const uint32* largest) {
  float reference = scale.reference;
  if (reference == 0.0f) reference = __uint_as_float(*largest);
  if (reference == 0.0f) reference = 1.0f;
  return __fdiv_rn(1.0f, reference);
}

// Raises `*largest` to the largest that a thread of the block has found. All threads take part.
__device__ __forceinline__ void note_largest(float found, uint32* largest) {
  __shared__ uint32 together;
  if (threadIdx.x == 0) together = 0;
  __syncthreads();
  // Bits of positive numbers are in the order of the numbers.
  if (found > 0.0f) atomicMax(&together, __float_as_uint(found));
  __syncthreads();
  if (threadIdx.x == 0 && together != 0) atomicMax(largest, together);
}

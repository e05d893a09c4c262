// Decoded pixels as the user wants them: element types from full range to full range, YCbCr.
// The arithmetic is that of kernels/cpu/decode/convert.py, step by step.
#pragma once
#include "common.cuh"

// An image as the decoder left it, seen upright: strides, maybe negative, undo how it is stored.
#include "decode.convert:DecodedImage"

// What stands for full intensity.
template <typename T> __device__ __forceinline__ constexpr float full_intensity() {
  if constexpr (Limits<T>::is_integer) {
    return float((1ull << (Limits<T>::width - Limits<T>::is_signed)) - 1);
  } else {
    return 1.0f;
  }
}

// A number that is not negative as an element: rounded half up, and not beyond full intensity.
template <typename Out> __device__ __forceinline__ Out half_up(float value) {
  if constexpr (!Limits<Out>::is_integer) {
    return value;
  } else {
    float whole = floorf(value);
    if (value - whole >= 0.5f) whole += 1.0f;  // exact, where adding 0.5 first is not
    if (whole < full_intensity<Out>()) return static_cast<Out>(whole);
    return Out((1ull << (Limits<Out>::width - Limits<Out>::is_signed)) - 1);
  }
}

template <typename In, typename Out> __device__ __forceinline__ Out rescaled(In value) {
  const float fraction = __fmul_rn(float(value), float(1.0 / double(full_intensity<In>())));
  if constexpr (!Limits<Out>::is_integer) {
    return fraction;
  } else if constexpr (sizeof(In) == sizeof(Out) && !Limits<Out>::is_signed) {
    return value;
  } else {
    return half_up<Out>(__fmul_rn(fraction, full_intensity<Out>()));
  }
}

// One row of `matrix` (three weights and what is added) applied to a pixel.
template <typename In, typename Out>
__device__ __forceinline__ Out weighted(In red, In green, In blue, const float *matrix) {
  const float last = __fmaf_rn(float(blue), matrix[2], matrix[3]);
  const float value = __fmaf_rn(float(red), matrix[0], __fmaf_rn(float(green), matrix[1], last));
  if constexpr (full_intensity<Out>() == 255.0f) {
    return static_cast<Out>(fminf(rintf(fmaxf(value, 0.0f)), 255.0f));
  } else {
    return half_up<Out>(value);
  }
}

// Where a pixel goes: `matrix` is that of YCbCr, or null where colours stay as they are.
template <typename In, typename Out>
__device__ __forceinline__ void store_pixel(
    const In *pixel, Out *target, int channels, const float *matrix) {
  if (matrix != nullptr) {
    const In red = pixel[0], green = pixel[1], blue = pixel[2];
    for (int k = 0; k < 3; k++) target[k] = weighted<In, Out>(red, green, blue, matrix + 4 * k);
  } else {
    for (int k = 0; k < channels; k++) target[k] = rescaled<In, Out>(pixel[k]);
  }
}

// What the kernels of resampling share: see kernels/gpu/resample.py.
#pragma once
#include "normalize_pixels_runs.cuh"

// A sample, or the frames of one, to be resampled along rows and columns.
#include "resample:ResampledSample"

// The memory between the first and the last element of a frame.
struct FrameLimits {
  uint64 low, high;
};

__device__ __forceinline__ FrameLimits limits_of(const ResampledSample& s, uint64 frame,
                                              int pixel_bytes) {
  const int64 reach = (s.in_rows - 1) * s.row;
  return {frame + min(reach, int64(0)), frame + max(reach, int64(0)) + s.in_columns * pixel_bytes};
}

// The integers that pixels are rounded to before anything else happens to them, halves to even: all
// have 16 bits or fewer.
struct Rounding {
  // Sums with it are whole. The integer is in the last bits of the sum.
  static constexpr float WHOLE = 12582912.0f;

  int wanted;
  float low, high;

  __device__ __forceinline__ float operator()(float value) const {
    return wanted ? __fsub_rn(__fadd_rn(fminf(fmaxf(value, low), high), WHOLE), WHOLE) : value;
  }

  // The same as an element, where it is wanted.
  template <typename Out> __device__ __forceinline__ Out whole(float value) const {
    if constexpr (Limits<Out>::is_integer) {
      constexpr int bits = Limits<Out>::is_signed ? Limits<Out>::width - 1 : Limits<Out>::width;
      constexpr float most = float((1 << bits) - 1), least = Limits<Out>::is_signed ? -most - 1 : 0;
      const float within = fminf(fmaxf(value, fmaxf(low, least)), fminf(high, most));
      return static_cast<Out>(__float_as_uint(__fadd_rn(within, WHOLE)));
    } else {
      return saturated<Out>((*this)(value));
    }
  }
};

template <typename In> __device__ __forceinline__ float number_at(const char* place) {
  return static_cast<float>(__ldg(reinterpret_cast<const In*>(place)));
}

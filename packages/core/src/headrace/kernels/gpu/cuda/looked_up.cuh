// Pixels looked up between those of an image.
#pragma once
#include "as_float.cuh"
#include "borders.cuh"
#include "cast.cuh"

#include "perspective:Kind"

struct LookedUp {
  uint64 source;
  int64 height, width, channels;
  bool planar;
};

// Weights of four neighbours, the second of which is at a distance `t` before the point.
__device__ void cubic_weights(float t, float* weights) {
  const float A = -0.75f, s = 1.0f - t, u = t + 1.0f;
  weights[0] = ((A * u - 5.0f * A) * u + 8.0f * A) * u - 4.0f * A;
  weights[1] = ((A + 2.0f) * t - (A + 3.0f)) * t * t + 1.0f;
  weights[2] = ((A + 2.0f) * s - (A + 3.0f)) * s * s + 1.0f;
  weights[3] = 1.0f - weights[0] - weights[1] - weights[2];
}

// Fill what lies `out_apart` apart with the channels at a place, counted between centres of pixels.
template <typename T, int KIND>
__device__ void look_up(const LookedUp& image, int border, const float* fills, double x, double y,
                        T* out, int64 out_apart) {
  const double limit = 1e9;  // an integer holds it, and no image is as large
  x = fmin(fmax(x, -limit), limit);
  y = fmin(fmax(y, -limit), limit);
  int first = 0, taps = 1;
  float across[4] = {1}, down[4] = {1};
  int64 left, top;
  if (KIND == NEAREST) {
    left = llrint(x), top = llrint(y);
  } else {
    left = int64(floor(x)), top = int64(floor(y));
    const float p = float(x - floor(x)), q = float(y - floor(y));
    if (KIND == LINEAR) {
      taps = 2;
      across[0] = 1 - p, across[1] = p, down[0] = 1 - q, down[1] = q;
    } else {
      taps = 4, first = -1;
      cubic_weights(p, across);
      cubic_weights(q, down);
    }
  }
  const T* const source = reinterpret_cast<const T*>(image.source);
  const int64 apart = image.planar ? image.height * image.width : 1;
  const int64 side = image.planar ? 1 : image.channels;
  for (int64 c = 0; c < image.channels; c++) {
    const float fill = fills ? fills[image.planar ? 0 : c] : 0.0f;
    float total = 0;
    for (int j = 0; j < taps; j++) {
      const int64 v = position_of(top + first + j, image.height, border);
      float sum = 0;
      for (int i = 0; i < taps; i++) {
        const int64 u = position_of(left + first + i, image.width, border);
        const bool inside = u >= 0 && v >= 0;
        sum += across[i] *
               (inside ? as_float(source[(v * image.width + u) * side + c * apart]) : fill);
      }
      total += down[j] * sum;
    }
    T& target = out[c * out_apart];
    if constexpr (Limits<T>::is_integer) target = saturated<T>(rintf(total));
    else target = total;
  }
}

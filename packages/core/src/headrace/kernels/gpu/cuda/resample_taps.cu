// Source pixels and weights of the output pixels of axes: the device's side of
// kernels/cpu/resample_taps.py, with the same arithmetic in the same order.
#include "common.cuh"

#include "resample_taps:TapAxis"

__device__ __forceinline__ int clamped(float value) {
  // Far outside of any image; there, only the side matters.
  return static_cast<int>(fminf(fmaxf(value, -1073741824.0f), 1073741824.0f));
}

__device__ int nearest(const TapAxis& axis, int out) {
  float position;
  if (axis.stepwise && out >= 0) {
    position = __fadd_rn(axis.start, __fmul_rn(0.5f, axis.scale));
    for (int i = 0; i < out; ++i) position = __fadd_rn(position, axis.scale);
  } else {
    const float centre = __fadd_rn(static_cast<float>(out), 0.5f);
    position = __fadd_rn(__fmul_rn(centre, axis.scale), axis.start);
  }
  return min(max(clamped(floorf(position)), 0), axis.in_size - 1);
}

__device__ int weigh(const TapAxis& axis, const float* table, int out, float* row) {
  const float position = __fadd_rn(__fmul_rn(static_cast<float>(out), axis.scale), axis.start);
  const float left_end = ceilf(position);
  const float phase = __fsub_rn(left_end, position);
  const int leftmost = clamped(left_end);
  const int low = min(max(leftmost, 0), axis.in_size - axis.taps);
  const bool inside = leftmost == low && axis.support == axis.taps;
  for (int k = 0; k < axis.taps; ++k) row[k] = 0.0f;
  float total = 0.0f;
  for (int k = 0; k < axis.support; ++k) {
    const float place = __fmul_rn(__fadd_rn(phase, static_cast<float>(k)), axis.units);
    const int whole = static_cast<int>(place);
    if (whole > axis.last) break;
    const float left = __ldg(table + whole);
    const float right = whole < axis.last ? __ldg(table + whole + 1) : 0.0f;
    const float rest = __fsub_rn(place, static_cast<float>(whole));
    const float weight = __fadd_rn(left, __fmul_rn(rest, __fsub_rn(right, left)));
    total = __fadd_rn(total, weight);
    // Taps outside of the axis count for its outermost pixels.
    const int at = inside ? k : min(max(leftmost + k, 0), axis.in_size - 1) - low;
    row[at] = inside ? weight : __fadd_rn(row[at], weight);
  }
  for (int k = 0; k < axis.taps; ++k) row[k] = __fdiv_rn(row[k], total);
  return low;
}

// A thread makes the taps of one output pixel of one axis; blocks of an axis are neighbours in y.
// `tables` holds each filter from one end of its support to the other.
__global__ void resample_taps(const TapAxis* axes, const float* tables) {
  const TapAxis axis = axes[blockIdx.x];
  const int i = blockIdx.y * blockDim.x + threadIdx.x;
  if (i >= axis.length) return;
  const int out = axis.begin + i * axis.step;
  if (axis.table < 0) {
    axis.first[i] = nearest(axis, out);
    axis.weights[i] = 1.0f;
  } else {
    axis.first[i] = weigh(axis, tables + axis.table, out, axis.weights + int64(i) * axis.taps);
  }
}

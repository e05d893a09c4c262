// Images looked up where a projective map says: the device's side of kernels/cpu/perspective.py.
#include "as_float.cuh"
#include "cast.cuh"
#include "strided_copy_blocks.cuh"

constexpr int THREADS = 256;

#include "perspective:Border"
#include "perspective:Kind"
#include "perspective:Seen"

// Which element stands at a position of an axis, or -1: what is outside, if it is constant.
__device__ int64 position_of(int64 at, int64 extent, int border) {
  if (at >= 0 && at < extent) return at;
  if (border == CONSTANT) return -1;
  if (border == REPLICATE) return at < 0 ? 0 : extent - 1;
  if (border == WRAP) return ((at % extent) + extent) % extent;
  if (extent == 1) return 0;
  const int64 period = border == REFLECT ? 2 * extent : 2 * extent - 2;
  at = ((at % period) + period) % period;
  return at < extent ? at : period - at - (border == REFLECT);
}

// Weights of four neighbours, the second of which is at a distance `t` before the point.
__device__ void cubic_weights(float t, float* weights) {
  const float A = -0.75f, s = 1.0f - t, u = t + 1.0f;
  weights[0] = ((A * u - 5.0f * A) * u + 8.0f * A) * u - 4.0f * A;
  weights[1] = ((A + 2.0f) * t - (A + 3.0f)) * t * t + 1.0f;
  weights[2] = ((A + 2.0f) * s - (A + 3.0f)) * s * s + 1.0f;
  weights[3] = 1.0f - weights[0] - weights[1] - weights[2];
}

__device__ void find_map(const Seen& image, bool corners, bool inverse, double* m) {
  for (int k = 0; k < 9; k++) m[k] = image.matrix[k];
  if (image.given) {
    const float* const given = reinterpret_cast<const float*>(image.given);
    for (int k = 0; k < 9; k++) m[k] = given[k];
    if (corners) {
      for (int row = 0; row < 3; row++) m[3 * row + 2] += 0.5 * (m[3 * row] + m[3 * row + 1]);
      for (int k = 0; k < 6; k++) m[k] -= 0.5 * m[6 + k % 3];
    }
  }
  if (inverse) return;
  const double a = m[4] * m[8] - m[5] * m[7], b = m[5] * m[6] - m[3] * m[8];
  const double c = m[3] * m[7] - m[4] * m[6], determinant = m[0] * a + m[1] * b + m[2] * c;
  const double scale = determinant != 0 ? 1 / determinant : 0;
  const double turned[9] = {a, m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                            b, m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                            c, m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  for (int k = 0; k < 9; k++) m[k] = turned[k] * scale;
}

template <typename T, int KIND>
__global__ void warp_perspective(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                                 int32 border, int32 corners, int32 inverse, int32 planar) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Seen& image = *reinterpret_cast<const Seen*>(share.record);
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= image.out_width * image.out_height) return;
  double m[9];
  find_map(image, corners, inverse, m);
  const double column = double(pixel % image.out_width), row = double(pixel / image.out_width);
  double depth = m[6] * column + m[7] * row + m[8];
  depth = depth != 0 ? 1 / depth : 0;
  const double limit = 1e9;  // an integer holds it, and no image is as large
  double x = fmin(fmax((m[0] * column + m[1] * row + m[2]) * depth, -limit), limit);
  double y = fmin(fmax((m[3] * column + m[4] * row + m[5]) * depth, -limit), limit);
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
  T* const out = reinterpret_cast<T*>(image.out);
  const int64 apart = planar ? image.height * image.width : 1, side = planar ? 1 : image.channels;
  const int64 out_apart = planar ? image.out_height * image.out_width : 1;
  for (int64 c = 0; c < image.channels; c++) {
    const float fill = image.fill[planar ? 0 : c];
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
    T& target = out[pixel * side + c * out_apart];
    if constexpr (Limits<T>::is_integer) target = saturated<T>(rintf(total));
    else target = total;
  }
}

// Weighted sums of neighbourhoods: the device's side of kernels/cpu/correlate.py.
#include "as_float.cuh"
#include "arithmetic_types.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "correlate:Border"
#include "correlate:EACH"
#include "correlate:Image"

// Which element stands at `position`; -1 where there is none.
__device__ __forceinline__ int mirrored(int position, int extent, int border) {
  if (position >= 0 && position < extent) return position;
  if (border == CONSTANT) return -1;
  if (border == CLAMP) return position < 0 ? 0 : extent - 1;
  if (border != WRAP && extent == 1) return 0;
  const int period = border == WRAP ? extent : 2 * extent - (border == REFLECT_101 ? 2 : 0);
  position %= period;
  if (position < 0) position += period;
  return position < extent ? position : period - position - (border == REFLECT_1001);
}

// Halves become the even neighbour, and limits are kept.
template <typename Out> __device__ __forceinline__ Out rounded(float value) {
  if constexpr (!Limits<Out>::is_integer) {
    return saturated<Out>(value);
  } else {
    constexpr float low = is_signed<Out> ? -float(1 << (bits<Out> - 1)) : 0.0f;
    constexpr float high = float(highest<Out>);
    value = rintf(value);
    return static_cast<Out>(static_cast<int32>(fminf(fmaxf(value, low), high)));
  }
}

// Where an element's window begins in its plane, and that plane.
template <typename In> struct Window {
  const In* source;
  int z, y, x;
};

template <typename In>
__device__ __forceinline__ Window<In> window_of(const Image& image, int64 number) {
  const auto pixel = divided(uint64(number), uint64(image.channels));
  const auto row = divided(pixel.whole, uint64(image.out_extents[2]));
  const auto slice = divided(row.whole, uint64(image.out_extents[1]));
  const auto plane = divided(slice.whole, uint64(image.out_extents[0]));
  const int64 size = int64(image.extents[0]) * image.extents[1] * image.extents[2];
  return {reinterpret_cast<const In*>(image.source) + int64(plane.whole) * size * image.channels +
              pixel.rest,
          int(plane.rest) - image.anchor[0], int(slice.rest) - image.anchor[1],
          int(row.rest) - image.anchor[2]};
}

__device__ __forceinline__ bool is_inside(int begin, int count, int extent) {
  return begin >= 0 && begin + count <= extent;
}

template <typename In>
__device__ __forceinline__ float sum_at_border(const Image& image, const Window<In>& at, int border) {
  const float* weight = reinterpret_cast<const float*>(image.weights);
  const float fill = image.fill ? as_float(*reinterpret_cast<const In*>(image.fill)) : 0.0f;
  const int height = image.extents[1], width = image.extents[2], channels = image.channels;
  float sum = 0.0f;
  for (int k = 0; k < image.window[0]; k++) {
    const int z = mirrored(at.z + k, image.extents[0], border);
    for (int j = 0; j < image.window[1]; j++) {
      const int y = mirrored(at.y + j, height, border);
      const int64 line = (int64(z) * height + y) * width;
      for (int i = 0; i < image.window[2]; i++, weight++) {
        const int x = mirrored(at.x + i, width, border);
        const bool outside = (z | y | x) < 0;
        const float value = outside ? fill : as_float(at.source[(line + x) * channels]);
        sum = __fmaf_rn(value, __ldg(weight), sum);
      }
    }
  }
  return sum;
}

// A thread makes `EACH` elements, which share the weights where their windows lie inside.
template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
correlate(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 border) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Image& image = *reinterpret_cast<const Image*>(share.record);
  const int64 first = int64(share.block) * (THREADS * EACH) + threadIdx.x;
  if (first >= image.size) return;
  const int depth = image.window[0], height = image.window[1], width = image.window[2];
  const int64 step = image.channels, line = step * image.extents[2];
  const int64 slice = line * image.extents[1];
  Window<In> at[EACH];
  const In* corner[EACH];
  bool inside = true;
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int64 number = first + e * THREADS;
    at[e] = window_of<In>(image, number < image.size ? number : first);
    inside = inside && is_inside(at[e].z, depth, image.extents[0]) &&
             is_inside(at[e].y, height, image.extents[1]) &&
             is_inside(at[e].x, width, image.extents[2]);
    corner[e] = at[e].source + at[e].z * slice + at[e].y * line + at[e].x * step;
  }
  float sums[EACH];
  if (inside) {
    const float* weight = reinterpret_cast<const float*>(image.weights);
#pragma unroll
    for (int e = 0; e < EACH; e++) sums[e] = 0.0f;
    for (int k = 0; k < depth; k++) {
      for (int j = 0; j < height; j++) {
        int64 place = k * slice + j * line;
        for (int i = 0; i < width; i++, weight++, place += step) {
          const float factor = __ldg(weight);
#pragma unroll
          for (int e = 0; e < EACH; e++) {
            sums[e] = __fmaf_rn(as_float(corner[e][place]), factor, sums[e]);
          }
        }
      }
    }
  } else {
#pragma unroll
    for (int e = 0; e < EACH; e++) sums[e] = sum_at_border(image, at[e], border);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int64 number = first + e * THREADS;
    if (number < image.size) reinterpret_cast<Out*>(image.out)[number] = rounded<Out>(sums[e]);
  }
}

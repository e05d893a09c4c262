// Colours of decoded video: planes of luma and of interleaved chroma, 4:2:0, to RGB, YCbCr or gray.
//
// The arithmetic is that of kernels/cpu/video/planes.py, in the same order.
#include "common.cuh"

#include "video_colors:Colors"

struct Tap {
  int32 first;
  float weight;  // of the one after it
};

// Where chroma is read for a pixel of luma: enlarged linearly, its centre over that of luma.
__device__ __forceinline__ Tap tap_of(int32 pixel, int32 length, int32 source) {
  double at = (pixel + 0.5) * source / length - 0.5;
  at = at < 0.0 ? 0.0 : at;
  at = at > source - 1 ? double(source - 1) : at;
  const int32 most = source > 2 ? source - 2 : 0;
  const int32 first = int32(at) < most ? int32(at) : most;
  return {first, float(at - first)};
}

template <typename Out>
__device__ __forceinline__ Out level(float value, float scale, float rounding) {
  value = value > 0.0f ? value : 0.0f;
  value = value < 255.0f ? value : 255.0f;
  return static_cast<Out>(value * scale + rounding);
}

template <typename T, typename Out>
__global__ void video_colors(
    uint64 luma, uint64 chroma, int64 luma_pitch, int64 chroma_pitch, int32 height, int32 width,
    int32 kind, int32 full, float red_v, float green_u, float green_v, float blue_u, float scale,
    float rounding, int64 begin, int64 down_step, int64 across_step, uint64 out) {
  const int32 x = blockIdx.x * blockDim.x + threadIdx.x;
  const int32 y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  // Samples of more than 8 bits have the highest ones of 16.
  const float unit = sizeof(T) == 2 ? 1.0f / 256 : 1.0f;
  const auto row = [](uint64 plane, int64 pitch, int32 k) {
    return reinterpret_cast<const T*>(plane + uint64(pitch) * k);
  };
  float value = row(luma, luma_pitch, y)[x] * unit;
  float u = 0.0f, v = 0.0f;
  if (kind != GRAY) {
    const int32 down = (height + 1) / 2, across = (width + 1) / 2;
    const Tap rows = tap_of(y, height, down), columns = tap_of(x, width, across);
    const int32 bottom = rows.first + 1 < down ? rows.first + 1 : down - 1;
    const int32 right = columns.first + 1 < across ? columns.first + 1 : across - 1;
    const T* const a = row(chroma, chroma_pitch, rows.first);
    const T* const b = row(chroma, chroma_pitch, bottom);
    const float weight = rows.weight * unit, rest = unit - weight;
    const auto mixed = [&](int32 k) { return a[k] * rest + b[k] * weight - 128.0f; };
    const float ul = mixed(2 * columns.first), ur = mixed(2 * right);
    const float vl = mixed(2 * columns.first + 1), vr = mixed(2 * right + 1);
    u = ul + (ur - ul) * columns.weight;
    v = vl + (vr - vl) * columns.weight;
  }
  float first, second, third;
  if (kind == YCBCR) {
    if (full) {
      value = value * float(219.0 / 255) + 16.0f;
      u *= float(224.0 / 255);
      v *= float(224.0 / 255);
    }
    first = value, second = u + 128.0f, third = v + 128.0f;
  } else {
    value = full ? value : (value - 16.0f) * float(255.0 / 219);
    first = kind == GRAY ? value : value + red_v * v;
    second = value + green_u * u + green_v * v;
    third = value + blue_u * u;
  }
  const int64 place = begin + y * down_step + x * across_step;
  Out* const pixel = reinterpret_cast<Out*>(out) + place * (kind == GRAY ? 1 : 3);
  pixel[0] = level<Out>(first, scale, rounding);
  if (kind == GRAY) return;
  pixel[1] = level<Out>(second, scale, rounding);
  pixel[2] = level<Out>(third, scale, rounding);
}

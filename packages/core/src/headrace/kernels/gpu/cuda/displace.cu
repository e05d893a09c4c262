// Pixels taken from elsewhere: the device's side of kernels/cpu/displace.py.
#include "cast.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "displace:Displaced"

template <typename T, bool WATER, bool LINEAR>
__global__ void displace(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Displaced& image = *reinterpret_cast<const Displaced*>(share.record);
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= image.width * image.height) return;
  const T* const source = reinterpret_cast<const T*>(image.source);
  T* const out = reinterpret_cast<T*>(image.out) + pixel * image.channels;
  const uint32 channels = uint32(image.channels);
  if (!image.changed) {
    for (uint32 c = 0; c < channels; c++) out[c] = source[pixel * channels + c];
    return;
  }
  const auto place = divided(uint64(pixel), uint64(image.width));
  const float x = float(place.rest), y = float(place.whole);
  float u, v;
  if (WATER) {
    const float* const n = image.numbers;
    u = __fadd_rn(x, __fmul_rn(n[0], sinf(__fadd_rn(__fmul_rn(n[1], y), n[2]))));
    v = __fadd_rn(y, __fmul_rn(n[3], cosf(__fadd_rn(__fmul_rn(n[4], x), n[5]))));
  } else {
    const float middle_x = image.width * 0.5f, middle_y = image.height * 0.5f;
    const float dx = x + 0.5f - middle_x, dy = y + 0.5f - middle_y;
    const int64 extent = image.width > image.height ? image.width : image.height;
    const float scale =
        sqrtf(__fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy))) / float(extent / 2);
    u = __fadd_rn(middle_x, __fmul_rn(dx, scale));
    v = __fadd_rn(middle_y, __fmul_rn(dy, scale));
  }
  const float width = float(image.width), height = float(image.height);
  if (!LINEAR) {
    const bool inside = u >= 0 && u < width && v >= 0 && v < height;
    const T* const from = source + (inside ? (int64(v) * image.width + int64(u)) * channels : 0);
    const T fill = cast_to<T>(image.fill);
    for (uint32 c = 0; c < channels; c++) out[c] = inside ? from[c] : fill;
    return;
  }
  u -= 0.5f;
  v -= 0.5f;
  const float left = floorf(u), top = floorf(v), p = u - left, q = v - top;
  for (uint32 c = 0; c < channels; c++) {
    float total = 0;
    for (int k = 0; k < 4; k++) {
      const float a = left + float(k % 2), b = top + float(k / 2);
      float value = image.fill;
      if (a >= 0 && a < width && b >= 0 && b < height) {
        value = float(source[(int64(b) * image.width + int64(a)) * channels + c]);
      }
      value = __fmul_rn(value, k % 2 ? p : 1.0f - p);
      value = __fmul_rn(value, k / 2 ? q : 1.0f - q);
      total = __fadd_rn(total, value);
    }
    out[c] = cast_to<T>(total);
  }
}

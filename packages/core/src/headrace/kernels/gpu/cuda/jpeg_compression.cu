// JPEG compression and back, without the lossless part: bit by bit what libjpeg-turbo's accurate
// integer transforms, 4:2:0 subsampling and smooth upsampling give.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "jpeg_compression:Image"

constexpr int SIDE = 8, AREA = SIDE * SIDE;
constexpr int BLOCKS = THREADS / AREA;  // 8 x 8 blocks of a block of threads

// sqrt(2) cos((2 n + 1) k pi / 16) in units of 2^-13, k along rows, for the first half of n; the
// second half mirrors it, negated for odd k. The first row is 1. Sums of libjpeg's rounded
// constants, which are off by one here and there.
__device__ constexpr int WAVES[SIDE][SIDE / 2] = {
    {8192, 8192, 8192, 8192},     {11363, 9633, 6437, 2260},   {10703, 4433, -4433, -10703},
    {9633, -2259, -11362, -6436}, {8192, -8192, -8192, 8192},  {6437, -11362, 2261, 9633},
    {4433, -10704, 10704, -4433}, {2260, -6436, 9633, -11363},
};

__device__ __forceinline__ int wave(int k, int n) {
  return n < SIDE / 2 ? WAVES[k][n] : k % 2 ? -WAVES[k][SIDE - 1 - n] : WAVES[k][SIDE - 1 - n];
}

constexpr int PITCH = SIDE + 1;  // so that threads that look up a column use different banks

__device__ __forceinline__ int descale(int value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

__device__ __forceinline__ uint8 level(int value) {
  return uint8(value < 0 ? 0 : value > 255 ? 255 : value);
}

__device__ __forceinline__ int64 least(int64 a, int64 b) { return a < b ? a : b; }

// Luma, or a chroma of one pixel, in JPEG's YCbCr.
__device__ __forceinline__ int component(const uint8* rgb, int plane) {
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  if (plane == 0) return (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
  if (plane == 1) return (-11059 * r - 21709 * g + 32768 * b + (128 << 16) + 32767) >> 16;
  return (32768 * r - 27439 * g - 5329 * b + (128 << 16) + 32767) >> 16;
}

// Each 8 x 8 block of the three planes is transformed, quantised and transformed back.
__global__ void __launch_bounds__(THREADS)
jpeg_planes(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  __shared__ int tiles[BLOCKS][2][AREA], waves[SIDE * PITCH];
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Image& image = *reinterpret_cast<const Image*>(share.record);
  const int64 height = image.height, width = image.width;
  const int64 half_height = (height + 1) / 2, half_width = (width + 1) / 2;
  const int64 across = (width + SIDE - 1) / SIDE, half_across = (half_width + SIDE - 1) / SIDE;
  const int64 lumas = (height + SIDE - 1) / SIDE * across;
  const int64 chromas = (half_height + SIDE - 1) / SIDE * half_across;

  const int y = threadIdx.x / SIDE % SIDE, x = threadIdx.x % SIDE;
  int64 block = int64(share.block) * BLOCKS + threadIdx.x / AREA;
  const bool inside = block < lumas + 2 * chromas;
  const int plane = block < lumas ? 0 : block < lumas + chromas ? 1 : 2;
  if (plane) block -= lumas + (plane - 1) * chromas;
  const int64 columns = plane ? half_across : across;
  const auto place = divided(uint64(block), uint64(columns));
  const int64 row = int64(place.whole) * SIDE + y, column = int64(place.rest) * SIDE + x;

  int(&a)[AREA] = tiles[threadIdx.x / AREA][0], (&b)[AREA] = tiles[threadIdx.x / AREA][1];
  const int own = y * SIDE + x;
  if (threadIdx.x < AREA) waves[y * PITCH + x] = wave(y, x);
  if (inside) {
    const uint8* const source = reinterpret_cast<const uint8*>(image.source);
    int value = 0;
    if (plane) {
      // Beyond the border, columns are repeated before they are averaged, and rows after it.
      const int64 top = 2 * least(row, half_height - 1);
      for (int k = 0; k < 4; k++) {
        const int64 v = least(top + k / 2, height - 1), u = least(2 * column + k % 2, width - 1);
        value += component(source + (v * width + u) * 3, plane);
      }
      value = (value + 1 + x % 2) >> 2;
    } else {
      const int64 v = least(row, height - 1), u = least(column, width - 1);
      value = component(source + (v * width + u) * 3, 0);
    }
    a[own] = value - 128;
  }
  __syncthreads();
  int sum = 0;
  for (int n = 0; n < SIDE; n++) sum += waves[x * PITCH + n] * a[y * SIDE + n];
  b[own] = descale(sum, 11);
  __syncthreads();
  sum = 0;
  for (int n = 0; n < SIDE; n++) sum += waves[y * PITCH + n] * b[n * SIDE + x];
  const int found = descale(sum, 15);  // eight times too large, which the divisor makes up for
  const int step = image.steps[plane ? AREA + own : own], divisor = step * 8;
  const int magnitude = ((found < 0 ? -found : found) + divisor / 2) / divisor;
  a[own] = (found < 0 ? -magnitude : magnitude) * step;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < SIDE; k++) sum += waves[k * PITCH + y] * a[k * SIDE + x];
  b[own] = descale(sum, 11);
  __syncthreads();
  sum = 0;
  for (int k = 0; k < SIDE; k++) sum += waves[k * PITCH + x] * b[y * SIDE + k];
  if (!inside || row >= (plane ? half_height : height) || column >= (plane ? half_width : width)) {
    return;
  }
  uint8* planes = reinterpret_cast<uint8*>(image.planes);
  if (plane) planes += height * width + (plane - 1) * half_height * half_width;
  planes[row * (plane ? half_width : width) + column] = level(descale(sum, 18) + 128);
}

// A chroma of the pixel at (y, x): three quarters of the nearest, one of the next, along each axis.
__device__ __forceinline__ int upsampled(
    const uint8* plane, int64 height, int64 width, int64 y, int64 x) {
  const int64 row = y / 2, column = x / 2;
  if (width <= 2) return plane[row * width + column] - 128;  // libjpeg-turbo's choice
  const int64 above = row + (y % 2 ? 1 : -1), beside = column + (x % 2 ? 1 : -1);
  const int64 other = above < 0 ? 0 : least(above, height - 1);
  const int64 next = beside < 0 ? 0 : least(beside, width - 1);
  const int near = 3 * plane[row * width + column] + plane[other * width + column];
  const int far = 3 * plane[row * width + next] + plane[other * width + next];
  return ((3 * near + far + (x % 2 ? 7 : 8)) >> 4) - 128;
}

__global__ void __launch_bounds__(THREADS)
jpeg_pixels(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Image& image = *reinterpret_cast<const Image*>(share.record);
  const int64 height = image.height, width = image.width;
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= height * width) return;
  const int64 half_height = (height + 1) / 2, half_width = (width + 1) / 2;
  const auto place = divided(uint64(pixel), uint64(width));
  const int64 y = place.whole, x = place.rest;
  const uint8* const luma = reinterpret_cast<const uint8*>(image.planes);
  const uint8* const chroma = luma + height * width;
  const int blue = upsampled(chroma, half_height, half_width, y, x);
  const int red = upsampled(chroma + half_height * half_width, half_height, half_width, y, x);
  uint8* const out = reinterpret_cast<uint8*>(image.out) + pixel * 3;
  out[0] = level(luma[pixel] + ((91881 * red + 32768) >> 16));
  out[1] = level(luma[pixel] + ((-22554 * blue - 46802 * red + 32768) >> 16));
  out[2] = level(luma[pixel] + ((116130 * blue + 32768) >> 16));
}

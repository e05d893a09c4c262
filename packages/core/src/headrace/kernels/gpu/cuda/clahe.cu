// Contrast limited adaptive histogram equalization: what OpenCV does, bit by bit.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "clahe:LEVELS"
#include "clahe:Tiled"

static_assert(LEVELS == THREADS, "each thread has a level of its own");

// OpenCV's CIE L*a*b* of bytes: sums of tables.
struct Lab {
  const int32 *light, *roots, *y, *root, *cubes, *levels;

  __device__ explicit Lab(uint64 tables) {
    light = reinterpret_cast<const int32*>(tables);
    roots = light + LEVELS;
    y = roots + 3072;
    root = y + LEVELS;
    cubes = root + LEVELS;
    levels = cubes + 36864;
  }
  __device__ __forceinline__ int root_of(const uint8* rgb, int r, int g, int b) const {
    return roots[(r * light[rgb[0]] + g * light[rgb[1]] + b * light[rgb[2]] + 2048) >> 12];
  }
  static __device__ __forceinline__ int byte(int value, int most = 255) {
    return value < 0 ? 0 : value > most ? most : value;
  }
  __device__ __forceinline__ int lightness(const uint8* rgb) const {
    return byte((296 * root_of(rgb, 871, 2929, 296) - 1336934 + 16384) >> 15);
  }
  // The colour of a pixel, in another lightness.
  __device__ __forceinline__ void relight(const uint8* rgb, int to, uint8* out) const {
    const int middle = root_of(rgb, 871, 2929, 296), half = 128 << 15;
    const int a = byte((500 * (root_of(rgb, 1777, 1541, 778) - middle) + half + 16384) >> 15);
    const int b = byte((200 * (middle - root_of(rgb, 73, 448, 3575)) + half + 16384) >> 15);
    const int ahead = ((5 * a * 53687 + 128) >> 13) - 4194;
    const int behind = ((b * 41943 + 16) >> 9) - 10484;
    const int x = cubes[root[to] + ahead + 8145], z = cubes[root[to] - behind + 8145];
    out[0] = level(12615 * x - 6296 * y[to] - 2223 * z);
    out[1] = level(-3773 * x + 7684 * y[to] + 185 * z);
    out[2] = level(217 * x - 836 * y[to] + 4715 * z);
  }
  __device__ __forceinline__ uint8 level(int sum) const {
    return uint8(levels[byte((sum + 8192) >> 14, 4095)]);
  }
};

__device__ __forceinline__ int level_of(
    const Tiled& image, const Lab& lab, int64 pixel, uint32 plane) {
  const uint8* const at = reinterpret_cast<const uint8*>(image.source) + pixel * image.channels;
  return image.planes < image.channels ? lab.lightness(at) : at[plane];
}

// Reflected beyond its end as often as it takes.
__device__ __forceinline__ int64 inside(int64 k, int64 size) {
  if (size == 1) return 0;
  k %= 2 * (size - 1);
  return k < size ? k : 2 * (size - 1) - k;
}

// One block for each tile of each plane.
__global__ void __launch_bounds__(THREADS)
fill_tables(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint64 tables) {
  __shared__ int32 counts[LEVELS];
  __shared__ int32 cut;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Tiled& image = *reinterpret_cast<const Tiled*>(share.record);
  const Lab lab(tables);
  const uint32 tile = share.block / image.planes, plane = share.block - tile * image.planes;
  const int64 top = int64(tile / image.across) * image.tile_height;
  const int64 left = int64(tile % image.across) * image.tile_width;
  const int64 area = int64(image.tile_width) * image.tile_height;
  const int own = threadIdx.x;

  counts[own] = 0;
  if (own == 0) cut = 0;
  __syncthreads();
  for (int64 i = own; i < area; i += THREADS) {
    const int64 y = inside(top + i / image.tile_width, image.height);
    const int64 x = inside(left + i % image.tile_width, image.width);
    atomicAdd(&counts[level_of(image, lab, y * image.width + x, plane)], 1);
  }
  __syncthreads();
  int32 count = counts[own];
  if (image.limit > 0) {
    if (count > image.limit) {
      atomicAdd(&cut, count - image.limit);
      count = image.limit;
    }
    __syncthreads();
    const int32 rest = cut % LEVELS;
    count += cut / LEVELS;
    if (rest) {
      const int step = LEVELS / rest;
      if (own % step == 0 && own / step < rest) count++;
    }
  }
  counts[own] = count;
  __syncthreads();
  for (int step = 1; step < LEVELS; step *= 2) {
    const int32 more = own >= step ? counts[own - step] : 0;
    __syncthreads();
    counts[own] += more;
    __syncthreads();
  }
  const float scale = float(LEVELS - 1) / float(area);
  reinterpret_cast<uint8*>(image.tables)[int64(share.block) * LEVELS + own] =
      saturated<uint8>(rintf(float(counts[own]) * scale));
}

// The two nearest tiles along an axis, and the weight of the second.
struct Nearest {
  int first, second;
  float weight;

  __device__ Nearest(int64 at, int32 side, int32 count) {
    const float place = __fsub_rn(__fmul_rn(float(at), 1.0f / float(side)), 0.5f);
    const float whole = floorf(place);
    weight = place - whole;
    first = whole < 0 ? 0 : int(whole);
    second = int(whole) + 1 < count ? int(whole) + 1 : count - 1;
  }
};

__device__ __forceinline__ float between(float a, float b, float weight) {
  return __fadd_rn(__fmul_rn(a, 1.0f - weight), __fmul_rn(b, weight));
}

__global__ void __launch_bounds__(THREADS)
equalize_tiles(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint64 tables) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Tiled& image = *reinterpret_cast<const Tiled*>(share.record);
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= image.height * image.width) return;
  const Lab lab(tables);
  const Nearest x(pixel % image.width, image.tile_width, image.across);
  const Nearest y(pixel / image.width, image.tile_height, image.down);
  uint8* const out = reinterpret_cast<uint8*>(image.out) + pixel * image.channels;
  const uint8* const from = reinterpret_cast<const uint8*>(image.tables);
  for (uint32 plane = 0; plane < image.planes; plane++) {
    const int level = level_of(image, lab, pixel, plane);
    const auto table = [&](int row, int column) {
      const int64 tile = int64(row) * image.across + column;
      return float(from[(tile * image.planes + plane) * LEVELS + level]);
    };
    const float above = between(table(y.first, x.first), table(y.first, x.second), x.weight);
    const float below = between(table(y.second, x.first), table(y.second, x.second), x.weight);
    const uint8 found = saturated<uint8>(rintf(between(above, below, y.weight)));
    if (image.planes < image.channels) {
      lab.relight(
          reinterpret_cast<const uint8*>(image.source) + pixel * image.channels, found, out);
    } else {
      out[plane] = found;
    }
  }
}

// Transpositions of images whose pixels have three channels of one byte, side by side: what transpose.cu
// does, some times faster than byte by byte.
//
// A block copies a tile of the source to shared memory, as transpose.cu does. A thread takes groups of
// four by four pixels from there, four words of four rows each, turns them in registers, and puts them
// back, row by row of the output and with the places that they have within 16 bytes there. So they
// leave in accesses of 16 bytes.
#include "transpose_tiles.cuh"

constexpr uint32 THREADS = 256, WARPS = THREADS / 32;
constexpr uint32 BYTES = 3, SIDE = 4;  // of a pixel; pixels of a side of a group
constexpr uint32 TURNS = 2;            // groups of a thread, at most
constexpr uint32 VECTOR = 16;
constexpr uint32 STAGE_BYTES = 30720;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr uint32 BLOCKS = 4;  // on a multiprocessor, for the compiler to find the registers
#else
constexpr uint32 BLOCKS = 5;
#endif

// Four pixels, each in the low bytes of a word.
struct Pixels {
  uint32 of[SIDE];
};

// Those from byte `at` of shared memory on.
__device__ __forceinline__ Pixels pixels_at(const uint8* memory, uint32 at) {
  const uint32* const words = reinterpret_cast<const uint32*>(memory + (at & ~3u));
  const uint32 shift = 8 * (at & 3);
  const uint32 given[4] = {words[0], words[1], words[2], words[3]};
  const uint32 first = __funnelshift_r(given[0], given[1], shift);
  const uint32 second = __funnelshift_r(given[1], given[2], shift);
  const uint32 third = __funnelshift_r(given[2], given[3], shift);
  return {{first, __byte_perm(first, second, 0x0543), __byte_perm(second, third, 0x0432),
           third >> 8}};
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
transpose_pixels(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform,
                 int32 axis_count) {
  __shared__ __align__(16) uint8 memory[STAGE_BYTES];
  __shared__ Tile shared_tile;
  __shared__ Arrivals arrivals;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
    const Tiles& tiles = *reinterpret_cast<const Tiles*>(share.record);
    const Tile found = tile_of(tiles, share.block, 1, axis_count);
    if (threadIdx.x == 0) {
      shared_tile = found;
      expect_spans(arrivals, found.spans.count);
    }
  }
  __syncthreads();
  const Tile& tile = shared_tile;
  stage_spans<16>(memory, tile.pitch, tile.spans, tile.low, tile.high, arrivals, THREADS);
  const uint64 target = tile.target;
  const int64 target_step = tile.target_step;
  const uint32 a_count = tile.a_count, x_count = tile.x_count;
  const uint32 phase = uint32(target), phase_step = uint32(target_step);

  // Where rows of the output are in shared memory, were they to begin with a vector: each begins up to
  // 15 bytes late, and its last group may leave a word. Every four begin in different banks.
  const uint32 a_groups = (a_count + SIDE - 1) / SIDE, x_groups = (x_count + SIDE - 1) / SIDE;
  const uint32 row_bytes =
      (VECTOR - 1 + BYTES * SIDE * x_groups + 4 + VECTOR - 1) / VECTOR * VECTOR;
  const auto row_at = [&](uint32 row) { return row * row_bytes + row / SIDE * VECTOR; };

  const Divisor by_groups(a_groups);
  uint32 words[TURNS][SIDE][3];
  uint32 tails[TURNS][SIDE];  // what the last group of a row has left
#pragma unroll
  for (uint32 turn = 0; turn < TURNS; turn++) {
    const uint32 group = threadIdx.x + turn * THREADS, along = by_groups.divide(group);
    if (along >= x_groups) continue;
    const uint32 a = SIDE * (group - along * a_groups), x = SIDE * along;
    const uint32 at = uint32(tile.origin) + x * tile.pitch + BYTES * a;
    // What is in front of a row's first pixel does not matter.
    const Pixels before = pixels_at(memory, x ? at - tile.pitch : at);
    Pixels pixels[SIDE];
#pragma unroll
    for (uint32 k = 0; k < SIDE; k++) pixels[k] = pixels_at(memory, at + k * tile.pitch);
#pragma unroll
    for (uint32 k = 0; k < SIDE; k++) {
      const uint32 shift = 8 * ((phase + (a + k) * phase_step) & 3);
      const uint32 last = before.of[k] << 8;
      const uint32 first = __byte_perm(pixels[0].of[k], pixels[1].of[k], 0x4210);
      const uint32 second = __byte_perm(pixels[1].of[k], pixels[2].of[k], 0x5421);
      const uint32 third = __byte_perm(pixels[2].of[k], pixels[3].of[k], 0x6542);
      words[turn][k][0] = __funnelshift_l(last, first, shift);
      words[turn][k][1] = __funnelshift_l(first, second, shift);
      words[turn][k][2] = __funnelshift_l(second, third, shift);
      tails[turn][k] = __funnelshift_l(third, 0, shift);
    }
  }
  __syncthreads();
#pragma unroll
  for (uint32 turn = 0; turn < TURNS; turn++) {
    const uint32 group = threadIdx.x + turn * THREADS, along = by_groups.divide(group);
    if (along >= x_groups) continue;
    const uint32 a = SIDE * (group - along * a_groups), x = SIDE * along;
#pragma unroll
    for (uint32 k = 0; k < SIDE; k++) {
      const uint32 begin = (phase + (a + k) * phase_step) & (VECTOR - 4);
      uint32* const to =
          reinterpret_cast<uint32*>(memory + row_at(a) + k * row_bytes + begin + BYTES * x);
#pragma unroll
      for (uint32 n = 0; n < 3; n++) to[n] = words[turn][k][n];
      if (along + 1 == x_groups) to[3] = tails[turn][k];
    }
  }
  __syncthreads();

  const uint32 length = BYTES * x_count;
  const uint32 at = VECTOR * (threadIdx.x % 32);
  uint64 to = target + int64(threadIdx.x / 32) * target_step;
#pragma unroll 2
  for (uint32 row = threadIdx.x / 32; row < a_count; row += WARPS, to += WARPS * target_step) {
    const uint32 begin = uint32(to) % VECTOR;
    if (at >= begin && at + VECTOR <= begin + length)
      *reinterpret_cast<uint4*>(to - begin + at) =
          *reinterpret_cast<const uint4*>(memory + row_at(row) + at);
  }
  // Of the first vector of a row and of the last, maybe only some bytes belong to it: word by word.
  for (uint32 i = threadIdx.x; i < 2 * 4 * a_count; i += THREADS) {
    const uint32 row = i / 8, word = 4 * (i % 4);
    const uint64 to = target + int64(row) * target_step;
    const uint32 begin = uint32(to) % VECTOR, end = begin + length;
    const uint32 last = (end - 1) / VECTOR * VECTOR, vector = i & 4 ? last : 0;
    if ((i & 4 && last == 0) || (vector >= begin && vector + VECTOR <= end)) continue;
    const uint32 from = max(vector + word, begin), until = min(vector + word + 4, end);
    if (from >= until) continue;
    const uint8* const source = memory + row_at(row);
    uint8* const bytes = reinterpret_cast<uint8*>(to - begin);
    if (until - from == 4) {
      *reinterpret_cast<uint32*>(bytes + from) = *reinterpret_cast<const uint32*>(source + from);
      continue;
    }
#pragma unroll
    for (uint32 e = 0; e < 3; e++)
      if (from + e < until) bytes[from + e] = source[from + e];
  }
}

// Transpositions of images whose pixels have three channels of one byte, side by side: what transpose.cu
// does, some times faster than byte by byte.
//
// A block copies spans of the source, one a row of it, to shared memory as they are, and notes where
// each begins there. A thread then picks the six pixels that 16 bytes of the output are made of, and
// writes these at once. Where it fits, a tile has whole rows of the output: these make up one run of
// memory, of which almost all is written in whole lines.
#include "transpose_tiles.cuh"
#include "vector_store.cuh"

#include "transpose_tiles:PIXEL_SPAN_BYTES"
#include "transpose_tiles:PIXEL_THREADS"

constexpr uint32 THREADS = PIXEL_THREADS, WARPS = THREADS / 32;
constexpr uint32 BYTES = 3;  // of a pixel
constexpr uint32 VECTOR = 16, LINE = 128;
constexpr uint32 TEAM = LINE / VECTOR;          // threads that write a line
constexpr uint32 TEAMS = 32 / TEAM;             // of a warp
constexpr uint32 PICKED = (VECTOR + 2) / BYTES; // pixels that have a byte in a vector
constexpr uint32 SPAN_THREADS = PIXEL_SPAN_BYTES / VECTOR;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr uint32 BLOCKS = 2;  // on a multiprocessor, for the compiler to find the registers
#else
constexpr uint32 BLOCKS = 4;
#endif

// Where span `number` has its place in shared memory. Pixels that neighbours pick are five or six spans
// apart: these, mostly, begin in different banks.
__device__ __forceinline__ uint32 slot_of(uint32 number, uint32 pitch) {
  return number * pitch + number * BYTES / VECTOR * VECTOR;
}

// Has the spans of a tile copied, by as many threads each as there are vectors in it, and notes where
// their first bytes are: number `i` in the low half of `places[i]` and in the high one of that before.
// After the last, the same spans follow, a pixel further on.
__device__ __forceinline__ void stage(uint8* memory, uint32* places, const Tile& tile) {
  // Taken out of shared memory, where copies might change it, as the compiler sees it.
  const SpanTable spans = tile.spans;
  const uint64 low = tile.low, high = tile.high;
  const uint32 count = spans.count, pitch = tile.pitch;
  const int64 reach = int64(count - 1) * spans.stride;
  const uint64 first = spans.source + min(reach, int64(0));
  const uint64 last = spans.source + max(reach, int64(0)) + spans.size;
  const bool free = first >= low + VECTOR && last + VECTOR <= high;
  const uint32 lane = threadIdx.x % SPAN_THREADS, k = VECTOR * lane;
  constexpr uint32 step = THREADS / SPAN_THREADS;
  static_assert(step * BYTES % VECTOR == 0, "`slot_of` adds as much for every step");
  uint32 i = threadIdx.x / SPAN_THREADS, slot = slot_of(i, pitch);
  uint64 source = spans.source + int64(i) * spans.stride;
  const uint32 slot_step = slot_of(step, pitch);
  const int64 source_step = int64(step) * spans.stride;
  uint16* const halves = reinterpret_cast<uint16*>(places);
#pragma unroll 2
  for (; i < count; i += step, slot += slot_step, source += source_step) {
    const uint32 phase = uint32(source) % VECTOR, end = phase + spans.size;
    const uint8* const from = reinterpret_cast<const uint8*>(source - phase) + k;
    if (k < end) {
      const uint64 at = reinterpret_cast<uint64>(from);
      if (free || (at >= low && at + VECTOR <= high)) {
        copy_async<VECTOR>(memory + slot + k, from);
      } else {
#pragma unroll 1
        for (uint32 e = max(k, phase); e < min(k + VECTOR, end); e++)
          memory[slot + e] = __ldg(from - k + e);
      }
    }
    if (lane < 2 && 2 * i >= lane) halves[2 * i - lane] = uint16(slot + phase);
    if (i >= PICKED) continue;
    for (uint32 n = i + count, ahead = BYTES; n < count + PICKED; n += count, ahead += BYTES)
      if (lane < 2) halves[2 * n - lane] = uint16(slot + phase + ahead);
  }
}

// Where a byte of the output comes from: its pixel's number along `x` and its channel.
struct Origin {
  uint32 x, channel;
  __device__ __forceinline__ explicit Origin(uint32 byte)
      : x(__umulhi(byte, 0x55555556u)), channel(byte - BYTES * x) {}
};

// A pixel, in the low bytes of a word.
__device__ __forceinline__ uint32 pixel_at(const uint8* memory, uint32 place) {
  const uint32* const words = reinterpret_cast<const uint32*>(memory + (place & ~3u));
  uint32 next = 0;
  if (place & 2) next = words[1];
  return __funnelshift_r(words[0], next, 8 * (place & 3));
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
transpose_pixels(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform,
                 int32 axis_count) {
  DYNAMIC_SHARED(uint8, memory);
  __shared__ Tile shared_tile;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
    const Tiles& tiles = *reinterpret_cast<const Tiles*>(share.record);
    const Tile found = tile_of(tiles, share.block, 1, axis_count);
    if (threadIdx.x == 0) shared_tile = found;
  }
  __syncthreads();
  const Tile& tile = shared_tile;
  // Of the last pixel of all, two words are read.
  uint32* const places =
      reinterpret_cast<uint32*>(memory + slot_of(tile.x_count, tile.pitch) + VECTOR);
  stage(memory, places, tile);
  const uint64 target = tile.target;
  const int64 target_step = tile.target_step;
  const uint32 a_count = tile.a_count, row_bytes = BYTES * tile.x_count;
  // Rows that follow one another are written as one.
  const bool joined = target_step == row_bytes;
  const uint32 rows = joined ? 1 : a_count, length = joined ? a_count * row_bytes : row_bytes;
  const Divisor by_row(row_bytes);
  await_copies();

  const auto write = [&](uint32 row, uint32 line) {
    const uint64 begin = target + int64(row) * target_step;
    const uint32 lead = uint32(begin) % LINE;
    const uint32 at = LINE * line + VECTOR * (threadIdx.x % TEAM) - lead;
    if (int32(at) < 0 || at + VECTOR > length) return;
    uint32 a = row, byte = at;
    if (joined) {
      a = by_row.divide(at);
      byte = at - a * row_bytes;
    }
    const Origin origin(byte);
    uint32 pixels[PICKED];
#pragma unroll
    for (uint32 k = 0; k < PICKED; k += 2) {
      const uint32 two = places[origin.x + k] + a * (BYTES | BYTES << 16);
      pixels[k] = pixel_at(memory, two & 0xffff);
      pixels[k + 1] = pixel_at(memory, two >> 16);
    }
    const uint32 words[5] = {
        __byte_perm(pixels[0], pixels[1], 0x4210), __byte_perm(pixels[1], pixels[2], 0x5421),
        __byte_perm(pixels[2], pixels[3], 0x6542), __byte_perm(pixels[4], pixels[5], 0x4210),
        pixels[5] >> 8};
    uint32 vector[4];
#pragma unroll
    for (uint32 k = 0; k < 4; k++)
      vector[k] = __funnelshift_r(words[k], words[k + 1], 8 * origin.channel);
    store_together(reinterpret_cast<uint32*>(begin + at), vector);
  };

  // A line a team. Those of a warp are in rows that follow one another, about one above the other.
  const uint32 warp = threadIdx.x / 32, team = threadIdx.x % 32 / TEAM;
  if (joined) {
    const uint32 lines = (uint32(target) % LINE + length + LINE - 1) / LINE;
    const uint32 step = (row_bytes + LINE / 2) / LINE + (row_bytes < LINE / 2);
    const uint32 rounds = (lines + TEAMS * step - 1) / (TEAMS * step);
    const Divisor by_step(step);
#pragma unroll 2
    for (uint32 i = warp; i < rounds * step; i += WARPS) {
      const uint32 round = by_step.divide(i);
      write(0, round * TEAMS * step + team * step + (i - round * step));
    }
  } else {
    const uint32 lines = (LINE - 1 + length + LINE - 1) / LINE;
    const Divisor by_lines(lines);
#pragma unroll 2
    for (uint32 i = warp; i < lines * ((a_count + TEAMS - 1) / TEAMS); i += WARPS) {
      const uint32 four = by_lines.divide(i), row = TEAMS * four + team;
      if (row < a_count) write(row, i - four * lines);
    }
  }
  // What is left in front of the first vector of a row, or of all, and after the last.
  for (uint32 i = threadIdx.x; i < rows * 2 * VECTOR; i += THREADS) {
    const uint32 row = i / (2 * VECTOR), slot = i % (2 * VECTOR);
    const uint64 begin = target + int64(row) * target_step;
    const uint32 head = min(uint32(-begin) % VECTOR, length), tail = (length - head) % VECTOR;
    if (slot < VECTOR ? slot >= head : slot - VECTOR >= tail) continue;
    const uint32 at = slot < VECTOR ? slot : length - tail + slot - VECTOR;
    const uint32 a = joined ? by_row.divide(at) : row;
    const Origin origin(joined ? at - a * row_bytes : at);
    *reinterpret_cast<uint8*>(begin + at) = memory[(places[origin.x] & 0xffff) + BYTES * a + origin.channel];
  }
}

// The loop around generated functions of pixels; ../color_text.py writes the struct `Body`.
#pragma once
#include "color_functions.cuh"
#include "strided_copy_blocks.cuh"

template <typename Body> struct ColorSample {
  uint32 first_block;
  int32 shift;         // pixels of the first tile that are in front of the sample
  const char* source;  // of the first pixel
  char* out;           // one run of memory
  int64 pixels;
  int64 outer, row;      // bytes between neighbours
  int32 pixel, channel;
  int32 height, width;
  int32 packed;  // the source is one run of memory, too
  int32 padding;
  typename Body::Numbers numbers;
};

// How work is shared out. A thread makes as many neighbours as fill 16 bytes with a channel of the
// larger type; what those of a warp read and write are runs of whole accesses of 16 bytes.
template <typename Body> struct ColorTile {
  using In = typename Body::In;
  using Out = typename Body::Out;
  static constexpr int WARPS = 8;
  static constexpr int EACH = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  static constexpr int CHUNK = 32 * EACH;  // pixels of a warp
  static constexpr int PIXELS = WARPS * CHUNK;
  static constexpr int READ = Body::in_channels * int(sizeof(In));      // bytes of a pixel
  static constexpr int WRITTEN = Body::out_channels * int(sizeof(Out));
  static constexpr int BYTES = CHUNK * (READ > WRITTEN ? READ : WRITTEN);
};

// Copies whole accesses between memory and what a warp has of the shared one. Neighbours in number
// are neighbours in memory, whichever threads they belong to.
template <int bytes> __device__ __forceinline__ void fetch(uint8* to, const char* from, int lane) {
  static_assert(bytes % 16 == 0, "whole accesses");
#pragma unroll
  for (int first = 0; first < bytes / 16; first += 32) {
    const int k = first + lane;
    if (first + 32 <= bytes / 16 || k < bytes / 16)
      reinterpret_cast<uint4*>(to)[k] = __ldg(reinterpret_cast<const uint4*>(from) + k);
  }
}

template <int bytes> __device__ __forceinline__ void leave(char* to, const uint8* from, int lane) {
#pragma unroll
  for (int first = 0; first < bytes / 16; first += 32) {
    const int k = first + lane;
    if (first + 32 <= bytes / 16 || k < bytes / 16)
      __stwb(reinterpret_cast<uint4*>(to) + k, reinterpret_cast<const uint4*>(from)[k]);
  }
}

template <typename Body>
__global__ void __launch_bounds__(256)
color(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  using Tile = ColorTile<Body>;
  using In = typename Body::In;
  using Out = typename Body::Out;
  constexpr int CIN = Body::in_channels, COUT = Body::out_channels, EACH = Tile::EACH;
  __shared__ __align__(16) uint8 memory[Tile::WARPS * Tile::BYTES];
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const auto& s = *reinterpret_cast<const ColorSample<Body>*>(share.record);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64 first = int64(share.block) * Tile::PIXELS - s.shift + warp * Tile::CHUNK;
  if (first >= s.pixels || first + Tile::CHUNK <= 0) return;
  const bool whole = first >= 0 && first + Tile::CHUNK <= s.pixels;
  uint8* const mine = memory + warp * Tile::BYTES;
  const char* const from = s.source + first * Tile::READ;
  char* const to = s.out + first * Tile::WRITTEN;
  const typename Body::Numbers numbers = s.numbers;
  if (whole && s.packed && reinterpret_cast<uint64>(from) % 16 == 0) {
    fetch<Tile::CHUNK * Tile::READ>(mine, from, lane);
    __syncwarp();
    In given[EACH][CIN];
    Out made[EACH][COUT];
    uint32 words[sizeof(given) / 4], results[sizeof(made) / 4];
#pragma unroll
    for (int k = 0; k < int(sizeof(given) / 4); k++)
      words[k] = reinterpret_cast<const uint32*>(mine)[lane * int(sizeof(given) / 4) + k];
    memcpy(given, words, sizeof(given));
#pragma unroll
    for (int k = 0; k < EACH; k++) Body::pixel(numbers, given[k], made[k]);
    memcpy(results, made, sizeof(made));
    __syncwarp();
#pragma unroll
    for (int k = 0; k < int(sizeof(made) / 4); k++)
      reinterpret_cast<uint32*>(mine)[lane * int(sizeof(made) / 4) + k] = results[k];
  } else {
    // Neighbouring threads take neighbouring pixels, from the first one that is in the sample.
    int i = first < 0 ? int(31 - first - lane) / 32 : 0;
    int64 at = first + lane + 32 * i, frame = 0, x = at, y = 0;
    if (!s.packed) {
      const auto line = divided(uint64(at), uint64(s.width));
      const auto place = divided(line.whole, uint64(s.height));
      x = line.rest, y = place.rest, frame = place.whole;
    }
    const int64 step = s.packed ? Tile::READ : s.pixel;
    const int channel = s.packed ? int(sizeof(In)) : s.channel;
#pragma unroll 4
    for (; i < EACH && at < s.pixels; i++, at += 32, x += 32) {
      while (!s.packed && x >= s.width) {
        x -= s.width;
        if (++y == s.height) y = 0, ++frame;
      }
      const char* const place = s.source + frame * s.outer + y * s.row + x * step;
      In given[CIN];
#pragma unroll
      for (int c = 0; c < CIN; c++)
        given[c] = element_of(reinterpret_cast<const In*>(place + c * channel));
      Out made[COUT];
      Body::pixel(numbers, given, made);
      Out* const target = reinterpret_cast<Out*>(mine) + (32 * i + lane) * COUT;
#pragma unroll
      for (int c = 0; c < COUT; c++) target[c] = made[c];
    }
  }
  __syncwarp();
  if (whole && reinterpret_cast<uint64>(to) % 16 == 0) {
    leave<Tile::CHUNK * Tile::WRITTEN>(to, mine, lane);
    return;
  }
  const int low = first < 0 ? int(-first) * COUT : 0;
  const int high = int(min(int64(Tile::CHUNK), s.pixels - first)) * COUT;
  for (int k = low + lane; k < high; k += 32)
    reinterpret_cast<Out*>(to)[k] = reinterpret_cast<const Out*>(mine)[k];
}

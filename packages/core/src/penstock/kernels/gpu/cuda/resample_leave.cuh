// How a tile that lies in shared memory gets to where it belongs.
#pragma once
#include "resample_lines.cuh"

// Rows of a tile in shared memory: planes of elements, or pixels, in each.
struct StagedTile {
  int pitch;          // bytes between rows: an odd number of words
  int plane;          // bytes between planes
  int rows, planes;
  int size;           // bytes of a run: of a plane's part of a row
};

// Write runs to memory, where rows and planes are so many bytes apart, by words wherever they begin.
__device__ __forceinline__ void leave(const uint8* memory, const StagedTile& tile, uint8* out,
                                      int64 out_row, int64 out_plane) {
  const int words_of_run = (tile.size + 6) / 4;
  // As many lanes for a run as it keeps busy, a power of two.
  const int bits = words_of_run <= 5 ? 2 : words_of_run <= 9 ? 3 : words_of_run <= 17 ? 4 : 5;
  const int lane = threadIdx.x & ((1 << bits) - 1), step = BLOCK >> bits;
  const uint64 places = reinterpret_cast<uint64>(out) | uint64(out_row) | uint64(out_plane);
  const bool whole_words = ((places | uint64(tile.size)) & 3) == 0;
  for (int p = 0; p < tile.planes; ++p, memory += tile.plane, out += out_plane) {
    const int first_row = threadIdx.x >> bits;
    const uint8* bytes = memory + first_row * tile.pitch;
    uint8* to = out + first_row * out_row;
    for (int y = first_row; y < tile.rows; y += step, bytes += step * tile.pitch, to += step * out_row) {
      if (whole_words) {
        for (int i = 4 * lane; i < tile.size; i += 4 << bits)
          *reinterpret_cast<uint32*>(to + i) = *reinterpret_cast<const uint32*>(bytes + i);
        continue;
      }
      const uint32* const source = reinterpret_cast<const uint32*>(bytes);
      const int begin = int(reinterpret_cast<uint64>(to) & 3), end = begin + tile.size;
      uint32* const target = reinterpret_cast<uint32*>(to - begin);
      const int words = end / 4;
      if (begin == 0) {
        for (int w = lane; w < words; w += 1 << bits) target[w] = source[w];
      } else {
        for (int w = lane; w < words; w += 1 << bits)
          if (w) target[w] = __funnelshift_l(source[w - 1], source[w], 8 * begin);
      }
      if ((begin | end) % 4 == 0) continue;
      // The first word and the last have others' bytes, too; they may be the same one.
      const int first = begin ? min(4 - begin, tile.size) : 0, left = begin && !words ? 0 : end % 4;
      if (lane < first) to[lane] = bytes[lane];
      if (lane < left) to[tile.size - left + lane] = bytes[tile.size - left + lane];
    }
  }
}

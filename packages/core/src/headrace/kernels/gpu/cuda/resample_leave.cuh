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

// Write runs to memory, where rows and planes are so many bytes apart.
__device__ __forceinline__ void leave(const uint8* memory, const StagedTile& tile, uint8* out,
                                      int64 out_row, int64 out_plane) {
  const uint64 places = reinterpret_cast<uint64>(out) | uint64(out_row) | uint64(tile.size) |
                        (tile.planes > 1 ? uint64(out_plane) : 0);
  const bool by_vectors = (places & 15) == 0, by_words = (places & 3) == 0;
  const int accesses = by_vectors ? tile.size / 16 : (tile.size + 6) / 4;
  // As many lanes for a run as it keeps busy, a power of two.
  const int bits = accesses <= 4 ? 2 : accesses <= 8 ? 3 : accesses <= 17 ? 4 : 5;
  const int lane = threadIdx.x & ((1 << bits) - 1);
  for (int run = threadIdx.x >> bits; run < tile.planes * ROWS; run += THREADS >> bits) {
    const int y = run % ROWS, p = run / ROWS;
    if (y >= tile.rows) continue;
    const uint8* const bytes = memory + (y * tile.pitch + p * tile.plane);
    const uint32* const source = reinterpret_cast<const uint32*>(bytes);
    uint8* const to = out + (y * out_row + p * out_plane);
    if (by_vectors) {
      for (int i = lane; i < accesses; i += 1 << bits) {
        const uint32* const four = source + 4 * i;
        reinterpret_cast<uint4*>(to)[i] = make_uint4(four[0], four[1], four[2], four[3]);
      }
      continue;
    }
    if (by_words) {
      for (int w = lane; w < tile.size / 4; w += 1 << bits)
        reinterpret_cast<uint32*>(to)[w] = source[w];
      continue;
    }
    // By words wherever they begin.
    const int begin = int(reinterpret_cast<uint64>(to) & 3), end = begin + tile.size;
    uint32* const target = reinterpret_cast<uint32*>(to - begin);
    const int words = end / 4;
    for (int w = lane; w < words; w += 1 << bits)
      if (w || !begin)
        target[w] = begin ? __funnelshift_l(source[w - 1], source[w], 8 * begin) : source[w];
    if ((begin | end) % 4 == 0) continue;
    // The first word and the last have others' bytes, too; they may be the same one.
    const int first = begin ? min(4 - begin, tile.size) : 0, left = begin && !words ? 0 : end % 4;
    if (lane < first) to[lane] = bytes[lane];
    if (lane < left) to[tile.size - left + lane] = bytes[tile.size - left + lane];
  }
}

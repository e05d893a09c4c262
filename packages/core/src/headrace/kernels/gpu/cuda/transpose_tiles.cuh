// Tiles of copies that change the order of elements: boxes of the output, `a` rows of `x` runs, and the
// spans of the source that hold them.
#pragma once
#include "staging.cuh"
#include "strided_copy_blocks.cuh"

#include "transpose_tiles:Spans"
#include "transpose_tiles:Tiles"

// A tile. Steps are distances in shared memory, in bytes, once the spans are there; the element that
// is the first in the output lies at `origin`.
struct Tile {
  SpanTable spans;
  uint64 low, high;
  uint64 target;
  int64 target_step;  // from row to row
  uint32 unit, pitch;
  uint32 a_count, x_count;
  int32 origin, a_step, x_step;
};

// Tile number `block` of a sample of elements of `itemsize` bytes.
__device__ __forceinline__ Tile tile_of(const Tiles& tiles, uint32 block, uint32 itemsize,
                                        int32 axis_count) {
  const Axis* axes = reinterpret_cast<const Axis*>(&tiles + 1);
  const Quotient<uint32> along_x = divided(block, tiles.x_tiles);
  const Quotient<uint32> along_a = divided(along_x.whole, tiles.a_tiles);
  const uint64 x = uint64(along_x.rest) * tiles.x_tile;
  const uint64 a = uint64(along_a.rest) * tiles.a_tile;
  const uint32 x_count = uint32(min(uint64(tiles.x_tile), tiles.x_extent - x));
  const uint32 a_count = uint32(min(uint64(tiles.a_tile), tiles.a_extent - a));
  const uint32 run_bytes = tiles.run * itemsize;
  const Offsets outer = offsets_of(axes, axis_count, along_a.whole);
  const uint64 source = tiles.source + outer.source + int64(a) * tiles.a_source +
                        int64(x) * tiles.x_source;
  Tile tile;
  tile.target = tiles.target + outer.target + int64(a) * tiles.a_target + int64(x * run_bytes);
  tile.target_step = tiles.a_target;
  tile.low = tiles.low;
  tile.high = tiles.high;
  tile.unit = tiles.unit;
  tile.pitch = tiles.pitch;
  tile.a_count = a_count;
  tile.x_count = x_count;

  // A span goes from its lowest address on, also where an axis runs backwards.
  const bool by_x = tiles.spans == ONE_AN_X, by_a = tiles.spans == ONE_AN_A;
  int64 low = 0;
  uint32 size = run_bytes;
  if (!by_x) {
    const int64 reach = int64(x_count - 1) * tiles.x_source;
    low += min(reach, int64(0));
    size += uint32(reach < 0 ? -reach : reach);
  }
  if (!by_a) {
    const int64 reach = int64(a_count - 1) * tiles.a_source;
    low += min(reach, int64(0));
    size += uint32(reach < 0 ? -reach : reach);
  }
  tile.spans.source = source + low;
  tile.spans.stride = by_x ? tiles.x_source : tiles.a_source;
  tile.spans.count = by_x ? x_count : by_a ? a_count : 1;
  tile.spans.size = size;
  tile.x_step = by_x ? int32(tiles.pitch) : int32(tiles.x_source);
  tile.a_step = by_a ? int32(tiles.pitch) : int32(tiles.a_source);
  tile.origin = int32(tile.spans.source & 15) - int32(low);
  return tile;
}

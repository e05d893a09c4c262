// How a block of threads goes through data seen as (outer, reduced, inner).
//
// A part is up to `columns` neighbouring positions of the inner axis and `chunk` positions of the
// reduced one. `lanes` times `columns` threads work on it, each in one column, on every `lanes`-th
// row; a block takes as many parts as it has threads for. Long rows of few columns have kernels of
// their own, with vectors.
#pragma once
#include "common.cuh"

#include "records:THREADS"

#include "normalize_blocks:Shape"

// The part of the calling thread, and its place in it.
struct Part {
  int64 outer, begin, end;  // position along the outer axis; rows
  int64 column;
  int32 chunk;
  int lane, number;  // `number` counts the columns of all parts of the block
  bool exists, has_column;
};

__device__ __forceinline__ Part part_of(const Shape& shape, int block) {
  const int threads = shape.lanes * shape.columns, parts = THREADS / threads;
  const int own = threadIdx.x / threads, thread = threadIdx.x % threads;
  uint32 index = uint32(block) * parts + own;
  Part part;
  part.lane = thread / shape.columns;
  part.number = own * shape.columns + thread % shape.columns;
  part.column = int64(index % shape.column_tiles) * shape.columns + thread % shape.columns;
  index /= shape.column_tiles;
  part.chunk = static_cast<int32>(index % shape.chunks);
  part.outer = index / shape.chunks;
  part.exists = own < parts && part.outer < shape.outer;
  part.has_column = part.exists && part.column < shape.inner;
  part.begin = int64(part.chunk) * shape.chunk;
  part.end = min(part.begin + shape.chunk, shape.reduced);
  return part;
}

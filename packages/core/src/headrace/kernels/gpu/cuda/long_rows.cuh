// Long rows of up to four columns: how blocks of threads go through them by vectors.
//
// Threads take vectors that are `ROW_THREADS` apart. With 192 threads that is a multiple of every number
// of columns, so each element of a thread's vectors stays in one column.
#pragma once
#include "common.cuh"

#include "normalize_blocks:ROW_THREADS"

#include "normalize_blocks:Rows"

template <int Columns> struct Row {
  int64 outer, begin;
  int chunk, count;  // elements
  int head;          // elements before the first vector
  int vectors;
  int phase;         // column of the first element of the thread's vectors

  // `address` and `size` are of the elements that vectors of `length` are aligned by; the first one
  // begins at a multiple of `line` elements.
  __device__ __forceinline__ Row(const Rows& rows, int block, uint64 address, int size, int length,
                                 int line) {
    outer = block / rows.chunks;
    chunk = block % rows.chunks;
    begin = int64(chunk) * rows.chunk;
    count = static_cast<int>(min(int64(rows.chunk), rows.size - begin));
    address += (outer * rows.size + begin) * size;
    const int beyond = static_cast<int>(address / size % line);
    head = min(count, (line - beyond) % line);
    vectors = (count - head) / length;
    phase = (head + int(threadIdx.x) * length) % Columns;
  }

  // Of the first element, in the sample.
  __device__ __forceinline__ int64 place(const Rows& rows) const {
    return outer * rows.size + begin;
  }

  __device__ __forceinline__ int column(int position) const { return (phase + position) % Columns; }
};

// Moments of the columns of a part of a long row, read by vectors of 16 bytes.
#pragma once
#include "long_rows.cuh"
#include "normalize_sums.cuh"

// The bytes of word `word` of a vector that are in column `column` of `columns`.
__device__ constexpr uint32 bytes_in(int word, int column, int columns) {
  uint32 mask = 0;
  for (int b = 0; b < 4; b++) {
    if ((4 * word + b) % columns == column) mask |= 0xffu << (8 * b);
  }
  return mask;
}

// Adds up a vector whose first element is in column 0.
template <typename T, int Columns>
__device__ __forceinline__ void add_vector(const uint4& vector, const double (&origins)[Columns],
                                           ThreadSums<T> (&sums)[Columns]) {
  const uint32 words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int w = 0; w < 4; w++) {
    if constexpr (sizeof(T) == 1) {
#pragma unroll
      for (int j = 0; j < Columns; j++) sums[j].add_bytes(words[w], bytes_in(w, j, Columns));
    } else if constexpr (sizeof(T) == 2) {
      sums[2 * w % Columns].add(static_cast<T>(words[w]), 0);
      sums[(2 * w + 1) % Columns].add(static_cast<T>(words[w] >> 16), 0);
    } else if constexpr (Limits<T>::is_integer) {
      sums[w % Columns].add(static_cast<T>(words[w]), origins[w % Columns]);
    } else {
      sums[w % Columns].add(__uint_as_float(words[w]), origins[w % Columns]);
    }
  }
}

// Writes the moments of all columns, for which the whole block is needed.
template <typename T, int Columns>
__device__ __forceinline__ void write_moments(const T* elements, const Row<Columns>& row,
                                              Moments* to) {
  constexpr int length = 16 / sizeof(T);
  constexpr int PARTS = is_exact<T> ? ROW_THREADS / 32 : 3;  // that are added up at the end
  __shared__ Sums<is_exact<T>> shared[Columns][is_exact<T> ? PARTS : ROW_THREADS];
  const int thread = threadIdx.x;

  // In the order of columns as the thread's vectors begin.
  double origins[Columns];
  ThreadSums<T> sums[Columns];
#pragma unroll
  for (int j = 0; j < Columns; j++) {
    origins[j] = row.count ? origin_of(elements[row.column(j)]) : 0;
  }
  const uint4* const vectors = reinterpret_cast<const uint4*>(elements + row.head);
  constexpr int together = 8;  // reads that are under way before the first is needed
#pragma unroll 1
  for (int v = thread; v < row.vectors; v += together * ROW_THREADS) {
    uint4 found[together];
#pragma unroll
    for (int n = 0; n < together; n++) {
      if (v + n * ROW_THREADS < row.vectors) found[n] = __ldg(vectors + v + n * ROW_THREADS);
    }
#pragma unroll
    for (int n = 0; n < together; n++) {
      if (v + n * ROW_THREADS < row.vectors) add_vector(found[n], origins, sums);
    }
  }

  // What is left before the first vector and after the last.
  const int behind = row.head + row.vectors * length;
  const int left = thread < row.head ? thread : behind + thread - row.head;
  if (left < row.count) {
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      if (row.column(j) == left % Columns) sums[j].add(elements[left], origins[j]);
    }
  }

  if constexpr (is_exact<T>) {
    // In any order: threads of a warp first.
#pragma unroll
    for (int c = 0; c < Columns; c++) {
      ThreadSums<T> own = sums[0];
#pragma unroll
      for (int j = 1; j < Columns; j++)
        if (row.column(j) == c) own = sums[j];
      const Sums<true> all = own.over_warp();
      if (thread % 32 == 0) shared[c][thread / 32] = all;
    }
  } else {
#pragma unroll
    for (int j = 0; j < Columns; j++) shared[row.column(j)][thread] = sums[j].all();
    for (int half = ROW_THREADS / 2; half >= PARTS; half /= 2) {
      __syncthreads();
      if (thread < half) {
#pragma unroll
        for (int c = 0; c < Columns; c++) {
          shared[c][thread] = shared[c][thread] + shared[c][thread + half];
        }
      }
    }
  }
  __syncthreads();
  if (thread < Columns) {
    const auto& own = shared[thread];
    const double origin = row.count ? origin_of(elements[thread]) : 0;
    Sums<is_exact<T>> whole = own[0];
#pragma unroll
    for (int part = 1; part < PARTS; part++) whole = whole + own[part];
    to[thread] = moments_of(whole, row.count / Columns, origin);
  }
}

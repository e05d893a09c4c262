// (data - mean) * scale + shift in a part of a long row, by vectors of 16 bytes of the wider type.
#pragma once
#include "long_rows.cuh"
#include "normalize_scaling.cuh"

// What one access of memory brings.
template <int Bytes> struct Word;
template <> struct Word<4> { using type = uint32; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<16> { using type = uint4; };

template <typename T, int Length> struct Vector {
  T values[Length];
  using Words = typename Word<Length * int(sizeof(T))>::type;

  // Nothing writes what is read so; the reads can be under way while others are stored. Leaving: it is not
  // wanted again soon.
  template <bool Leaving> __device__ __forceinline__ void load(const T* from, bool aligned) {
    if (aligned) {
      const Words* const at = reinterpret_cast<const Words*>(from);
      const Words words = Leaving ? __ldcs(at) : __ldg(at);
      memcpy(values, &words, sizeof(words));
    } else {
#pragma unroll
      for (int i = 0; i < Length; i++) values[i] = __ldg(from + i);
    }
  }
  template <bool Leaving> __device__ __forceinline__ void store(T* to) const {
    Words words;
    memcpy(&words, values, sizeof(words));
    if constexpr (Leaving) __stcs(reinterpret_cast<Words*>(to), words);
    else *reinterpret_cast<Words*>(to) = words;
  }
};

// Elements of a vector of the wider type.
template <typename In, typename Out>
constexpr int vector_length = 16 / int(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));

template <typename In, typename Out, int Columns>
__device__ __forceinline__ void write_normalized(const In* from, Out* to, const Row<Columns>& row,
                                                 const Parameters& parameters, float shift) {
  constexpr int length = vector_length<In, Out>;
  // Where far more is written than read, the cache is to keep what moments were taken of last.
  constexpr bool leaving = sizeof(In) < sizeof(Out);
  const int thread = threadIdx.x;
  // In the order of columns as the thread's vectors begin.
  Scaling<In> scaling[Columns];
#pragma unroll
  for (int j = 0; j < Columns; j++) {
    scaling[j] = Scaling<In>(parameters, row.outer * Columns + row.column(j), shift);
  }
  using InVector = Vector<In, length>;
  // The output is aligned; the input is, too, unless it is a view of something.
  const bool aligned =
      reinterpret_cast<uint64>(from + row.head) % sizeof(typename InVector::Words) == 0;
  constexpr int together = 4;  // reads that are under way before the first is needed
#pragma unroll 1
  for (int v = thread; v < row.vectors; v += together * ROW_THREADS) {
    const int at = row.head + v * length;
    InVector in[together];
#pragma unroll
    for (int n = 0; n < together; n++) {
      if (v + n * ROW_THREADS < row.vectors)
        in[n].template load<leaving>(from + at + n * ROW_THREADS * length, aligned);
    }
#pragma unroll
    for (int n = 0; n < together; n++) {
      if (v + n * ROW_THREADS >= row.vectors) continue;
      Vector<Out, length> out;
#pragma unroll
      for (int i = 0; i < length; i++) {
        out.values[i] = scaled<Out>(scaling[i % Columns](in[n].values[i]));
      }
      out.template store<leaving>(to + at + n * ROW_THREADS * length);
    }
  }

  // What is left before the first vector and after the last.
  const int behind = row.head + row.vectors * length;
  const int left = thread < row.head ? thread : behind + thread - row.head;
  if (left < row.count) {
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      if (row.column(j) == left % Columns) to[left] = scaled<Out>(scaling[j](from[left]));
    }
  }
}

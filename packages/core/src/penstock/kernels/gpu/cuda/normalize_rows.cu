// (data - mean) * scale + shift in long rows, by vectors of 16 bytes of the wider type.
#include "long_rows.cuh"
#include "normalize_scaling.cuh"

struct Sample {
  uint64 source, out;
  Parameters parameters;
  Rows rows;
  int32 blocks;
};

template <typename T, int Length> struct __align__(sizeof(T) * Length) Vector {
  T values[Length];
};

template <typename In, typename Out, int Columns>
__global__ void __launch_bounds__(THREADS)
normalize_rows(const Sample* __restrict__ samples, int32 blocks_per_sample, float shift) {
  constexpr int length = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  const Sample& sample = samples[blockIdx.x / blocks_per_sample];
  const int block = blockIdx.x % blocks_per_sample, thread = threadIdx.x;
  if (block >= sample.blocks) return;
  const Row<Columns> row(sample.rows, block, sample.out, sizeof(Out), length);
  const int64 begin = row.outer * sample.rows.size + row.begin;
  const In* const from = reinterpret_cast<const In*>(sample.source) + begin;
  Out* const to = reinterpret_cast<Out*>(sample.out) + begin;

  // In the order of columns as the thread's vectors begin.
  Scaling<In> scaling[Columns];
#pragma unroll
  for (int j = 0; j < Columns; j++) {
    scaling[j] = Scaling<In>(sample.parameters, row.outer * Columns + row.column(j), shift);
  }
  using InVector = Vector<In, length>;
  using OutVector = Vector<Out, length>;
  // The output is aligned; the input is, too, unless it is a view of something.
  const bool aligned = reinterpret_cast<uint64>(from + row.head) % sizeof(InVector) == 0;
#pragma unroll 4
  for (int v = thread; v < row.vectors; v += THREADS) {
    const int at = row.head + v * length;
    InVector in;
    if (aligned) {
      in = *reinterpret_cast<const InVector*>(from + at);
    } else {
#pragma unroll
      for (int i = 0; i < length; i++) in.values[i] = from[at + i];
    }
    OutVector out;
#pragma unroll
    for (int i = 0; i < length; i++) out.values[i] = scaled<Out>(scaling[i % Columns](in.values[i]));
    *reinterpret_cast<OutVector*>(to + at) = out;
  }

  // What is left before the first vector and behind the last.
  const int behind = row.head + row.vectors * length;
  const int left = thread < row.head ? thread : behind + thread - row.head;
  if (left < row.count) {
#pragma unroll
    for (int j = 0; j < Columns; j++) {
      if (row.column(j) == left % Columns) to[left] = scaled<Out>(scaling[j](from[left]));
    }
  }
}

// What long rows are normalised by, estimated in one launch: the last block that is done with a
// chunk of a row puts the moments of all its chunks together.
#include "normalize_moments_rows.cuh"
#include "normalize_scaling.cuh"

#include "normalize_estimate:Sample"

// Puts together the moments of a row, one column a warp.
template <typename In, int Columns>
__device__ __noinline__ void finish_row(const Sample& sample, int64 outer,
                                        const Estimate& estimate) {
  using Mean = typename Scaling<In>::Mean;
  const int column = threadIdx.x / 32, lane = threadIdx.x % 32, chunks = sample.rows.chunks;
  if (column >= Columns) return;
  const Moments* const parts =
      reinterpret_cast<const Moments*>(sample.moments) + outer * chunks * Columns + column;
  const Moments whole = merged<32>(parts, Columns, chunks, lane);
  if (lane != 0) return;
  const int64 group = outer * Columns + column;
  Mean mean = static_cast<Mean>(mean_of(whole));
  if (sample.centre) {
    mean = reinterpret_cast<const Mean*>(sample.centre)[sample.centre_is_single ? 0 : group];
  }
  if (sample.mean) reinterpret_cast<Mean*>(sample.mean)[group] = mean;
  if (sample.factor) {
    reinterpret_cast<float*>(sample.factor)[group] = factor_of(whole, mean, estimate);
  }
}

template <typename In, int Columns>
__global__ void __launch_bounds__(ROW_THREADS)
estimate_rows(const Sample* __restrict__ samples, uint32 blocks_per_sample, double ddof,
              double epsilon, double scale) {
  static_assert(Columns * 32 <= ROW_THREADS, "a warp puts together the moments of a column");
  __shared__ bool is_last;
  const uint32 number = blockIdx.x / blocks_per_sample;
  const Sample& sample = samples[number];
  const int block = blockIdx.x - number * blocks_per_sample;
  if (block >= sample.blocks) return;
  const Row<Columns> row(sample.rows, block, sample.source, sizeof(In), 16 / sizeof(In),
                         16 / sizeof(In));
  write_moments(reinterpret_cast<const In*>(sample.source) + row.place(sample.rows), row,
                reinterpret_cast<Moments*>(sample.moments) + int64(block) * Columns);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32* const done = reinterpret_cast<uint32*>(sample.done) + row.outer;
    is_last = atomicAdd(done, 1u) + 1 == sample.rows.chunks;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  finish_row<In, Columns>(sample, row.outer, {ddof, epsilon, scale});
}

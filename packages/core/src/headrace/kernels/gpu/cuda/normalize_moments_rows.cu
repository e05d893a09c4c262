// Moments of the columns of long rows.
#include "normalize_moments_rows.cuh"

#include "normalize_moments:RowsSample"

template <typename T, int Columns>
__global__ void __launch_bounds__(ROW_THREADS)
moments_of_rows(const RowsSample* __restrict__ samples, uint32 blocks_per_sample) {
  const uint32 number = blockIdx.x / blocks_per_sample;
  const RowsSample& sample = samples[number];
  const int block = blockIdx.x - number * blocks_per_sample;
  if (block >= sample.blocks) return;
  const Row<Columns> row(sample.shape, block, sample.source, sizeof(T), 16 / sizeof(T),
                         16 / sizeof(T));
  write_moments(reinterpret_cast<const T*>(sample.source) + row.place(sample.shape), row,
                reinterpret_cast<Moments*>(sample.moments) + int64(block) * Columns);
}

// (data - mean) * scale + shift in long rows.
#include "normalize_rows.cuh"

#include "normalize:RowsSample"

template <typename In, typename Out, int Columns>
__global__ void __launch_bounds__(ROW_THREADS)
normalize_rows(const RowsSample* __restrict__ samples, int32 blocks_per_sample, float shift) {
  // Backwards: what moments were taken of last is still in the cache.
  const uint32 at = gridDim.x - 1 - blockIdx.x;
  const uint32 number = at / uint32(blocks_per_sample);
  const RowsSample& sample = samples[number];
  const int block = at - number * blocks_per_sample;
  if (block >= sample.blocks) return;
  // Neighbours write whole lines of 128 bytes.
  const Row<Columns> row(sample.shape, block, sample.out, sizeof(Out), vector_length<In, Out>,
                         128 / sizeof(Out));
  const int64 place = row.place(sample.shape);
  write_normalized(reinterpret_cast<const In*>(sample.source) + place,
                   reinterpret_cast<Out*>(sample.out) + place, row, sample.parameters, shift);
}

// (data - mean) * scale + shift, with a mean and a scale for each group along the reduced axis.
#include "normalize_blocks.cuh"
#include "normalize_scaling.cuh"

#include "normalize:Sample"

template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
normalize(const Sample* __restrict__ samples, int32 blocks_per_sample, float shift) {
  const uint32 number = blockIdx.x / uint32(blocks_per_sample);
  const Sample& sample = samples[number];
  const int block = blockIdx.x - number * blocks_per_sample;
  if (block >= sample.blocks) return;
  const Shape& shape = sample.shape;
  const Part part = part_of(shape, block);
  if (!part.has_column) return;
  const int64 inner = shape.inner;
  const Scaling<In> scaling(sample.parameters, part.outer * inner + part.column, shift);
  const int64 begin = part.outer * shape.reduced * inner + part.column;
  const In* const from = reinterpret_cast<const In*>(sample.source) + begin;
  Out* const to = reinterpret_cast<Out*>(sample.out) + begin;
#pragma unroll 4
  for (int64 r = part.begin + part.lane; r < part.end; r += shape.lanes) {
    to[r * inner] = scaled<Out>(scaling(__ldg(from + r * inner)));
  }
}

// Moments of groups along the reduced axis of data seen as (outer, reduced, inner).
#include "normalize_blocks.cuh"
#include "normalize_sums.cuh"

#include "normalize_moments:Sample"

template <typename T>
__global__ void __launch_bounds__(THREADS)
moments(const Sample* __restrict__ samples, uint32 blocks_per_sample) {
  __shared__ Sums<is_exact<T>> sums[THREADS];
  const uint32 number = blockIdx.x / blocks_per_sample;
  const Sample& sample = samples[number];
  const int block = blockIdx.x - number * blocks_per_sample;
  if (block >= sample.blocks) return;
  const Shape& shape = sample.shape;
  const Part part = part_of(shape, block);
  const int64 inner = shape.inner;
  const T* const rows =
      reinterpret_cast<const T*>(sample.source) + part.outer * shape.reduced * inner + part.column;
  const bool works = part.has_column && part.begin < part.end;
  const double origin = works ? origin_of(rows[part.begin * inner]) : 0;
  if (works) {
    ThreadSums<T> own;
#pragma unroll 4
    for (int64 r = part.begin + part.lane; r < part.end; r += shape.lanes) {
      own.add(rows[r * inner], origin);
    }
    sums[threadIdx.x] = own.all();
  }
  // Threads of a part are `columns` apart from lane to lane; lanes are a power of two.
  for (int half = shape.lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (works && part.lane < half) {
      sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half * shape.columns];
    }
  }
  if (part.has_column && part.lane == 0) {
    Moments* const to = reinterpret_cast<Moments*>(sample.moments) +
                        (part.outer * shape.chunks + part.chunk) * inner + part.column;
    *to = works ? moments_of(sums[threadIdx.x], part.end - part.begin, origin) : Moments{0, 0, 0};
  }
}

// Rows of neighbours that are normalised by moments of their own, all in one go: what is read twice
// is still in the cache.
#include "normalize_scaling.cuh"

#include "records:THREADS"

#include "normalize_short:Sample"

// Sum over the threads of a row, a warp or a block; all of them get it.
template <int Lanes> __device__ __forceinline__ double total(double value) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(0xffffffffu, value, bits);
  if constexpr (Lanes > 32) {
    __shared__ double parts[Lanes / 32];
    __syncthreads();  // those of the sum before have been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int n = 0; n < Lanes / 32; n++) value += parts[n];
  }
  return value;
}

template <typename In, typename Out, int Lanes>
__global__ void __launch_bounds__(THREADS)
normalize_short(const Sample* __restrict__ samples, uint32 blocks_per_sample, double ddof,
                double epsilon, double scale, float shift) {
  const Sample sample = samples[blockIdx.x / blocks_per_sample];
  const int64 row = int64(blockIdx.x % blocks_per_sample) * (THREADS / Lanes) + threadIdx.x / Lanes;
  if (row >= sample.rows) return;  // whole warps
  const int lane = threadIdx.x % Lanes, size = int(sample.size);
  const In* const source = reinterpret_cast<const In*>(sample.source) + row * sample.size;
  Out* const out = reinterpret_cast<Out*>(sample.out) + row * sample.size;

  Scaling<In> scaling;
  scaling.shift = shift;
  double sum = 0;
#pragma unroll 4
  for (int i = lane; i < size; i += Lanes) sum += static_cast<double>(__ldg(source + i));
  scaling.mean = static_cast<typename Scaling<In>::Mean>(total<Lanes>(sum) / size);
  const double centre = scaling.mean;
  double squares = 0;
#pragma unroll 4
  for (int i = lane; i < size; i += Lanes) {
    const double way = static_cast<double>(__ldg(source + i)) - centre;
    squares += way * way;
  }
  squares = total<Lanes>(squares);
  squares = size > ddof ? squares / (size - ddof) : 0;
  const double deviation = sqrt(squares + epsilon);
  scaling.scale = deviation == 0 ? 0.0f : static_cast<float>(scale / deviation);
#pragma unroll 4
  for (int i = lane; i < size; i += Lanes) out[i] = scaled<Out>(scaling(__ldg(source + i)));
}

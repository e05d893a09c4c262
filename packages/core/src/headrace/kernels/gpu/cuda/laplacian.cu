// The sum of up to three terms of each element: the device's side of kernels/cpu/laplacian.py.
#include "filter.cuh"
#include "strided_copy_blocks.cuh"

constexpr int THREADS = 256;

#include "laplacian:Sum"

template <typename Out>
__global__ void add_terms(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Sum& sum = *reinterpret_cast<const Sum*>(share.record);
  const int64 index = int64(share.block) * THREADS + threadIdx.x;
  if (index >= sum.size) return;
  float total = 0;
  for (int k = 0; k < 3; k++) {
    if (sum.terms[k]) total += reinterpret_cast<const float*>(sum.terms[k])[index];
  }
  reinterpret_cast<Out*>(sum.out)[index] = filtered<float, Out>(total);
}

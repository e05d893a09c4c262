// Labels as vectors with one element set.
#include "arithmetic_types.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "one_hot:EACH"

#include "one_hot:Labels"

// As C converts it on the CPU: what is no int32 is no class.
template <typename In> __device__ __forceinline__ int32 class_number(In label) {
  if constexpr (is_real<In>) {
    if (!(label < In(2147483648.0) && label > In(-2147483648.0))) return -1;
  }
  return static_cast<int32>(label);
}

template <typename In, typename Word>
__global__ void __launch_bounds__(THREADS)
set_classes(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 classes,
            Word off, Word on) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Labels& sample = *reinterpret_cast<const Labels*>(share.record);
  const In* const labels = reinterpret_cast<const In*>(sample.labels);
  Word* const out = reinterpret_cast<Word*>(sample.out);
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= uint64(sample.size)) return;
    const auto place = divided(k, uint64(sample.inner));
    const auto vector = divided(place.whole, uint64(classes));
    const In label = labels[vector.whole * uint64(sample.inner) + place.rest];
    out[k] = class_number(label) == int32(vector.rest) ? on : off;
  }
}

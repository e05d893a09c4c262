// Weighted sums of consecutive slices: the resampling of volumes along their depth.
#include "resample.cuh"

#include "resample:BlendedSample"

template <typename In>
__global__ void __launch_bounds__(THREADS)
    blend_slices(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const BlendedSample& s = *reinterpret_cast<const BlendedSample*>(share.record);
  const uint32 slice_blocks = (s.elements + UNITS - 1) / UNITS;
  const uint32 slice = share.block / slice_blocks;
  const int outer = slice / s.depth, z = slice - outer * s.depth;
  const int64 first = int64(share.block - slice * slice_blocks) * UNITS;
  const float* weights = s.weights + int64(z) * s.taps;
  // A single slice is taken as it is: one without weight might hold infinite numbers.
  int begin = 0, end = s.taps, single = 0, counted = 0;
  for (int k = 0; k < s.taps; ++k)
    if (__ldg(weights + k) != 0.0f) single = k, ++counted;
  if (counted == 1) begin = single, end = single + 1;

  const char* source = s.source + outer * s.outer + (__ldg(s.first + z) + begin) * s.slice;
  // The CPU rounds twice in what is left of a slice after its vectors of 16 elements.
  const int64 in_vectors = s.elements & ~int64(15);
  float sums[ITEMS] = {};
  for (int k = begin; k < end; ++k, source += s.slice) {
    const float weight = counted == 1 ? 1.0f : __ldg(weights + k);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int64 element = first + threadIdx.x + i * THREADS;
      if (element >= s.elements) break;
      const float value = number_at<In>(source + element * int(sizeof(In)));
      sums[i] = element < in_vectors ? __fmaf_rn(weight, value, sums[i])
                                     : __fadd_rn(sums[i], __fmul_rn(weight, value));
    }
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int64 element = first + threadIdx.x + i * THREADS;
    if (element < s.elements) s.out[slice * s.elements + element] = sums[i];
  }
}

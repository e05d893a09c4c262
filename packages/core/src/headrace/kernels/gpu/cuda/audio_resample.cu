// Audio at another rate: sums of neighbours weighted by a windowed sinc.
//
// The device's side of kernels/cpu/audio/resample_loops.py, bit by bit: places are added up in
// single precision within 256 outputs, and sixteen sums stand side by side.
#include "arithmetic_types.cuh"
#include "as_float.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
constexpr int LANES = 16, PHASES = 32;

#include "audio_resample:Clip"

// Weight, and what it gains when the place moves back by a phase: [tap][phase].
struct Weight {
  float at, step;
};

template <typename Out> __device__ __forceinline__ Out finished(float value) {
  if constexpr (same<Out, uint32>) {
    if (!(value > 0.0f)) return 0;
    if (value >= 4294967296.0f) return 0xffffffffu;
    return static_cast<uint32>(static_cast<int64>(value + 0.49999997f));
  } else {
    return saturated<Out>(value);
  }
}

template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
resample_audio(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint64 weights,
               int32 taps, int32 lobes, float factor, float summand, float scale) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Clip& clip = *reinterpret_cast<const Clip*>(share.record);
  const int64 begin = int64(share.block) * THREADS, number = begin + threadIdx.x;
  if (number >= clip.out_frames) return;
  const double block_place = begin * clip.step;
  const double block = floor(block_place);
  float place = float(block_place - block);
  const float step = float(clip.step);
  for (uint32 i = 0; i < threadIdx.x; i++) place += step;
  const float whole = floorf(place);
  const float fine = (place - whole) * float(PHASES);
  const int phase = static_cast<int>(ceilf(fine));
  const float fraction = float(phase) - fine;
  const int64 first = int64(block) + int64(whole) - lobes;
  const Weight* const window = reinterpret_cast<const Weight*>(weights) + phase;
  const In* const source = reinterpret_cast<const In*>(clip.source);
  for (int c = 0; c < clip.channels; c++) {
    float sums[LANES];
    for (int j = 0; j < LANES; j++) sums[j] = 0.0f;
    for (int k = 0; k < taps; k += LANES) {
#pragma unroll
      for (int j = 0; j < LANES; j++) {
        const Weight weight = window[(k + j) * (PHASES + 1)];
        const int64 at = first + k + j;
        float value = 0.0f;
        if (at >= 0 && at < clip.frames) {
          value = as_float(source[at * clip.channels + c]) * factor + summand;
        }
        sums[j] = __fmaf_rn(value, __fmaf_rn(fraction, weight.step, weight.at), sums[j]);
      }
    }
#pragma unroll
    for (int width = LANES / 2; width; width /= 2) {
#pragma unroll
      for (int j = 0; j < width; j++) sums[j] += sums[j + width];
    }
    reinterpret_cast<Out*>(clip.out)[number * clip.channels + c] = finished<Out>(sums[0] * scale);
  }
}

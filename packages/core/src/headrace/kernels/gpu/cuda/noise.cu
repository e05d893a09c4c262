// Noise: numbers that are added or drawn by levels, and pixels given one of two values.
#include "cast.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "noise:EACH"

#include "noise:Noisy"

template <typename T>
__global__ void __launch_bounds__(THREADS)
add_noise(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Noisy& sample = *reinterpret_cast<const Noisy*>(share.record);
  const T* const source = reinterpret_cast<const T*>(sample.source);
  const float* const noise = reinterpret_cast<const float*>(sample.noise);
  T* const out = reinterpret_cast<T*>(sample.out);
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= uint64(sample.size)) return;
    out[k] = cast_to<T>(__fadd_rn(noise[k], static_cast<float>(source[k])));
  }
}

// As kernels/cpu/noise.py says.
__device__ __forceinline__ double poisson(double rate, double normal) {
  if (!(rate > 0.0) || isinf(rate)) return 0.0;
  if (rate > 64.0) {
    const double root = sqrt(rate), square = normal * normal;
    double place = rate + root * normal + (2.0 + square) / 6.0;
    place -= normal * (2.0 + square) / (72.0 * root);
    place += (3.0 * square * square + 7.0 * square - 16.0) / (810.0 * rate);
    return fmax(floor(place), 0.0);
  }
  const double target = 0.5 * erfc(-normal * 0.70710678118654757);
  double number = 0.0, share = exp(-rate), total = share;
  while (total < target && share > 0.0) {
    number += 1.0;
    share *= rate / number;
    total += share;
  }
  return number;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
shot(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Noisy& sample = *reinterpret_cast<const Noisy*>(share.record);
  const T* const source = reinterpret_cast<const T*>(sample.source);
  const float* const normals = reinterpret_cast<const float*>(sample.noise);
  T* const out = reinterpret_cast<T*>(sample.out);
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= uint64(sample.size)) return;
    const float rate = __fdiv_rn(static_cast<float>(source[k]), sample.factor);
    out[k] = cast_to<T>(__fmul_rn(float(poisson(rate, normals[k])), sample.factor));
  }
}

template <typename Word>
__global__ void __launch_bounds__(THREADS)
salt_and_pepper(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Noisy& sample = *reinterpret_cast<const Noisy*>(share.record);
  const Word* const source = reinterpret_cast<const Word*>(sample.source);
  const float* const units = reinterpret_cast<const float*>(sample.noise);
  Word* const out = reinterpret_cast<Word*>(sample.out);
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= uint64(sample.size)) return;
    uint64 pixel = sample.inner == 1 ? k : divided(k, uint64(sample.inner)).whole;
    if (pixel >= uint64(sample.pixels)) pixel = divided(pixel, uint64(sample.pixels)).rest;
    const float unit = units[pixel];
    out[k] = unit < sample.salt_below     ? Word(sample.salt)
             : unit < sample.pepper_below ? Word(sample.pepper)
                                          : source[k];
  }
}

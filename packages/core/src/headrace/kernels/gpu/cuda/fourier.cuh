// Fourier transforms of several signals side by side: the device's side of
// kernels/cpu/fourier_loops.py, with the same arithmetic in the same order.
//
// `re` and `im` hold element j of signal `lane` at ``j * pitch + lane``. All threads of a block take
// part, and wait for one another after each step.
#pragma once
#include "common.cuh"

struct FourierStep {
  int32 factor;
  int32 twiddles, roots;  // where those of the step begin in the tables
};

#include "spectrogram:Fourier"

constexpr int MOST_FACTOR = 64;

// The product of ``real + i imaginary`` and ``cosine - i sine``.
__device__ __forceinline__ void store_turned(float* re, float* im, float real, float imaginary,
                                             float cosine, float sine) {
  *re = __fmaf_rn(imaginary, sine, real * cosine);
  *im = __fmaf_rn(imaginary, cosine, 0.0f - real * sine);
}

__device__ __forceinline__ void by_four(float* re, float* im, int step, const float* cosines,
                                        const float* sines) {
  const float a = re[0], c = re[step], e = re[2 * step], g = re[3 * step];
  const float b = im[0], d = im[step], f = im[2 * step], h = im[3 * step];
  const float ae = a + e, af = a - e, be = b + f, bf = b - f;
  const float cg = c + g, ch = c - g, dh = d + h, dg = d - h;
  re[0] = ae + cg;
  im[0] = be + dh;
  store_turned(re + step, im + step, af + dg, bf - ch, __ldg(cosines), __ldg(sines));
  store_turned(re + 2 * step, im + 2 * step, ae - cg, be - dh, __ldg(cosines + 1),
               __ldg(sines + 1));
  store_turned(re + 3 * step, im + 3 * step, af - dg, bf + ch, __ldg(cosines + 2),
               __ldg(sines + 2));
}

__device__ __forceinline__ void by_two(float* re, float* im, int step, const float* cosines,
                                       const float* sines) {
  const float a = re[0], b = im[0], c = re[step], d = im[step];
  re[0] = a + c;
  im[0] = b + d;
  store_turned(re + step, im + step, a - c, b - d, __ldg(cosines), __ldg(sines));
}

// `Half` is half of the factor, rounded down, or, for any odd factor, the most that it can be; arrays
// are then no registers.
template <int Half, bool Exact>
__device__ __forceinline__ void by_odd(float* re, float* im, int step, int factor,
                                       const float* cosines, const float* sines,
                                       const float* root_cosines, const float* root_sines) {
  constexpr int UNROLL = Exact ? Half : 1;
  float sum_re[Half], sum_im[Half], difference_re[Half], difference_im[Half];
  const int half = Exact ? Half : factor / 2;
  const float real = re[0], imaginary = im[0];
  float total_re = real, total_im = imaginary;
#pragma unroll UNROLL
  for (int q = 1; q <= half; q++) {
    const int low = q * step, high = (factor - q) * step;
    const float a = re[low], b = im[low], c = re[high], d = im[high];
    sum_re[q - 1] = a + c;
    sum_im[q - 1] = b + d;
    difference_re[q - 1] = a - c;
    difference_im[q - 1] = b - d;
    total_re += a + c;
    total_im += b + d;
  }
  re[0] = total_re;
  im[0] = total_im;
#pragma unroll UNROLL
  for (int k = 1; k <= half; k++) {
    float even_re = real, even_im = imaginary, odd_re = 0.0f, odd_im = 0.0f;
    int root = 0;
#pragma unroll UNROLL
    for (int q = 0; q < half; q++) {
      root += k;
      if (root >= factor) root -= factor;
      const float cosine = __ldg(root_cosines + root), sine = __ldg(root_sines + root);
      even_re = __fmaf_rn(sum_re[q], cosine, even_re);
      even_im = __fmaf_rn(sum_im[q], cosine, even_im);
      odd_re = __fmaf_rn(difference_re[q], sine, odd_re);
      odd_im = __fmaf_rn(difference_im[q], sine, odd_im);
    }
    const int other = factor - k;
    store_turned(re + k * step, im + k * step, even_re + odd_im, even_im - odd_re,
                 __ldg(cosines + k - 1), __ldg(sines + k - 1));
    store_turned(re + other * step, im + other * step, even_re - odd_im, even_im + odd_re,
                 __ldg(cosines + other - 1), __ldg(sines + other - 1));
  }
}

__device__ __noinline__ void by_any_odd(float* re, float* im, int step, int factor,
                                        const float* cosines, const float* sines,
                                        const float* root_cosines, const float* root_sines) {
  by_odd<MOST_FACTOR / 2, false>(re, im, step, factor, cosines, sines, root_cosines, root_sines);
}

// Transforms `Lanes` signals in place. Their elements must have been written by then, and the
// results are complete for all readers: there are barriers before and after.
template <int Lanes, int Threads>
__device__ __forceinline__ void transform(const Fourier& fourier, float* re, float* im, int pitch) {
  int length = fourier.size;
  __syncthreads();
  for (int n = 0; n < fourier.step_count; n++) {
    const FourierStep step = fourier.steps[n];
    const int factor = step.factor, part = length / factor;
    const int count = fourier.size / factor * Lanes;
    for (int i = threadIdx.x; i < count; i += Threads) {
      const int lane = i % Lanes, number = i / Lanes;
      const int block = number / part, j = number - block * part;
      const int at = (block * length + j) * pitch + lane;
      const float* const cosines = fourier.cosines + step.twiddles + j * (factor - 1);
      const float* const sines = fourier.sines + step.twiddles + j * (factor - 1);
      const float* const root_cosines = fourier.cosines + step.roots;
      const float* const root_sines = fourier.sines + step.roots;
      const int apart = part * pitch;
      float *const x = re + at, *const y = im + at;
      if (factor == 4) by_four(x, y, apart, cosines, sines);
      else if (factor == 2) by_two(x, y, apart, cosines, sines);
      else if (factor == 3) {
        by_odd<1, true>(x, y, apart, 3, cosines, sines, root_cosines, root_sines);
      } else if (factor == 5) {
        by_odd<2, true>(x, y, apart, 5, cosines, sines, root_cosines, root_sines);
      } else {
        by_any_odd(x, y, apart, factor, cosines, sines, root_cosines, root_sines);
      }
    }
    length = part;
    __syncthreads();
  }
}

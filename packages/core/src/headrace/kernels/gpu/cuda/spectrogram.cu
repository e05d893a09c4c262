// From signals to spectrograms, and to what filters and a logarithm make of them, in one go.
//
// A block takes a few frames of a signal, side by side in shared memory, from the windowed elements
// to the output: nothing that lies between goes through device memory. Frames whose transform is too
// long for it have device memory of their own.
#include "decibels.cuh"
#include "fourier.cuh"

#include "records:THREADS"

// How spectra are found; see kernels/cpu/fourier.py.
#include "spectrogram:Mode"

struct Range {
  int64 first, count, weights;
};

#include "spectrogram:Settings"

#include "spectrogram:Sample"

__device__ __forceinline__ float size_of(float real, float imaginary, bool squared) {
  const float size = __fmaf_rn(real, real, imaginary * imaginary);
  return squared ? size : __fsqrt_rn(size);
}

// Element `at` of the signal, which goes on beyond its ends.
__device__ __forceinline__ float element(const float* signal, int64 size, int64 at, bool reflect) {
  if (at < 0 || at >= size) {
    if (!reflect) return 0.0f;
    if (size == 1) return __ldg(signal);
    const int64 period = 2 * (size - 1);
    at = (at < 0 ? -at : at) % period;
    at = min(at, period - at);
  }
  return __ldg(signal + at);
}

// The sizes of frequencies of `Lanes` spectra, where the transform has left them.
template <int Lanes> struct Sizes {
  static constexpr int pitch = Lanes == 1 ? 1 : Lanes + 1;
  float *re, *im;
  const Settings& settings;

  __device__ __forceinline__ float operator()(int frequency, int lane) const {
    if (settings.mode == DIRECT) return im[frequency * pitch + lane];
    if (settings.mode == EVEN && frequency == settings.fourier.size) return im[lane];
    return re[__ldg(settings.places + frequency) * pitch + lane];
  }

  // Of real signals whose even and odd elements were transformed as real and imaginary parts.
  __device__ __forceinline__ void of_even() const {
    const int half = settings.fourier.size;
    const bool squared = settings.squared;
    for (int i = threadIdx.x; i < (half / 2 + 1) * Lanes; i += THREADS) {
      const int lane = i % Lanes, k = i / Lanes;
      if (k == 0) {
        const float a = re[lane], b = im[lane];
        const float sum = a + b, difference = a - b;
        re[lane] = size_of(sum + sum, 0.0f, squared);
        im[lane] = size_of(difference + difference, 0.0f, squared);
        continue;
      }
      const int p = __ldg(settings.places + k) * pitch + lane;
      const int q = __ldg(settings.places + half - k) * pitch + lane;
      const float a = re[p], b = im[p], c = re[q], d = im[q];
      const float even_re = a + c, even_im = b - d, odd_re = b + d, odd_im = c - a;
      const float cosine = __ldg(settings.joint_cosines + k);
      const float sine = __ldg(settings.joint_sines + k);
      const float real = __fmaf_rn(odd_im, sine, odd_re * cosine);
      const float imaginary = odd_im * cosine - odd_re * sine;
      re[p] = size_of(even_re + real, even_im + imaginary, squared);
      re[q] = size_of(even_re - real, even_im - imaginary, squared);
    }
  }

  __device__ __forceinline__ void of_odd() const {
    for (int i = threadIdx.x; i < settings.bins * Lanes; i += THREADS) {
      const int lane = i % Lanes, at = __ldg(settings.places + i / Lanes) * pitch + lane;
      const float a = re[at], b = im[at];
      re[at] = size_of(a + a, b + b, settings.squared);
    }
  }

  // By definition, from real signals in `re`.
  __device__ __forceinline__ void by_definition() const {
    const int length = settings.length;
    const Fourier& fourier = settings.fourier;
    for (int i = threadIdx.x; i < settings.bins * Lanes; i += THREADS) {
      const int lane = i % Lanes, k = i / Lanes;
      float real = 0.0f, imaginary = 0.0f;
      int root = 0;
      for (int j = 0; j < settings.window_length; j++) {
        const float value = re[j * pitch + lane];
        real = __fmaf_rn(value, __ldg(fourier.cosines + root), real);
        imaginary = __fmaf_rn(value, __ldg(fourier.sines + root), imaginary);
        root += k;
        if (root >= length) root -= length;
      }
      im[k * pitch + lane] = size_of(real + real, imaginary + imaginary, settings.squared);
    }
  }
};

template <int Lanes, bool Shared>
__global__ void __launch_bounds__(THREADS)
spectrogram(const Sample* __restrict__ samples, const Settings* __restrict__ given,
            uint32 blocks_per_sample) {
  DYNAMIC_SHARED(float, shared);
  constexpr int pitch = Sizes<Lanes>::pitch;
  const Sample& sample = samples[blockIdx.x / blocks_per_sample];
  const Settings& settings = *given;
  const uint32 block = blockIdx.x % blocks_per_sample;
  const int64 first = int64(block) * Lanes;
  if (first >= sample.frames) return;
  const int lanes = int(min(int64(Lanes), sample.frames - first));
  const int size = settings.fourier.size, length = settings.length, mode = settings.mode;
  float* const re =
      Shared ? shared : reinterpret_cast<float*>(sample.scratch) + int64(block) * size * 2;
  float* const im = re + size * pitch;

  const float* const signal = reinterpret_cast<const float*>(sample.source);
  for (int i = threadIdx.x; i < length * Lanes; i += THREADS) {
    const int lane = i / length, j = i - lane * length;
    float value = 0.0f;
    if (j < settings.window_length && lane < lanes) {
      const int64 at = settings.start + (first + lane) * settings.step + j;
      value = element(signal, sample.size, at, settings.reflect) * __ldg(settings.window + j);
    }
    if (mode == EVEN) {
      (j % 2 ? im : re)[j / 2 * pitch + lane] = value;
    } else {
      re[j * pitch + lane] = value;
      im[j * pitch + lane] = 0.0f;
    }
  }
  const Sizes<Lanes> sizes = {re, im, settings};
  if (mode == DIRECT) {
    __syncthreads();
    sizes.by_definition();
  } else {
    transform<Lanes, THREADS>(settings.fourier, re, im, pitch);
    if (mode == EVEN) sizes.of_even();
    else sizes.of_odd();
  }
  __syncthreads();

  const DecibelScale scale = settings.scale;
  const float inverse = settings.in_decibels ? inverse_reference(scale, nullptr) : 0.0f;
  float* const out = reinterpret_cast<float*>(sample.out);
  const int rows = settings.bands ? settings.bands : settings.bins;
  float largest = 0.0f;
  for (int i = threadIdx.x; i < rows * Lanes; i += THREADS) {
    const int lane = settings.time_first ? i / rows : i % Lanes;
    const int row = settings.time_first ? i - lane * rows : i / Lanes;
    if (lane >= lanes) continue;
    float value;
    if (settings.bands) {
      const Range range = settings.ranges[row];
      value = 0.0f;
      for (int k = 0; k < int(range.count); k++) {
        value = __fmaf_rn(sizes(int(range.first) + k, lane),
                          __ldg(settings.weights + range.weights + k), value);
      }
    } else {
      value = sizes(row, lane);
    }
    largest = value > largest ? value : largest;
    if (settings.in_decibels) value = decibels_of(value, inverse, scale);
    const int64 frame = first + lane;
    out[settings.time_first ? frame * rows + row : row * sample.frames + frame] = value;
  }
  if (settings.note_largest) note_largest(largest, reinterpret_cast<uint32*>(sample.largest));
}

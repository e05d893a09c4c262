// Tensors of independent random numbers: the device's side of kernels/cpu/random.py.
//
// Each thread evaluates Philox and stores the elements that the words give: four of 32 bits each,
// or two of 53.
#include "arithmetic_types.cuh"
#include "drawn_as.cuh"
#include "normal.cuh"
#include "strided_copy_blocks.cuh"

#include "random:DrawnSample"

struct Uniform32 {
  static constexpr int count = 4;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
    const float limit = static_cast<float>(s.limit), last = static_cast<float>(s.last);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float value = static_cast<float>(s.first + fraction32(words.w[i]) * s.second);
      to[i] = drawn_as<Out>(value >= limit ? last : value);
    }
  }
};

struct Uniform53 {
  static constexpr int count = 2;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double value = s.first + fraction53(words.w[2 * i], words.w[2 * i + 1]) * s.second;
      to[i] = drawn_as<Out>(value >= s.limit ? s.last : value);
    }
  }
};

struct Normal32 {
  static constexpr int count = 4;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
    const float mean = static_cast<float>(s.first), deviation = static_cast<float>(s.second);
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const Pair<float> pair = box_muller(words.w[i], words.w[i + 1]);
      to[i] = drawn_as<Out>(__fmaf_rn(deviation, pair.cosine, mean));
      to[i + 1] = drawn_as<Out>(__fmaf_rn(deviation, pair.sine, mean));
    }
  }
};

struct Normal53 {
  static constexpr int count = 2;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
    const Pair<double> pair = box_muller(fraction53(words.w[0], words.w[1]) + 0x1p-53,
                                 fraction53(words.w[2], words.w[3]));
    to[0] = drawn_as<Out>(s.first + s.second * pair.cosine);
    to[1] = drawn_as<Out>(s.first + s.second * pair.sine);
  }
};

// One of the values, each as likely as any other, but for less than choices / 2**32.
struct Choices {
  static constexpr int count = 4;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
    const Out* values = static_cast<const Out*>(s.values);
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = values[(uint64(words.w[i]) * s.choices) >> 32];
  }
};

struct Flips {
  static constexpr int count = 4;
  template <typename Out>
  static __device__ __forceinline__ void draw(const DrawnSample& s, const Words& words, Out* to) {
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = words.w[i] < s.threshold ? Out(1.0f) : Out(0.0f);
  }
};

template <typename T, int count> struct alignas(sizeof(T) * count) Elements {
  T values[count];
};

#include "records:THREADS"
#include "random:ROUNDS"

template <typename Draw, typename Out>
__global__ void __launch_bounds__(THREADS)
draw(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint32 iteration_low,
     uint32 iteration_high, uint32 key0, uint32 key1) {
  constexpr int count = Draw::count;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  // A copy: what is stored could be part of the record, for all the compiler knows.
  const DrawnSample s = *reinterpret_cast<const DrawnSample*>(share.record);
  const Stream stream{iteration_low, iteration_high, key0, key1};
  const int64 begin = int64(share.block) * (THREADS * ROUNDS * count);
  const int left = static_cast<int>(min(s.size - begin, int64(THREADS * ROUNDS * count)));
  const uint32 first = share.block * (THREADS * ROUNDS);
  Out* const out = reinterpret_cast<Out*>(s.out) + begin;
  const bool aligned = s.out % sizeof(Elements<Out, count>) == 0;
  if (aligned && left == THREADS * ROUNDS * count) {
    Out* const to = out + threadIdx.x * count;
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
      Elements<Out, count> drawn;
      Draw::draw(s, philox_block(stream, first + round * THREADS + threadIdx.x, s.number),
                 drawn.values);
      *reinterpret_cast<Elements<Out, count>*>(to + round * THREADS * count) = drawn;
    }
    return;
  }
#pragma unroll 1
  for (int number = threadIdx.x, at = number * count; at < left;
       number += THREADS, at += THREADS * count) {
    Elements<Out, count> drawn;
    Draw::draw(s, philox_block(stream, first + number, s.number), drawn.values);
    if (aligned && at + count <= left) {
      *reinterpret_cast<Elements<Out, count>*>(out + at) = drawn;
    } else {
      for (int i = 0; i < count; ++i) {
        if (at + i < left) out[at + i] = drawn.values[i];
      }
    }
  }
}

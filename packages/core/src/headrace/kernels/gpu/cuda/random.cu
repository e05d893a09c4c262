// Random tensors out of the state of one generator: the device's side of kernels/cpu/philox_draws.py,
// where it is described.
//
// Each thread makes single elements, whose words lie in blocks of their own.
#include "arithmetic_types.cuh"
#include "drawn_as.cuh"
#include "normal.cuh"
#include "strided_copy_blocks.cuh"

#include "random:DrawnSample"

// Where the words of a sample begin.
struct DrawState {
  uint64 key, sequence, offset;
};

__device__ __forceinline__ uint64 word_at(const DrawState& place, uint64 number) {
  const uint64 low = place.offset + (number >> 2);
  const uint64 high = place.sequence + (low < place.offset ? 1 : 0);
  const Stream stream{static_cast<uint32>(high), static_cast<uint32>(high >> 32),
                      static_cast<uint32>(place.key), static_cast<uint32>(place.key >> 32)};
  const Words words =
      philox_block(stream, static_cast<uint32>(low), static_cast<uint32>(low >> 32));
  const uint32 phase = number & 3;
  return phase < 2 ? (phase ? words.w[1] : words.w[0]) : (phase & 1 ? words.w[3] : words.w[2]);
}

__device__ __forceinline__ double single_at(const DrawState& place, uint64 number) {
  return static_cast<double>(static_cast<float>(static_cast<uint32>(word_at(place, number)))) *
         0x1p-32;
}

__device__ __forceinline__ double double_at(const DrawState& place, uint64 number) {
  const uint64 low = word_at(place, number), high = word_at(place, number + 1);
  return static_cast<double>((low | high << 32) >> 11) * 0x1p-53;
}

struct Uniform32 {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    return drawn_as<Out>(static_cast<float>(single_at(p, number) * s.second + s.first));
  }
};

struct Uniform53 {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    return drawn_as<Out>(double_at(p, number) * s.second + s.first);
  }
};

// Zero has no logarithm.
__device__ __forceinline__ double not_zero(double u) { return u > 0x1p-33 ? u : 0x1p-33; }

struct Normal32 {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    const double radius = single_at(p, number), angle = single_at(p, number + 1);
    const double value = box_muller(not_zero(radius), angle);
    return drawn_as<Out>(static_cast<float>(value * s.second + s.first));
  }
};

struct Normal53 {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    const double radius = double_at(p, number), angle = double_at(p, number + 2);
    const double value = box_muller(not_zero(radius), angle);
    return drawn_as<Out>(value * s.second + s.first);
  }
};

struct Choices {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    const uint32 rejected = static_cast<uint32>(0x100000000ull % s.choices);
    uint64 product = word_at(p, number) * s.choices;
    while (static_cast<uint32>(product) < rejected) product = word_at(p, ++number) * s.choices;
    return static_cast<const Out*>(s.values)[product >> 32];
  }
};

struct Flips {
  template <typename Out>
  static __device__ __forceinline__ Out draw(const DrawnSample& s, const DrawState& p,
                                             uint64 number) {
    return word_at(p, number) < s.threshold ? Out(1.0f) : Out(0.0f);
  }
};

#include "records:THREADS"
#include "random:ROUNDS"

template <typename Draw, typename Out>
__global__ void __launch_bounds__(THREADS)
draw(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint64 key,
           uint64 sequence, uint64 offset, uint32 phase) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  // A copy: what is stored could be part of the record, for all the compiler knows.
  const DrawnSample s = *reinterpret_cast<const DrawnSample*>(share.record);
  const DrawState place{key, sequence + uint64(s.number) * 65537, offset};
  const int64 begin = int64(share.block) * (THREADS * ROUNDS);
  Out* const out = reinterpret_cast<Out*>(s.out);
  for (int round = 0; round < ROUNDS; ++round) {
    const int64 at = begin + round * THREADS + threadIdx.x;
    if (at >= s.size) return;
    out[at] = Draw::template draw<Out>(s, place, phase + uint64(at) * 257);
  }
}

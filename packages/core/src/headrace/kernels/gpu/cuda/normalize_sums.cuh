// Sums of numbers and of their squares. Integers of up to 16 bits are summed exactly; others in
// float64, as distances to one of the numbers, so that squares do not drown the differences.
#pragma once
#include "moments.cuh"

template <typename T> constexpr bool is_exact = Limits<T>::is_integer && sizeof(T) <= 2;

// What is summed over a block.
template <bool Exact> struct Sums {
  int64 sum;
  uint64 squares;
};
template <> struct Sums<false> {
  double sum, squares;
};

template <bool Exact>
__device__ __forceinline__ Sums<Exact> operator+(const Sums<Exact>& a, const Sums<Exact>& b) {
  return {a.sum + b.sum, a.squares + b.squares};
}

// Moments of `count` numbers, at most 2**15 of 16 bits, whose distances to `origin` were summed.
__device__ __forceinline__ Moments moments_of(const Sums<true>& sums, int64 count, double) {
  if (count == 0) return {0, 0, 0};
  const uint64 squares = count * sums.squares - static_cast<uint64>(sums.sum * sums.sum);
  return {double(count), double(sums.sum), double(squares) / double(count)};
}
__device__ __forceinline__ Moments moments_of(const Sums<false>& sums, int64 count, double origin) {
  if (count == 0) return {0, 0, 0};
  const double own = sums.sum * sums.sum / count;
  return {double(count), count * origin + sums.sum,
          is_finite(sums.sum) ? sums.squares - own : sums.squares};
}

// What numbers are summed as distances to: one of them, unless it is not finite.
template <typename T> __device__ __forceinline__ double origin_of(T number) {
  if constexpr (is_exact<T>) return 0;
  const double value = static_cast<double>(number);
  return is_finite(value) ? value : 0;
}

// The sums of one thread: of at most 2**15 numbers, so that squares of 8 bits fit into 32.
template <int Bytes> struct SquareType { using type = uint64; };
template <> struct SquareType<1> { using type = uint32; };

template <typename T, bool Exact = is_exact<T>> struct ThreadSums {
  int32 sum = 0;
  typename SquareType<sizeof(T)>::type squares = 0;
  __device__ __forceinline__ void add(T number, double) {
    const int32 value = number;
    sum += value;
    squares += static_cast<uint32>(value) * static_cast<uint32>(value);
  }
  // Those of the four bytes of a word that `mask` has.
  __device__ __forceinline__ void add_bytes(uint32 word, uint32 mask) {
    const uint32 ones = mask & 0x01010101u;
    if constexpr (Limits<T>::is_signed) {
      sum = __dp4a(static_cast<int32>(word), static_cast<int32>(ones), sum);
      squares = static_cast<uint32>(__dp4a(static_cast<int32>(word & mask),
                                           static_cast<int32>(word), static_cast<int32>(squares)));
    } else {
      sum = static_cast<int32>(__dp4a(word, ones, static_cast<uint32>(sum)));
      squares = __dp4a(word & mask, word, squares);
    }
  }
  __device__ __forceinline__ Sums<true> all() const { return {sum, squares}; }
  // The sums of all threads of the warp.
  __device__ __forceinline__ Sums<true> over_warp() const {
    Sums<true> found = {sum, squares};
#pragma unroll
    for (int bits = 16; bits > 0; bits /= 2) {
      found.sum += __shfl_xor_sync(0xffffffffu, found.sum, bits);
      found.squares += __shfl_xor_sync(0xffffffffu, found.squares, bits);
    }
    return found;
  }
};
template <typename T> struct ThreadSums<T, false> {
  double sum = 0, squares = 0;
  __device__ __forceinline__ void add(T number, double origin) {
    const double distance = static_cast<double>(number) - origin;
    sum += distance;
    squares = __fma_rn(distance, distance, squares);
  }
  __device__ __forceinline__ Sums<false> all() const { return {sum, squares}; }
};

// Where signals are not silent: the device's side of kernels/cpu/audio/nonsilent.py, bit by bit.
//
// A running sum has an order, so a thread computes that of one interval; intervals are independent.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "nonsilent:Signal"

template <typename In, typename Sum>
__global__ void __launch_bounds__(THREADS)
short_term_powers(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Signal& signal = *reinterpret_cast<const Signal*>(share.record);
  const uint32 number = share.block * THREADS + threadIdx.x;
  if (number >= signal.intervals) return;
  const int64 first = number ? signal.first_end + (number - 1) * signal.interval : 0;
  const int64 end = min(signal.first_end + number * signal.interval, signal.count);
  const In* const source = reinterpret_cast<const In*>(signal.source);
  float* const powers = reinterpret_cast<float*>(signal.powers);
  const float length = float(signal.window);
  Sum total = 0;
  for (int64 i = first; i < first + signal.window; i++) {
    const Sum value = Sum(source[i]);
    total += value * value;
  }
  float power = float(total) / length, largest = 0.0f;
  powers[first] = power;
  if (power > largest) largest = power;
  for (int64 i = first + 1; i < end; i++) {
    const Sum old = Sum(source[i - 1]), fresh = Sum(source[i + signal.window - 1]);
    total -= old * old;
    total += fresh * fresh;
    power = float(total) / length;
    powers[i] = power;
    if (power > largest) largest = power;
  }
  // Of numbers that are not negative the bits are in the same order.
  atomicMax(reinterpret_cast<uint32*>(signal.largest), __float_as_uint(largest));
}

// One block a sample.
__global__ void __launch_bounds__(THREADS)
nonsilent_ends(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, float limit,
               int32 of_largest) {
  __shared__ long long first, last;
  const Signal& signal =
      *reinterpret_cast<const Signal*>(records + uint64(blockIdx.x) * pitch);
  if (threadIdx.x == 0) {
    first = signal.count;
    last = -1;
  }
  __syncthreads();
  if (of_largest && signal.count) {
    limit = __uint_as_float(*reinterpret_cast<const uint32*>(signal.largest)) * limit;
  }
  const float* const powers = reinterpret_cast<const float*>(signal.powers);
  for (int64 i = threadIdx.x; i < signal.count; i += THREADS) {
    if (powers[i] >= limit) {
      atomicMin(&first, i);
      break;
    }
  }
  for (int64 i = signal.count - 1 - threadIdx.x; i >= 0; i -= THREADS) {
    if (powers[i] >= limit) {
      atomicMax(&last, i);
      break;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const bool silent = last < 0;
    *reinterpret_cast<int32*>(signal.begin) = silent ? 0 : int32(first);
    *reinterpret_cast<int32*>(signal.length) = silent ? 0 : int32(last + signal.window - first);
  }
}

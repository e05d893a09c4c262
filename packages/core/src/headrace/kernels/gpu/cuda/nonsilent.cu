// Where signals are not silent: the device's side of kernels/cpu/audio/nonsilent.py, bit by bit.
//
// A running sum has an order, so a single thread computes that of one interval; intervals are
// independent. All else is done by the block's other threads, too: squares lie in shared memory
// before they are needed, and sums are divided and stored from there.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "nonsilent:Signal"

constexpr int TILE = 1024;

// One block an interval.
template <typename In, typename Sum>
__global__ void __launch_bounds__(THREADS)
short_term_powers(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  __shared__ Sum old[TILE], fresh[TILE];
  __shared__ uint32 most;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Signal& signal = *reinterpret_cast<const Signal*>(share.record);
  const int64 number = share.block, thread = threadIdx.x;
  const int64 first = number ? signal.first_end + (number - 1) * signal.interval : 0;
  const int64 end = min(signal.first_end + number * signal.interval, signal.count);
  const In* const source = reinterpret_cast<const In*>(signal.source);
  float* const powers = reinterpret_cast<float*>(signal.powers);
  const float length = float(signal.window);
  const auto square = [&](int64 at) {
    const Sum value = Sum(source[at]);
    return Sum(value * value);
  };
  float largest = 0.0f;
  const auto keep = [&](int64 at, Sum total) {
    const float power = float(total) / length;
    powers[at] = power;
    if (power > largest) largest = power;
  };
  if (thread == 0) most = 0;

  Sum total = 0;  // of the first thread
  for (int64 begin = 0; begin < signal.window; begin += TILE) {
    const int count = int(min(int64(TILE), signal.window - begin));
    for (int k = thread; k < count; k += THREADS) fresh[k] = square(first + begin + k);
    __syncthreads();
    if (thread == 0) {
#pragma unroll 8
      for (int k = 0; k < count; k++) total += fresh[k];
    }
    __syncthreads();
  }
  if (thread == 0) keep(first, total);
  for (int64 begin = first + 1; begin < end; begin += TILE) {
    const int count = int(min(int64(TILE), end - begin));
    for (int k = thread; k < count; k += THREADS) {
      old[k] = square(begin + k - 1);
      fresh[k] = square(begin + k + signal.window - 1);
    }
    __syncthreads();
    if (thread == 0) {
#pragma unroll 8
      for (int k = 0; k < count; k++) {
        total -= old[k];
        total += fresh[k];
        old[k] = total;
      }
    }
    __syncthreads();
    for (int k = thread; k < count; k += THREADS) keep(begin + k, old[k]);
    __syncthreads();
  }
  // Of numbers that are not negative the bits are in the same order.
  if (largest > 0.0f) atomicMax(&most, __float_as_uint(largest));
  __syncthreads();
  if (thread == 0) atomicMax(reinterpret_cast<uint32*>(signal.largest), most);
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

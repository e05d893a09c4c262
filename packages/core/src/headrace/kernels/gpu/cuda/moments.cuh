// Moments of groups of numbers, in an order that does not depend on chance.
#pragma once
#include "common.cuh"

// Of a part of a group: the sum, and the sum of squared distances to the part's own mean.
struct Moments {
  double count, sum, squares;
};

__device__ __forceinline__ double mean_of(const Moments& part) {
  return part.count > 0 ? part.sum / part.count : 0;
}

// Whether there is no infinity and no not-a-number.
__device__ __forceinline__ bool is_finite(double value) { return value - value == 0; }

// Sum over the `Lanes` (1 or 32) threads that work together; all of them get it.
template <int Lanes> __device__ __forceinline__ double total(double value) {
  if constexpr (Lanes > 1) {
#pragma unroll
    for (int bits = Lanes / 2; bits > 0; bits /= 2) {
      value += __shfl_xor_sync(0xffffffffu, value, bits);
    }
  }
  return value;
}

// What another block may have written since the kernel began: read past the multiprocessor's cache.
__device__ __forceinline__ Moments fresh(const Moments* part) {
  return {__ldcg(&part->count), __ldcg(&part->sum), __ldcg(&part->squares)};
}

// Moments of `count` parts, `stride` apart, put together by `Lanes` threads, of which the caller is
// number `lane`: squared distances to another centre are those to one's own mean and the square of
// the way between, for each number.
template <int Lanes>
__device__ __forceinline__ Moments merged(const Moments* parts, int64 stride, int64 count,
                                          int lane) {
  Moments whole = {0, 0, 0};
  for (int64 i = lane; i < count; i += Lanes) {
    const Moments part = fresh(parts + i * stride);
    whole.count += part.count;
    whole.sum += part.sum;
  }
  whole.count = total<Lanes>(whole.count);
  whole.sum = total<Lanes>(whole.sum);
  const double mean = mean_of(whole);
  for (int64 i = lane; i < count; i += Lanes) {
    const Moments part = fresh(parts + i * stride);
    const double way = mean_of(part) - mean;
    // An empty part has no mean, and from infinity there is no way.
    whole.squares += part.count > 0 && is_finite(mean) ? part.squares + part.count * way * way
                                                       : part.squares;
  }
  whole.squares = total<Lanes>(whole.squares);
  return whole;
}

struct Estimate {
  double ddof, epsilon, scale;
};

// What distances to `mean` are multiplied by: `scale` over the standard deviation.
__device__ __forceinline__ float factor_of(const Moments& whole, double mean,
                                           const Estimate& estimate) {
  const double exact = mean_of(whole), way = exact - mean;
  double squares = 0;
  if (whole.count > estimate.ddof) {
    // Distances are to count from the mean that is subtracted, which has been rounded.
    squares = whole.squares + whole.count * way * way;
    if (!is_finite(exact)) squares = is_finite(mean) ? whole.squares : way;
    squares /= whole.count - estimate.ddof;
  }
  const double deviation = sqrt(squares + estimate.epsilon);
  return deviation == 0 ? 0.0f : static_cast<float>(estimate.scale / deviation);
}

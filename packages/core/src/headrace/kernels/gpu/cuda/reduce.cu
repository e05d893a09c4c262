// Sums, moments and extremes along any axes: the device's side of kernels/cpu/reduce.py.
//
// Groups of elements, one for each result, are reduced in parts, and then the parts.
#include "arithmetic_types.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "reduce:AXES"
#include "reduce:EACH"

#include "reduce:Groups"
#include "reduce:Step"

template <typename T> __device__ __forceinline__ T first_of(int32 step) {
  if (step == SUM || step == SQUARE) return T(0);
  if constexpr (is_real<T>) return step == MAX ? T(-3.4028234663852886e38f) : T(3.4028234663852886e38f);
  else return step == MAX ? lowest<T> : T(highest<T>);
}

// Not-a-numbers leave extremes as they are.
template <typename T> __device__ __forceinline__ T joined(int32 step, T one, T other) {
  if (step == MAX) return other > one ? other : one;
  if (step == MIN) return other < one ? other : one;
  return T(one + other);
}

__device__ __forceinline__ int64 place(const int64* extents, const int64* strides, uint64 number) {
  int64 found = 0;
#pragma unroll
  for (int k = AXES - 1; k > 0; k--) {
    if (extents[k] == 1) continue;
    if (number < uint64(extents[k])) return found + int64(number) * strides[k];
    const auto next = divided(number, uint64(extents[k]));
    found += int64(next.rest) * strides[k];
    number = next.whole;
  }
  return found + int64(number) * strides[0];
}

// What is made of the elements of a group, of which there are `reduced`.
template <typename T, typename Out>
__device__ __forceinline__ Out finished(T result, const Groups& groups, int32 divides, int32 root) {
  if (divides) {
    if constexpr (is_real<T>) result = T(result / groups.divisor);
    else result = groups.reduced ? T(result / T(groups.reduced)) : T(0);
  }
  if constexpr (is_real<T>) {
    if (root) result = sqrt(result);
  }
  // On the way from floats to integers fractions are dropped, and integers wrap around.
  if constexpr (is_real<T> && !is_real<Out>) return static_cast<Out>(static_cast<int64>(result));
  else return static_cast<Out>(result);
}

// `lanes` threads reduce a part of a group; a block has parts of several groups. Groups that are
// `whole` in one part are finished, too.
template <typename In, typename T, typename Out>
__global__ void __launch_bounds__(THREADS)
reduce_parts(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 step,
             uint32 lanes, int32 whole, int32 divides, int32 root) {
  DYNAMIC_SHARED(T, found);
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Groups& groups = *reinterpret_cast<const Groups*>(share.record);
  const uint32 tile = share.block / groups.parts, part = share.block - tile * groups.parts;
  const uint32 lane = threadIdx.x & (lanes - 1);
  const int64 group = int64(tile) * (THREADS / lanes) + threadIdx.x / lanes;
  T result = first_of<T>(step);
  if (group < groups.groups) {
    const In* const source = reinterpret_cast<const In*>(groups.source) +
                             place(groups.kept_extents, groups.kept_strides, group);
    T centre = T(0);
    if constexpr (same<T, double>) {
      if (groups.centre) {
        centre = reinterpret_cast<const float*>(groups.centre)[groups.centres == 1 ? 0 : group];
      }
    }
    const int64 begin = int64(part) * lanes * EACH;
    const int64 end = min(begin + int64(lanes) * EACH, groups.reduced);
    const auto take = [&](In element) {
      T value = T(element);
      if (step == SQUARE) {
        value = T(value - centre);
        value = T(value * value);
      }
      result = joined(step, result, value);
    };
    if (groups.reduced_extents[AXES - 1] == groups.reduced) {  // one axis: nothing to look up
      const int64 stride = groups.reduced_strides[AXES - 1];
#pragma unroll 4
      for (int64 i = begin + lane; i < end; i += lanes) take(source[i * stride]);
    } else {
      for (int64 i = begin + lane; i < end; i += lanes) {
        take(source[place(groups.reduced_extents, groups.reduced_strides, i)]);
      }
    }
  }
  if (lanes > 1) {
    found[threadIdx.x] = result;
    for (uint32 width = lanes / 2; width; width /= 2) {
      __syncthreads();
      if (lane < width) {
        found[threadIdx.x] = joined(step, found[threadIdx.x], found[threadIdx.x + width]);
      }
    }
    result = found[threadIdx.x];
  }
  if (lane != 0 || group >= groups.groups) return;
  if (whole) {
    reinterpret_cast<Out*>(groups.out)[group] = finished<T, Out>(result, groups, divides, root);
  } else {
    reinterpret_cast<T*>(groups.partial)[group * groups.parts + part] = result;
  }
}

template <typename T, typename Out>
__global__ void __launch_bounds__(THREADS)
reduce_finish(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 step,
              int32 divides, int32 root) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Groups& groups = *reinterpret_cast<const Groups*>(share.record);
  const int64 group = int64(share.block) * THREADS + threadIdx.x;
  if (group >= groups.groups) return;
  const T* const parts = reinterpret_cast<const T*>(groups.partial) + group * groups.parts;
  T result = parts[0];
  for (uint32 k = 1; k < groups.parts; k++) result = joined(step, result, parts[k]);
  reinterpret_cast<Out*>(groups.out)[group] = finished<T, Out>(result, groups, divides, root);
}

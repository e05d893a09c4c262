// How pixels are normalised. Shared by the kernels that resample, warp, and only normalise.
#pragma once
#include "common.cuh"

// What becomes of a number on its way to the output. `table` holds the means of all channels of the
// output, then their factors, then their values where there is no source; null: nothing happens.
struct Finish {
  const float* table;
  int out_channels;

  __device__ __forceinline__ float mean(int channel) const { return __ldg(table + channel); }
  __device__ __forceinline__ float factor(int channel) const {
    return __ldg(table + out_channels + channel);
  }

  template <typename Out>
  static __device__ __forceinline__ Out normalized(float value, float mean, float factor) {
    return saturated<Out>(__fmul_rn(__fsub_rn(value, mean), factor));
  }

  template <typename Out> __device__ __forceinline__ Out number(float value, int channel) const {
    if (table == nullptr) return saturated<Out>(value);
    return normalized<Out>(value, mean(channel), factor(channel));
  }

  template <typename Out> __device__ __forceinline__ Out outside(int channel) const {
    return saturated<Out>(__ldg(table + 2 * out_channels + channel));
  }
};

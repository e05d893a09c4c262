// One sample of a warp of which a window is wanted, and what becomes of its elements on their way to
// memory: see kernels/gpu/warp_placed.py.
#pragma once
#include "as_float.cuh"
#include "pixel_finish.cuh"
#include "warp_sample.cuh"

struct PlacedSample : Sample {
  // Elements of the output between neighbours. Negative ones mirror; `out` is where the first
  // element of the window goes.
  int64 out_plane, out_row, out_pixel, out_channel;
  const float* table;  // see `Finish`
  int32 first[3];      // depth, row, column of the canvas that the window begins with
  int32 size[3];       // its extents
  int32 out_channels;
};

// What an element becomes first: nothing else, here.
template <typename T> struct Keep {
  using Type = T;

  __device__ __forceinline__ explicit Keep(const uint8*) {}
  __device__ __forceinline__ T operator()(T value) const { return value; }
};

// And then: it is normalised, or left as it is.
template <typename Out, bool Normalized, typename T>
__device__ __forceinline__ Out finished(const Finish& finish, T value, int channel) {
  if constexpr (Normalized) {
    return Finish::normalized<Out>(as_float(value), finish.mean(channel), finish.factor(channel));
  } else {
    return value;
  }
}

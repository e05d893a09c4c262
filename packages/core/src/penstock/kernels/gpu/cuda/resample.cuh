// What the kernels of resampling share: see kernels/gpu/resample.py.
#pragma once
#include "normalize_pixels_runs.cuh"

// A sample, or the frames of one, to be resampled along rows and columns.
struct ResampledSample {
  uint32 first_block;
  const char* source;
  int64 outer, inner, row;  // bytes between neighbours; pixels lie side by side
  char* out;
  int64 out_outer, out_inner, out_row, out_pixel, out_channel;  // elements between neighbours
  const float* table;         // see `Finish`
  const int* row_first;       // first source row of each output row
  const float* row_weights;   // `row_taps` for each output row
  const int* column_first;
  const float* column_weights;
  int row_taps, column_taps;
  int inners, height, width;
  int channels, out_channels;
  int tile_pixels;  // columns of the output that a block makes
  int planar;       // whether they are written to a plane for each channel, by the kernel of tiles
};

// The integers that pixels are rounded to before anything else happens to them, halves to even.
struct Rounding {
  int wanted;
  float low, high;

  __device__ __forceinline__ float operator()(float value) const {
    return wanted ? fminf(fmaxf(rintf(value), low), high) : value;
  }
};

template <typename In> __device__ __forceinline__ float number_at(const char* place) {
  return static_cast<float>(__ldg(reinterpret_cast<const In*>(place)));
}

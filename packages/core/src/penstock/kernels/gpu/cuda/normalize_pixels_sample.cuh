// A sample that is normalised: see kernels/gpu/normalize_pixels.py.
#pragma once
#include "common.cuh"

struct Range {
  int begin, end;
  __device__ __forceinline__ bool has(int value) const { return value >= begin && value < end; }
};

struct NormalizedSample {
  uint32 first_block;
  const char* source;  // of the first element of the window; need not be in the data
  int64 outer, inner, row, pixel, channel;  // bytes between neighbours
  char* out;
  int64 out_outer, out_inner, out_row, out_pixel, out_channel;  // elements between neighbours
  const float* table;                            // see `Finish`
  Range in_outer, in_inner, in_rows, in_columns;  // what of the window is in the data
  int inners, height, width;
  int channels, out_channels;
  int planes;  // planes a frame is worked on in; 1 where a block makes all channels
  int groups;  // units a pixel
  int turns;   // of UNITS each, for one block
  int tile_rows, tile_columns;  // what a block makes of planes from packed pixels
};

// One sample of a warp.
#pragma once
#include "common.cuh"

struct Sample {
  uint64 source, out;
  double fill;
  float matrix[3][4];  // from (x, y, z, 1) of the output
  int32 extent[4];     // depth, height, width, channels
  int32 canvas[3];     // depth, height, width of the output
  int32 tiles_across;
};

// Where the rows of a warp's output begin in the input.
#pragma once
#include "warp_sample.cuh"

#include "warp:RESTART"

// A coordinate of the first element of run number `run`, of RESTART elements, of a row. From one
// element to the next, `matrix[axis][0]` has to be added, as on the CPU.
template <int Rank>
__device__ __forceinline__ float start_of_run(const Sample& sample, int axis, int row, int run) {
  const float* const m = sample.matrix[axis];
  const int height = sample.canvas[1];
  float value = m[0] * 0.5f + m[3];
  value = m[1] * (static_cast<float>(Rank == 3 ? row % height : row) + 0.5f) + value;
  if (Rank == 3) value = m[2] * (static_cast<float>(row / height) + 0.5f) + value;
  for (int i = 0; i < run; i++) value += float(RESTART) * m[0];
  return value;
}

// How a block makes a tile of a warp's output: coordinates of its elements, and who makes which.
#pragma once
#include "warp_sampling.cuh"
#include "warp_steps.cuh"

#include "records:THREADS"
#include "warp:TILE_ROWS"
#include "warp:TILE_WIDTH"

constexpr int WARPS = THREADS / 32;
constexpr int PATCH_WIDTH = 8, PATCH_ROWS = 4;
// Odd: threads that write one row each, side by side, use different banks.
constexpr int PITCH = TILE_WIDTH + 9;
static_assert(RESTART % TILE_WIDTH == 0, "a tile has one start");
static_assert(WARPS * PATCH_ROWS == TILE_ROWS, "a warp has rows of its own");

// Fill `at` with a coordinate of the elements of row number `line` of the canvas, from a column on
// that is a multiple of TILE_WIDTH.
template <int Rank>
__device__ __forceinline__ void locate_row(const Sample& sample, int axis, int line,
                                           int first_column, float (&at)[PITCH]) {
  const float step = sample.matrix[axis][0];
  float value = start_of_run<Rank>(sample, axis, line, first_column / RESTART);
  for (int i = 0; i < first_column % RESTART; i++) value += step;
  for (int i = 0; i < TILE_WIDTH; i++) {
    at[i] = value;
    value += step;
  }
}

// Hands over the element at a point, channel by channel: `put(c, value)`.
template <typename Out, int Rank, int Channels, bool Nearest, typename In, typename Put>
__device__ __forceinline__ void look_up(const Source<In>& source, const float (&point)[Rank],
                                        bool clamp, double fill, const Put& put) {
  if constexpr (Nearest) {
    take_nearest<Rank, Channels, Out>(source, point, clamp, static_cast<Out>(fill), put);
  } else {
    interpolate<Rank, Channels, Out>(source, point, clamp, static_cast<float>(fill), put);
  }
}

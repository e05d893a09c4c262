// Kernels that read pixels of three channels may do functions of them on the way: the structs `Body`
// that ../color_text.py writes, whose results have the type of what was read. This one is none.
#pragma once
#include "common.cuh"

struct ColorsAsTheyAre {
  static constexpr bool present = false;
};

// One pixel, in its place. `numbers` is a table with a row a sample.
template <typename Colors, typename T>
__device__ __forceinline__ void change_colors(const uint8* numbers, uint32 sample, T* pixel) {
  if constexpr (Colors::present) {
    const auto& row = reinterpret_cast<const typename Colors::Numbers*>(numbers)[sample];
    T given[3] = {pixel[0], pixel[1], pixel[2]}, made[3];
    Colors::pixel(row, given, made);
#pragma unroll
    for (int c = 0; c < 3; c++) pixel[c] = made[c];
  }
}

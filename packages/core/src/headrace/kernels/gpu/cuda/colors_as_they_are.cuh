// Kernels that read pixels of three channels may do functions of them on the way: the structs `Body`
// that ../color_text.py writes, whose results have the type of what was read. This one is none.
#pragma once
#include "color.cuh"
#include "strided_copy_blocks.cuh"

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

// All pixels of some rows in shared memory, `pitch` bytes apart, by all threads of a block: four
// neighbours at a time, which are whole words.
template <typename Colors, typename T>
__device__ __forceinline__ void change_rows(const uint8* numbers, uint32 sample, uint8* memory,
                                            int rows, int columns, int pitch, int threads) {
  if constexpr (Colors::present) {
    constexpr int SIZE = sizeof(T), PIXEL = 3 * SIZE, WORDS = PIXEL;
    const typename Colors::Numbers row_numbers =
        reinterpret_cast<const typename Colors::Numbers*>(numbers)[sample];
    const int groups = (columns + 3) / 4 + 1;
    const Divisor by_groups(groups);
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * groups; i += threads) {
      const int row = by_groups.divide(i);
      uint8* const begin = memory + row * pitch;
      // The first pixel that begins with a word: three is one less than four.
      const int place = int(reinterpret_cast<uint64>(begin) & 3);
      const int lead = SIZE == 1 ? place : SIZE == 2 ? place / 2 : 0;
      const int x = lead - 4 + 4 * (i - row * groups);
      T* const pixels = reinterpret_cast<T*>(begin + x * PIXEL);
      if (x < 0 || x + 4 > columns) {
        for (int k = 0; k < 4; k++)
          if (x + k >= 0 && x + k < columns)
            change_colors<Colors>(numbers, sample, pixels + 3 * k);
        continue;
      }
      uint32 words[WORDS];
#pragma unroll
      for (int k = 0; k < WORDS; k++) words[k] = reinterpret_cast<const uint32*>(pixels)[k];
      T made[4][3];
      if constexpr (SIZE == 1) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
          PackedByte given[3];
#pragma unroll
          for (int c = 0; c < 3; c++) given[c] = {words[(3 * k + c) / 4], uint32(3 * k + c) % 4};
          Colors::pixel(row_numbers, given, made[k]);
        }
      } else {
        T given[4][3];
        memcpy(given, words, sizeof(given));
#pragma unroll
        for (int k = 0; k < 4; k++) Colors::pixel(row_numbers, given[k], made[k]);
      }
      memcpy(words, made, sizeof(made));
#pragma unroll
      for (int k = 0; k < WORDS; k++) reinterpret_cast<uint32*>(pixels)[k] = words[k];
    }
  }
}

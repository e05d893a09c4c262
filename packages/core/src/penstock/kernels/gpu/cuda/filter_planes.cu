// Filters planes of pixels down and across in one go; what lies between stays in shared memory.
//
// A block makes a tile of one plane. Every thread filters a few neighbouring elements at a time out
// of registers: first down, from the input, then across, from shared memory, where each channel has
// rows of its own. The results are stored row by row.
#include "filter.cuh"
#include "row_store.cuh"

constexpr int THREADS = 256, ROWS = 16, DOWN = 8, ACROSS = 4;

struct Sample {
  uint64 source, out;
  uint64 row_weights, column_weights;  // the centre's first
  int32 row_reach, column_reach;
  int32 height, width;
  int32 tiles, tiles_across;
};

template <typename In, typename Out, int Channels, int Reach>
__global__ void __launch_bounds__(THREADS)
filter_planes(const Sample* __restrict__ samples, int32 tiles_per_sample) {
  constexpr int tile_width = Channels == 1 ? 128 : 64, pitch = tile_width + 2 * Reach;
  constexpr int staged_pitch = (row_pitch(tile_width * Channels * int(sizeof(Out))) + 7) / 8 * 8;
  constexpr int between_bytes = Channels * ROWS * pitch * int(sizeof(float));
  constexpr int staged_bytes = ROWS * staged_pitch;
  constexpr int memory_bytes = between_bytes > staged_bytes ? between_bytes : staged_bytes;
  static_assert(Reach % ACROSS == 0, "vectors are aligned");
  __shared__ __align__(16) uint8 memory[memory_bytes];
  __shared__ float row_weights[Reach + 1], column_weights[Reach + 1];
  __shared__ int lines[ROWS + 2 * Reach], columns[pitch];

  const Sample& sample = samples[blockIdx.x / tiles_per_sample];
  const int tile = blockIdx.x % tiles_per_sample;
  if (tile >= sample.tiles) return;
  const int height = sample.height, width = sample.width;
  const int tiles_down = (height + ROWS - 1) / ROWS, tiles_across = sample.tiles_across;
  const int first_column = tile % tiles_across * tile_width;
  const int first_row = tile / tiles_across % tiles_down * ROWS;
  const int64 plane = int64(tile / tiles_across / tiles_down) * height;
  const int row_reach = sample.row_reach, column_reach = sample.column_reach;

  for (int i = threadIdx.x; i < pitch; i += THREADS) {
    columns[i] = mirrored(first_column + i - Reach, width) * Channels;
    if (i < ROWS + 2 * Reach) lines[i] = mirrored(first_row + i - Reach, height);
    if (i <= row_reach) row_weights[i] = reinterpret_cast<const float*>(sample.row_weights)[i];
    if (i <= column_reach) {
      column_weights[i] = reinterpret_cast<const float*>(sample.column_weights)[i];
    }
  }
  __syncthreads();

  float* const between = reinterpret_cast<float*>(memory);  // (channel, row, column)
  const int count = min(tile_width, width - first_column);
  const int needed = (count + 2 * column_reach) * Channels;
  const In* const source = reinterpret_cast<const In*>(sample.source) + plane * width * Channels;
  for (int i = threadIdx.x; i < needed * (ROWS / DOWN); i += THREADS) {
    const int row = i / needed * DOWN, element = i % needed, channel = element % Channels;
    const int column = element / Channels + Reach - column_reach;
    const In* const from = source + columns[column] + channel;
    float values[DOWN + 2 * Reach], sums[DOWN];
#pragma unroll
    for (int k = 0; k < DOWN + 2 * Reach; k++) {
      if (k >= Reach - row_reach && k < Reach + DOWN + row_reach) {
        values[k] = as_float(from[int64(lines[row + k]) * width * Channels]);
      }
    }
    weigh<DOWN, Reach>(values, row_weights, row_reach, sums);
#pragma unroll
    for (int k = 0; k < DOWN; k++) between[(channel * ROWS + row + k) * pitch + column] = sums[k];
  }
  __syncthreads();

  constexpr int groups = tile_width / ACROSS, rounds = ROWS * groups / THREADS;
  float sums[rounds][Channels][ACROSS];
#pragma unroll
  for (int n = 0; n < rounds; n++) {
    const int item = threadIdx.x + n * THREADS;
#pragma unroll
    for (int c = 0; c < Channels; c++) {
      const float4* const from = reinterpret_cast<const float4*>(
          between + (c * ROWS + item / groups) * pitch + item % groups * ACROSS);
      float values[ACROSS + 2 * Reach];
#pragma unroll
      for (int k = 0; k < ACROSS + 2 * Reach; k += ACROSS) {
        if (k + ACROSS > Reach - column_reach && k < Reach + ACROSS + column_reach) {
          const float4 four = from[k / ACROSS];
          values[k] = four.x, values[k + 1] = four.y;
          values[k + 2] = four.z, values[k + 3] = four.w;
        }
      }
      weigh<ACROSS, Reach>(values, column_weights, column_reach, sums[n][c]);
    }
  }
  __syncthreads();  // from here on the memory holds rows of the output

  uint8* const out = reinterpret_cast<uint8*>(sample.out);
  const auto row_begin = [=](int row) {
    return out + ((plane + first_row + row) * width + first_column) * Channels * int(sizeof(Out));
  };
#pragma unroll
  for (int n = 0; n < rounds; n++) {
    const int item = threadIdx.x + n * THREADS, row = item / groups;
    Out* const to = reinterpret_cast<Out*>(memory + row * staged_pitch + row_phase(row_begin(row))) +
                    item % groups * ACROSS * Channels;
#pragma unroll
    for (int k = 0; k < ACROSS; k++) {
#pragma unroll
      for (int c = 0; c < Channels; c++) to[k * Channels + c] = filtered<Out>(sums[n][c][k]);
    }
  }
  __syncthreads();
  for (int row = threadIdx.x / 32; row < ROWS && first_row + row < height; row += THREADS / 32) {
    store_row(row_begin(row), memory + row * staged_pitch, count * Channels * int(sizeof(Out)),
              threadIdx.x % 32, 32);
  }
}

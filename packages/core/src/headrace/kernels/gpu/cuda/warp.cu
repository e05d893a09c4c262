// Affine warps of images and volumes: the device's side of kernels/cpu/warp.py, to the last bit.
//
// A block makes a tile of one sample's output. Coordinates have to be advanced element by element
// along a row, as on the CPU: a few threads do that for the whole tile, then all threads look up
// their elements. Each warp turns a patch of 8 x 4 elements at a time, whatever the angle its
// sources lie close together; it collects 4 rows of 32 elements and stores them side by side.
#include "row_store.cuh"
#include "warp_tiles.cuh"

constexpr int SEGMENT = 32;

template <typename In, typename Out, int Rank, int Channels, bool Nearest>
__global__ void __launch_bounds__(THREADS)
warp(const Sample* __restrict__ samples, uint32 tiles_per_sample, bool clamp) {
  __shared__ float at[Rank][TILE_ROWS][PITCH];
  constexpr int pixel_bytes = Channels * int(sizeof(Out));
  __shared__ __align__(4) uint8 staged[WARPS][PATCH_ROWS][row_pitch(SEGMENT * pixel_bytes)];

  const Sample& sample = samples[blockIdx.x / tiles_per_sample];
  const int tile = blockIdx.x % tiles_per_sample;
  const int first_row = tile / sample.tiles_across * TILE_ROWS;
  const int first_column = tile % sample.tiles_across * TILE_WIDTH;
  const int rows = sample.canvas[0] * sample.canvas[1], width = sample.canvas[2];
  if (first_row >= rows) return;  // of a smaller sample than others
  {
    const int axis = threadIdx.x / TILE_ROWS, tile_row = threadIdx.x % TILE_ROWS;
    if (axis < Rank && first_row + tile_row < rows)
      locate_row<Rank>(sample, axis, first_row + tile_row, first_column, at[axis][tile_row]);
  }
  __syncthreads();

  const int warp_number = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int patch_row = lane / PATCH_WIDTH, patch_column = lane % PATCH_WIDTH;
  const int tile_row = warp_number * PATCH_ROWS + patch_row, row = first_row + tile_row;
  const int channels = Channels ? Channels : sample.extent[3];
  const Source<In> source = {reinterpret_cast<const In*>(sample.source), sample.extent[0],
                             sample.extent[1], sample.extent[2], channels};
  Out* const out = reinterpret_cast<Out*>(sample.out) + int64(row) * width * channels;

  for (int begin = 0; begin < TILE_WIDTH && first_column + begin < width; begin += SEGMENT) {
    uint8* const to = reinterpret_cast<uint8*>(out + int64(first_column + begin) * channels);
    uint8* const stage = staged[warp_number][patch_row];
    for (int k = patch_column; k < SEGMENT && row < rows; k += PATCH_WIDTH) {
      const int column = first_column + begin + k;
      if (column >= width) break;
      Out* const pixel = Channels ? reinterpret_cast<Out*>(stage + row_phase(to)) + k * channels
                                  : out + int64(column) * channels;
      float point[Rank];
      for (int axis = 0; axis < Rank; axis++) point[axis] = at[axis][tile_row][begin + k];
      look_up<Out, Rank, Channels, Nearest>(source, point, clamp, sample.fill,
                                            [&](int c, Out value) { pixel[c] = value; });
    }
    if constexpr (Channels != 0) {
      __syncwarp();
      const int count = min(SEGMENT, width - first_column - begin);
      if (row < rows) store_row(to, stage, count * pixel_bytes, patch_column, PATCH_WIDTH);
      __syncwarp();
    }
  }
}

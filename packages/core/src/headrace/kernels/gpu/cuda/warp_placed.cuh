// Windows of affine warps, mirrored, converted, normalised and laid out on the way: the values that
// warp.cu and whatever is after it would give one after the other.
//
// A block makes a tile of one sample's canvas, as far as it is in the window: coordinates depend on
// where an element is on the canvas, to their last bit.
#include "warp_placed_sample.cuh"
#include "warp_tiles.cuh"

// `Mid`: the type of the warp's output. `Chain`: what becomes of its elements; `numbers` are what
// each sample's needs, `pitch` bytes apart.
template <typename In, typename Mid, typename Out, int Rank, int Channels, bool Nearest,
          bool Normalized, typename Chain>
__global__ void __launch_bounds__(THREADS)
warp_placed(const Sample* __restrict__ samples, uint32 tiles_per_sample, bool clamp,
            const uint8* numbers, uint32 pitch) {
  __shared__ float at[Rank][TILE_ROWS][PITCH];

  const uint32 number = blockIdx.x / tiles_per_sample;
  const Sample& sample = samples[number];
  const int tile = blockIdx.x % tiles_per_sample;
  const int first_line = tile / sample.tiles_across * TILE_ROWS;
  const int lines = sample.size[0] * sample.size[1], height = sample.size[1];
  if (first_line >= lines) return;  // of a smaller sample than others
  const int begin = sample.first[2], width = sample.size[2];
  const int first_column = (begin / TILE_WIDTH + tile % sample.tiles_across) * TILE_WIDTH;
  {
    const int axis = threadIdx.x / TILE_ROWS, tile_row = threadIdx.x % TILE_ROWS;
    const int line = first_line + tile_row, plane = line / height;
    const int row = sample.first[1] + line - plane * height;
    if (axis < Rank && line < lines)
      locate_row<Rank>(sample, axis, (sample.first[0] + plane) * sample.canvas[1] + row,
                       first_column, at[axis][tile_row]);
  }
  __syncthreads();

  const int warp_number = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int tile_row = warp_number * PATCH_ROWS + lane / PATCH_WIDTH, line = first_line + tile_row;
  if (line >= lines) return;
  const int channels = Channels ? Channels : sample.extent[3];
  const Source<In> source = {reinterpret_cast<const In*>(sample.source), sample.extent[0],
                             sample.extent[1], sample.extent[2], channels};
  const Chain chain(numbers + uint64(number) * pitch);
  const Finish finish{sample.table, sample.out_channels};
  const int plane = line / height, row = line - plane * height;
  Out* const out = reinterpret_cast<Out*>(sample.out) + plane * sample.out_plane +
                   row * sample.out_row;
  for (int k = lane % PATCH_WIDTH; k < TILE_WIDTH; k += PATCH_WIDTH) {
    const int column = first_column + k - begin;
    if (column < 0) continue;
    if (column >= width) break;
    float point[Rank];
    for (int axis = 0; axis < Rank; axis++) point[axis] = at[axis][tile_row][k];
    Out* const pixel = out + column * sample.out_pixel;
    look_up<Mid, Rank, Channels, Nearest>(
        source, point, clamp, sample.fill, [&](int c, Mid value) {
          pixel[c * sample.out_channel] = finished<Out, Normalized>(finish, chain(value), c);
        });
    if constexpr (Normalized) {
      for (int c = channels; c < sample.out_channels; c++)
        pixel[c * sample.out_channel] = finish.outside<Out>(c);
    }
  }
}

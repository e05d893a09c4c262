// Windows of affine warps of images of bytes, interpolated: the values of warp_placed.cuh by fewer
// instructions.
//
// A block makes a strip of rows of the canvas, see warp_box.cuh, as far as it is in the window. Rows
// of a tile, which neighbours have put together in shared memory, are then read element by element in
// the order in which they are written: in planes or as pixels, by vectors wherever rows begin.
#include "warp_box.cuh"
#include "warp_placed_sample.cuh"

template <int size> struct RunWord;
template <> struct RunWord<4> { using type = uint32; };
template <> struct RunWord<8> { using type = uint2; };

// Elements of one run of memory, `count` of them from `to` on: `element(i)` makes one. All threads of
// a warp do that together, by vectors, of which a row of a tile keeps as many threads busy as it can.
template <typename Out, typename Element>
__device__ __forceinline__ void store_run(Out* to, int count, const Element& element) {
  constexpr int length = sizeof(Out) == 1 ? 4 : 2, size = length * int(sizeof(Out));
  using Word = typename RunWord<size>::type;
  const int phase = int(reinterpret_cast<uint64>(to) & (size - 1)) / int(sizeof(Out));
  for (int i = int(threadIdx.x % 32) * length - phase; i < count; i += 32 * length) {
    if (i >= 0 && i + length <= count) {
      Out values[length];
#pragma unroll
      for (int k = 0; k < length; k++) values[k] = element(i + k);
      Word word;
      memcpy(&word, values, sizeof(word));
      *reinterpret_cast<Word*>(to + i) = word;
    } else {
      for (int k = max(i, 0); k < min(i + length, count); k++) to[k] = element(k);
    }
  }
}

template <typename Out, int Channels, bool Normalized, typename Chain>
__global__ void __launch_bounds__(THREADS, BLOCKS)
warp_bytes_placed(const PlacedSample* __restrict__ samples, uint32 strips_per_sample, bool clamp,
                  const uint8* numbers, uint32 pitch) {
  __shared__ float at[2][ROWS][RUNS + 1];
  __shared__ Box boxes[TILES];
  __shared__ __align__(16) uint32 pixels[BOX * BOX];
  __shared__ uint32 staged[ROWS][TILE_WIDTH * Channels / 4 + 1];

  const uint32 number = blockIdx.x / strips_per_sample;
  const uint32 strip = blockIdx.x - number * strips_per_sample;
  const PlacedSample& sample = samples[number];
  const uint32 across = sample.tiles_across, strip_row = strip / across;
  const int first_row = strip_row * ROWS;  // of the window
  if (first_row >= sample.size[1]) return;  // of a smaller sample than others
  const int begin = sample.first[2], run = begin / RESTART + int(strip - strip_row * across);
  const int rows = min(ROWS, sample.size[1] - first_row);
  // What is wanted of the strip's columns.
  const int low = max(begin - run * RESTART, 0);
  const int high = min(RESTART, begin + sample.size[2] - run * RESTART);
  const int runs = (high + RUN - 1) / RUN, thread = threadIdx.x;

  if (thread < 2 * ROWS) {
    const int axis = thread / ROWS, row = thread % ROWS;
    locate_runs(sample, axis, sample.first[1] + first_row + row, run, runs, at[axis][row]);
  }
  __syncthreads();
  if (thread < TILES && thread * TILE_RUNS < runs) {
    boxes[thread] = box_of(at, rows - 1, max(low / RUN, thread * TILE_RUNS),
                           min((thread + 1) * TILE_RUNS, runs));
  }
  __syncthreads();

  const Source<uint8> source = {reinterpret_cast<const uint8*>(sample.source), 1, sample.extent[1],
                                sample.extent[2], Channels};
  const uint32 fill = static_cast<uint32>(sample.fill) * 0x01010101u;
  const float step_x = sample.matrix[0][0], step_y = sample.matrix[1][0];
  const int warp_number = thread / 32, lane = thread % 32, tile_run = lane % TILE_RUNS;
  const int row = warp_number * WARP_ROWS + lane / TILE_RUNS;
  const Chain chain(numbers + uint64(number) * pitch);
  const int out_channels = sample.out_channels;
  const Finish finish{sample.table, out_channels};
  const int64 out_pixel = sample.out_pixel;
  const bool mirrored = out_pixel < 0, planar = out_pixel == 1 || out_pixel == -1;
  const uint32 reciprocal = 65536 / out_channels + 1;  // of numbers below 2**10
  for (int first = low / TILE_WIDTH * TILE_WIDTH; first < high; first += TILE_WIDTH) {
    const Box box = boxes[first / TILE_WIDTH];
    if (box.columns) load_box<Channels>(source, box, clamp, fill, pixels);
    __syncthreads();
    const int skipped = max(low - first, 0), count = min(TILE_WIDTH, high - first) - skipped;
    const int place = first / RUN + tile_run;
    if (row < rows && place >= low / RUN && place < runs) {
      make_run<Channels>(source, pixels, box, at[0][row][place], at[1][row][place], step_x, step_y,
                         clamp, static_cast<float>(sample.fill),
                         staged[row] + tile_run * (RUN * Channels / 4));
    }
    __syncwarp();
    // Of each row, the pixels from the one with the lowest address on.
    const int column = run * RESTART + first + skipped - begin;
    for (int r = 0; r < WARP_ROWS; r++) {
      const int tile_row = warp_number * WARP_ROWS + r;
      if (tile_row >= rows) break;
      Out* const to = reinterpret_cast<Out*>(sample.out) + (first_row + tile_row) * sample.out_row +
                      (column + (mirrored ? count - 1 : 0)) * out_pixel;
      const uint8* const bytes =
          reinterpret_cast<const uint8*>(staged[tile_row]) + skipped * Channels;
      const auto element = [&](int pixel, int c) -> Out {
        if constexpr (Normalized) {
          if (c >= Channels) return finish.outside<Out>(c);
        }
        const uint8 value = bytes[(mirrored ? count - 1 - pixel : pixel) * Channels + c];
        return finished<Out, Normalized>(finish, chain(value), c);
      };
      if (planar) {
        for (int c = 0; c < out_channels; c++)
          store_run(to + c * sample.out_channel, count, [&](int i) { return element(i, c); });
      } else {
        store_run(to, count * out_channels, [&](int i) {
          const int pixel = (i * reciprocal) >> 16;
          return element(pixel, i - pixel * out_channels);
        });
      }
    }
    __syncthreads();  // the next tile needs the memory
  }
}

// Windows of affine warps of images of bytes, interpolated: the values of warp_placed.cuh by fewer
// instructions.
//
// A block makes a strip of rows of the canvas, see warp_box.cuh, as far as it is in the window. When
// nobody needs the box of a tile any more, its pixels take that memory in their last form, in planes
// or as pixels, and leave as runs.
#include "tile_leave.cuh"
#include "warp_box.cuh"
#include "warp_placed_sample.cuh"

template <typename Out, int Channels, int OutChannels, bool Normalized, typename Chain>
__global__ void __launch_bounds__(THREADS, BLOCKS)
warp_bytes_placed(const PlacedSample* __restrict__ samples, uint32 strips_per_sample, bool clamp,
                  const uint8* numbers, uint32 pitch) {
  // Rows are an odd number of words apart.
  constexpr int row_bytes = TILE_WIDTH * OutChannels * int(sizeof(Out)) + 4;
  constexpr int box_words = BOX * BOX, made_words = ROWS * row_bytes / 4;
  constexpr int run_words = RUN * Channels / 4;
  __shared__ float at[2][ROWS][RUNS + 1];
  __shared__ Box boxes[TILES];
  __shared__ __align__(16) uint32 memory[box_words > made_words ? box_words : made_words];
  __shared__ uint32 staged[ROWS][TILE_RUNS * run_words + 1];

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
  const int lane = thread % 32, tile_run = lane % TILE_RUNS;
  const int row = thread / 32 * WARP_ROWS + lane / TILE_RUNS;
  uint32* const own = staged[row] + tile_run * run_words;
  Out* const made = reinterpret_cast<Out*>(reinterpret_cast<uint8*>(memory) + row * row_bytes);
  const Chain chain(numbers + uint64(number) * pitch);
  const Finish finish{sample.table, OutChannels};
  const bool mirrored = sample.out_pixel < 0;
  const bool planar = sample.out_pixel == 1 || sample.out_pixel == -1;
  const int pixel_step = planar ? 1 : OutChannels, channel_step = planar ? TILE_WIDTH : 1;
  for (int first = low / TILE_WIDTH * TILE_WIDTH; first < high; first += TILE_WIDTH) {
    const Box box = boxes[first / TILE_WIDTH];
    if (box.columns) load_box<Channels>(source, box, clamp, fill, memory);
    __syncthreads();
    const int skipped = max(low - first, 0), count = min(TILE_WIDTH, high - first) - skipped;
    const int place = first / RUN + tile_run;
    const bool active = row < rows && place >= low / RUN && place < runs;
    if (active) {
      make_run<Channels>(source, memory, box, at[0][row][place], at[1][row][place], step_x, step_y,
                         clamp, static_cast<float>(sample.fill), own);
    }
    __syncthreads();  // the box is not needed any more
    if (active) {
      uint32 words[run_words];
#pragma unroll
      for (int w = 0; w < run_words; w++) words[w] = own[w];
      const int from = tile_run * RUN - skipped;
      Out* const first_made = made + (mirrored ? count - 1 - from : from) * pixel_step;
      const int step = mirrored ? -pixel_step : pixel_step;
#pragma unroll
      for (int c = 0; c < OutChannels; c++) {
        [[maybe_unused]] float mean = 0, factor = 0;
        if constexpr (Normalized) mean = finish.mean(c), factor = finish.factor(c);
#pragma unroll
        for (int k = 0; k < RUN; k++) {
          if (from + k < 0 || from + k >= count) continue;
          Out& value = first_made[k * step + c * channel_step];
          const int byte = k * Channels + c;
          if (c >= Channels) {
            value = finish.outside<Out>(c);
            continue;
          }
          const auto element = chain(static_cast<uint8>(words[byte / 4] >> (byte % 4 * 8) & 255));
          if constexpr (Normalized) {
            value = Finish::normalized<Out>(as_float(element), mean, factor);
          } else {
            value = element;
          }
        }
      }
    }
    __syncthreads();
    const int column = run * RESTART + first + skipped - begin + (mirrored ? count - 1 : 0);
    Out* const out = reinterpret_cast<Out*>(sample.out) + first_row * sample.out_row +
                     column * sample.out_pixel;
    const StagedTile tile = {row_bytes, TILE_WIDTH * int(sizeof(Out)), rows,
                             planar ? OutChannels : 1, count * pixel_step * int(sizeof(Out))};
    leave<ROWS, THREADS>(reinterpret_cast<const uint8*>(memory), tile,
                         reinterpret_cast<uint8*>(out), sample.out_row * int64(sizeof(Out)),
                         sample.out_channel * int64(sizeof(Out)));
    __syncthreads();  // the next tile needs the memory
  }
}

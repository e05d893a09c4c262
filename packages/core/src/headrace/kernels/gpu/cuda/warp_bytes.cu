// Affine warps of images of bytes, interpolated: the values of warp.cu by fewer instructions.
//
// A block makes a strip of rows, see warp_box.cuh, and stores rows of words.
#include "packed_rows.cuh"
#include "warp_box.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int BLOCKS = 4;  // that share a multiprocessor
#else
constexpr int BLOCKS = 5;
#endif

template <int Channels>
__global__ void __launch_bounds__(THREADS, BLOCKS)
warp_bytes(const Sample* __restrict__ samples, uint32 strips_per_sample, bool clamp) {
  __shared__ float at[2][TILE_ROWS][RUNS + 1];
  __shared__ Box boxes[TILES];
  __shared__ __align__(16) uint32 pixels[BOX * BOX];
  constexpr int tile_bytes = TILE_WIDTH * Channels, staged_pitch = tile_bytes / 4 + 1;
  __shared__ uint32 staged[TILE_ROWS][staged_pitch];

  const uint32 number = blockIdx.x / strips_per_sample;
  const uint32 strip = blockIdx.x - number * strips_per_sample;
  const Sample& sample = samples[number];
  const uint32 across = sample.tiles_across, strip_row = strip / across;
  const int first_row = strip_row * TILE_ROWS, run = strip - strip_row * across;
  const int height = sample.canvas[1], width = sample.canvas[2];
  if (first_row >= height) return;  // of a smaller sample than others
  const int rows = min(TILE_ROWS, height - first_row), count = min(RESTART, width - run * RESTART);
  const int runs = (count + RUN - 1) / RUN, thread = threadIdx.x;

  if (thread < 2 * TILE_ROWS) {
    const int axis = thread / TILE_ROWS, row = thread % TILE_ROWS;
    locate_runs(sample, axis, first_row + row, run, runs, at[axis][row]);
  }
  __syncthreads();
  if (thread < TILES && thread * TILE_RUNS < runs) {
    boxes[thread] = box_of(at, rows - 1, thread * TILE_RUNS, min((thread + 1) * TILE_RUNS, runs));
  }
  __syncthreads();

  const Source<uint8> source = {reinterpret_cast<const uint8*>(sample.source), 1, sample.extent[1],
                                sample.extent[2], Channels};
  const uint32 fill = static_cast<uint32>(sample.fill) * 0x01010101u;
  const float step_x = sample.matrix[0][0], step_y = sample.matrix[1][0];
  const int lane = thread % 32, tile_run = lane % TILE_RUNS;
  const int row = thread / 32 * WARP_ROWS + lane / TILE_RUNS;
  uint8* out = reinterpret_cast<uint8*>(sample.out) +
               (int64(first_row + row) * width + run * RESTART) * Channels;
  for (int first = 0; first < count; first += TILE_WIDTH, out += tile_bytes) {
    const Box box = boxes[first / TILE_WIDTH];
    if (box.columns) load_box<Channels>(source, box, clamp, fill, pixels);
    __syncthreads();
    const int tile_count = min(TILE_WIDTH, count - first);
    if (row < rows && tile_run * RUN < tile_count) {
      const int place = first / RUN + tile_run;
      float x = at[0][row][place], y = at[1][row][place];
      uint32* const to = staged[row] + tile_run * (RUN * Channels / 4);
      if (box.columns) {
#pragma unroll
        for (int four = 0; four < RUN; four += 4) {
          uint32 bytes[4 * Channels];
          blend_four<Channels>(pixels, box, x, y, step_x, step_y, bytes);
#pragma unroll
          for (int w = 0; w < Channels; w++) {
            const uint32* const b = bytes + 4 * w;
            to[four * Channels / 4 + w] = __byte_perm(__byte_perm(b[0], b[1], 0x0040),
                                                      __byte_perm(b[2], b[3], 0x0040), 0x5410);
          }
        }
      } else {
        uint8* pixel = reinterpret_cast<uint8*>(to);
        for (int k = 0; k < RUN; k++, pixel += Channels) {
          const float point[2] = {x, y};
          interpolate<2, Channels, uint8>(source, point, clamp, static_cast<float>(sample.fill),
                                          [&](int c, uint8 value) { pixel[c] = value; });
          x += step_x, y += step_y;
        }
      }
    }
    __syncwarp();
    if (row < rows) {
      store_packed<tile_bytes, TILE_RUNS>(out, staged[row], tile_count * Channels, tile_run);
    }
    __syncthreads();  // the next tile needs the memory
  }
}

// Windows of affine warps of images of bytes, interpolated: the values of warp_placed.cuh by fewer
// instructions.
//
// A block makes a strip of rows of the canvas, see warp_box.cuh, as far as it is in the window. Pixels
// become what they are in the end where they are blended, and take their places in shared memory, in
// planes or as pixels, from where each warp stores the rows that it has made.
#include "arithmetic_types.cuh"
#include "warp_box.cuh"
#include "warp_placed_sample.cuh"

// Stores elements in shared memory: as one vector, where that begins at a multiple of its size, or by
// words.
template <bool Vector, typename Out, int Count>
__device__ __forceinline__ void put(Out* at, const Out (&values)[Count]) {
  uint32 words[Count * sizeof(Out) / 4];
  memcpy(words, values, sizeof(words));
  constexpr int count = sizeof(words) / 4;
  if constexpr (Vector && count == 4) {
    *reinterpret_cast<uint4*>(at) = make_uint4(words[0], words[1], words[2], words[3]);
  } else if constexpr (Vector && count == 2) {
    *reinterpret_cast<uint2*>(at) = make_uint2(words[0], words[1]);
  } else {
#pragma unroll
    for (int w = 0; w < count; w++) reinterpret_cast<uint32*>(at)[w] = words[w];
  }
}

// The last form of a tile's rows, in shared memory.
template <typename Out, int OutChannels> struct Made {
  static constexpr int PLANE = TILE_WIDTH * int(sizeof(Out));
  // So that vectors of four elements that neighbouring rows store use different banks.
  static constexpr int PITCH = OutChannels * PLANE + 4 * int(sizeof(Out));
  static constexpr int FRONT = 16;
  static constexpr int BYTES = FRONT + TILE_ROWS * PITCH + 16;
};

// Stores a warp's rows of a tile, `Planes` runs of `size` bytes each; `out` is where the first belongs,
// and `from` the byte that it begins with in shared memory. By words, wherever runs begin: `Alike` says
// that all begin at the same place in a word.
template <typename Layout, int Planes, bool Alike>
__device__ __forceinline__ void store_rows(uint8* out, int64 out_row, int64 out_plane,
                                           const uint8* made, int from, int size, int rows,
                                           int lane) {
  const auto begin_of = [&](int r, int p) {
    uint32 low = static_cast<uint32>(reinterpret_cast<uint64>(out));
    if (!Alike) low += r * static_cast<uint32>(out_row) + p * static_cast<uint32>(out_plane);
    return static_cast<int>(low & 3);
  };
  const auto offset_of = [](int r, int p) { return r * Layout::PITCH + p * Layout::PLANE; };
  for (int w = lane; w < (size + 3) / 4; w += 32) {
    // All that a thread stores is read before.
    uint32 values[WARP_ROWS][Planes];
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
#pragma unroll
      for (int p = 0; p < Planes; p++) {
        const int place = from - begin_of(r, p) + 4 * w, phase = place & 3;
        const uint32* const two =
            reinterpret_cast<const uint32*>(made + (offset_of(r, p) + place - phase));
        values[r][p] = phase ? __funnelshift_r(two[0], two[1], 8 * phase) : two[0];
      }
    }
    uint8* to = out + 4 * w;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++, to += out_row) {
      if (r >= rows) break;
      uint8* plane = to;
#pragma unroll
      for (int p = 0; p < Planes; p++, plane += out_plane) {
        const int begin = begin_of(r, p);
        if (w < (begin + size) / 4 && (w > 0 || begin == 0))
          *reinterpret_cast<uint32*>(plane - begin) = values[r][p];
      }
    }
  }
  if (Alike && (begin_of(0, 0) | size) % 4 == 0) return;
  // The first word and the last have others' bytes, too; they may be the same one. Up to three bytes
  // of each are left.
  for (int task = lane; task < rows * Planes * 6; task += 32) {
    const int run = task / 6, part = task - run * 6, r = run / Planes, p = run - r * Planes;
    const int begin = begin_of(r, p), end = begin + size;
    const int first = begin ? min(4 - begin, size) : 0, left = begin && end < 4 ? 0 : end % 4;
    const int byte = part < 3 ? part : size - left + part - 3;
    if (part < 3 ? part < first : part - 3 < left)
      out[r * out_row + p * out_plane + byte] = made[offset_of(r, p) + from + byte];
  }
}

template <typename Layout, int Planes>
__device__ __forceinline__ void store_runs(uint8* out, int64 out_row, int64 out_plane,
                                           const uint8* made, int from, int size, int rows,
                                           int lane) {
  if (((out_row | out_plane) & 3) == 0) {
    store_rows<Layout, Planes, true>(out, out_row, out_plane, made, from, size, rows, lane);
  } else {
    store_rows<Layout, Planes, false>(out, out_row, out_plane, made, from, size, rows, lane);
  }
}

template <typename Out, int Channels, int OutChannels, bool Normalized, typename Chain>
__global__ void __launch_bounds__(THREADS, 4)
warp_bytes_placed(const Sample* __restrict__ samples, uint32 strips_per_sample, bool clamp,
                  const uint8* numbers, uint32 pitch) {
  using Layout = Made<Out, OutChannels>;
  __shared__ float at[2][TILE_ROWS][RUNS + 1];
  __shared__ Box boxes[TILES];
  __shared__ __align__(16) uint32 pixels[BOX * BOX];
  DYNAMIC_SHARED(uint8, memory);

  const uint32 number = blockIdx.x / strips_per_sample;
  const uint32 strip = blockIdx.x - number * strips_per_sample;
  const Sample& sample = samples[number];
  const uint32 across = sample.tiles_across, strip_row = strip / across;
  const int first_row = strip_row * TILE_ROWS;  // of the window
  if (first_row >= sample.size[1]) return;  // of a smaller sample than others
  const int begin = sample.first[2], run = begin / RESTART + int(strip - strip_row * across);
  const int rows = min(TILE_ROWS, sample.size[1] - first_row);
  // What is wanted of the strip's columns.
  const int low = max(begin - run * RESTART, 0);
  const int high = min(RESTART, begin + sample.size[2] - run * RESTART);
  const int runs = (high + RUN - 1) / RUN, thread = threadIdx.x;

  if (thread < 2 * TILE_ROWS) {
    const int axis = thread / TILE_ROWS, row = thread % TILE_ROWS;
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
  const int lane = thread % 32, tile_run = lane % TILE_RUNS, warp_row = thread / 32 * WARP_ROWS;
  const int row = warp_row + lane / TILE_RUNS;
  const Chain chain(numbers + uint64(number) * pitch);
  const Finish finish{sample.table, OutChannels};
  const int64 out_pixel = sample.out_pixel, out_row = sample.out_row * int64(sizeof(Out));
  const int64 out_plane = sample.out_channel * int64(sizeof(Out));
  const bool mirrored = out_pixel < 0, planar = out_pixel == 1 || out_pixel == -1;
  const int pixel_bytes = (planar ? 1 : OutChannels) * int(sizeof(Out));
  uint8* const made = memory + Layout::FRONT;
  Out* const own = reinterpret_cast<Out*>(made + row * Layout::PITCH);
  [[maybe_unused]] float means[OutChannels], factors[OutChannels];
  if constexpr (Normalized) {
#pragma unroll
    for (int c = 0; c < OutChannels; c++) means[c] = finish.mean(c), factors[c] = finish.factor(c);
  }
  // Channel `c` of a pixel, of which `value` is the one that the warp gives.
  const auto last = [&](uint8 value, int c) -> Out {
    if constexpr (Normalized) {
      return Finish::normalized<Out>(as_float(chain(value)), means[c], factors[c]);
    } else {
      return chain(value);
    }
  };
  // The same of what `blend_four` gives, which is a float already.
  const auto last_of = [&](uint32 bits, int c) -> Out {
    if constexpr (Normalized && same<Chain, Keep<uint8>>) {
      return Finish::normalized<Out>(__uint_as_float(bits) - 8388608.0f, means[c], factors[c]);
    } else {
      return last(static_cast<uint8>(bits), c);
    }
  };
  for (int first = low / TILE_WIDTH * TILE_WIDTH; first < high; first += TILE_WIDTH) {
    const Box box = boxes[first / TILE_WIDTH];
    if (box.columns) load_box<Channels>(source, box, clamp, fill, pixels);
    __syncthreads();
    const int place = first / RUN + tile_run;
    if (row < rows && place >= low / RUN && place < runs) {
      float x = at[0][row][place], y = at[1][row][place];
      if (box.columns) {
#pragma unroll
        for (int four = 0; four < RUN; four += 4) {
          uint32 bits[4 * Channels];
          blend_four<Channels>(pixels, box, x, y, step_x, step_y, bits);
          const int column = tile_run * RUN + four;
          const int from = mirrored ? TILE_WIDTH - 4 - column : column;
          if (mirrored) {
#pragma unroll
            for (int c = 0; c < Channels; c++) {
              const uint32 a = bits[c], b = bits[Channels + c];
              bits[c] = bits[3 * Channels + c], bits[3 * Channels + c] = a;
              bits[Channels + c] = bits[2 * Channels + c], bits[2 * Channels + c] = b;
            }
          }
          if (planar) {
#pragma unroll
            for (int c = 0; c < OutChannels; c++) {
              Out values[4];
#pragma unroll
              for (int k = 0; k < 4; k++)
                values[k] = c < Channels ? last_of(bits[k * Channels + c], c)
                                         : finish.outside<Out>(c);
              put<true>(own + c * TILE_WIDTH + from, values);
            }
          } else {
            Out values[4 * OutChannels];
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
              for (int c = 0; c < OutChannels; c++)
                values[k * OutChannels + c] = c < Channels ? last_of(bits[k * Channels + c], c)
                                                           : finish.outside<Out>(c);
            put<false>(own + from * OutChannels, values);
          }
        }
      } else {
        for (int k = 0; k < RUN; k++) {
          const float point[2] = {x, y};
          const int column = tile_run * RUN + k;
          const int pixel = mirrored ? TILE_WIDTH - 1 - column : column;
          Out* const to = own + (planar ? pixel : pixel * OutChannels);
          const int step = planar ? TILE_WIDTH : 1;
          interpolate<2, Channels, uint8>(
              source, point, clamp, static_cast<float>(sample.fill),
              [&](int c, uint8 value) { to[c * step] = last(value, c); });
          for (int c = Channels; c < OutChannels; c++) to[c * step] = finish.outside<Out>(c);
          x += step_x, y += step_y;
        }
      }
    }
    __syncwarp();
    const int skipped = max(low - first, 0), count = min(TILE_WIDTH, high - first) - skipped;
    const int column = run * RESTART + first + skipped - begin + (mirrored ? count - 1 : 0);
    const int from = (mirrored ? TILE_WIDTH - skipped - count : skipped) * pixel_bytes;
    uint8* const out = reinterpret_cast<uint8*>(reinterpret_cast<Out*>(sample.out) +
                                                column * out_pixel) +
                       (first_row + warp_row) * out_row;
    const uint8* const rows_made = made + warp_row * Layout::PITCH;
    const int size = count * pixel_bytes, own_rows = min(WARP_ROWS, rows - warp_row);
    if (planar) {
      store_runs<Layout, OutChannels>(out, out_row, out_plane, rows_made, from, size, own_rows, lane);
    } else {
      store_runs<Layout, 1>(out, out_row, 0, rows_made, from, size, own_rows, lane);
    }
    __syncthreads();  // the next tile needs the memory
  }
}

// Affine warps of images of bytes, interpolated: the values of warp.cu by fewer instructions.
//
// A block makes a strip of rows, as wide as coordinates go without a fresh start. A few threads
// advance them element by element, as on the CPU, and keep every eighth. Then, tile by tile, the
// box around all that the tile needs of the input goes to shared memory, a word for a pixel, with
// what is beyond the border put in; each thread looks up 8 neighbouring pixels and packs them, and
// rows of words are stored. Tiles whose box is too large for that, as the map shrinks images, get
// their pixels from the input one by one.
#include "packed_rows.cuh"
#include "warp_sampling.cuh"
#include "warp_steps.cuh"

constexpr int WARPS = 8, THREADS = 32 * WARPS, ROWS = 32, RUN = 8, TILE_WIDTH = 64;
constexpr int RUNS = RESTART / RUN, TILE_RUNS = TILE_WIDTH / RUN, TILES = RESTART / TILE_WIDTH;
constexpr int WARP_ROWS = ROWS / WARPS;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int BLOCKS = 4;  // that share a multiprocessor
#else
constexpr int BLOCKS = 5;
#endif
static_assert(TILE_RUNS * WARP_ROWS == 32, "a thread of a warp has a run of its tile's rows");
// The box of a turned tile: 64 by 31 steps are 71.2 long, and two pixels more are neighbours. Rows
// are 10 banks apart, so that runs of four rows meet in pairs at most.
constexpr int BOX = 74;
static_assert(BOX % 2 == 0, "pixels are stored by twos");
// Sums with it are whole: floors of numbers between -2**22 and 2**22, in the last bits.
constexpr float WHOLE = 12582912.0f, LARGEST = 4194303.0f;

struct Box {
  int left, top, columns, rows;  // of neighbours of the tile; no columns if it is too large
  uint32 corner;                 // what has to be taken off the last bits of floors
  // The bits of 2**23. What comes from memory is in a register; as a constant it would have to be
  // put into one for each of the instructions, which have room for one constant and need another.
  uint32 exponent;
};

// Of points from the corners of a tile: coordinates only grow, or only fall, along rows and along
// columns, so that there are no others beyond.
__device__ __forceinline__ Box box_of(const float (&at)[2][ROWS][RUNS + 1], int last_row,
                                      int first_run, int end_run) {
  int low[2], count[2];
  bool fits = true;
#pragma unroll
  for (int axis = 0; axis < 2; axis++) {
    const float a = at[axis][0][first_run], b = at[axis][0][end_run];
    const float c = at[axis][last_row][first_run], d = at[axis][last_row][end_run];
    const float least = fminf(fminf(a, b), fminf(c, d)), most = fmaxf(fmaxf(a, b), fmaxf(c, d));
    fits = fits && a == a && b == b && c == c && d == d && least > -LARGEST && most < LARGEST;
    low[axis] = fits ? static_cast<int>(floorf(least - 0.5f)) : 0;
    count[axis] = fits ? static_cast<int>(floorf(most - 0.5f)) - low[axis] + 2 : 0;
  }
  fits = fits && count[0] <= BOX && count[1] <= BOX;
  const uint32 whole = 0x4b400000u, exponent = fits ? 0x4b000000u : 0;
  const uint32 corner = (whole + low[1]) * BOX + whole + low[0];
  return {low[0], low[1], fits ? count[0] : 0, count[1], corner, exponent};
}

// The words around four neighbouring pixels.
template <int Channels> struct Words {
  uint32 words[Channels + 1];

  __device__ __forceinline__ void load(const uint8* at) {
    const uint32* const from =
        reinterpret_cast<const uint32*>(reinterpret_cast<uint64>(at) & ~uint64(3));
#pragma unroll
    for (int i = 0; i <= Channels; i++) words[i] = __ldg(from + i);
  }

  // The pixels, which begin at `at`: a word each, of which the first bytes are its channels.
  __device__ __forceinline__ void split(const uint8* at, uint32 (&pixels)[4]) {
    const uint32 shift = (static_cast<uint32>(reinterpret_cast<uint64>(at)) & 3) * 8;
#pragma unroll
    for (int i = 0; i < Channels; i++) {
      words[i] = __funnelshift_r(words[i], words[i + 1], shift);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int word = i * Channels / 4, first = i * Channels % 4 * 8;
      const bool within = first + 8 * Channels <= 32;
      pixels[i] = within ? words[word] >> first
                         : __funnelshift_r(words[word], words[word + 1], first);
    }
  }
};

// Four neighbours of a row, all or some of which may be outside of the image, which is at least so
// wide.
template <int Channels>
__device__ __forceinline__ void load_at_border(const Source<uint8>& source, int x, int y,
                                               bool clamp, uint32 fill, uint32 (&four)[4]) {
  const int row = min(max(y, 0), source.height - 1), first = min(max(x, 0), source.width - 4);
  const int pitch = source.width * Channels, offset = row * pitch + first * Channels;
  const uint8* const at = source.elements + offset;
  const bool has_row = clamp || row == y;
  if (has_row) {
    if (offset >= 4 && offset + 4 * (Channels + 1) <= source.height * pitch) {
      Words<Channels> words;
      words.load(at);
      words.split(at, four);
    } else {
      for (int i = 0; i < 4; i++) {
        four[i] = 0;
        for (int c = 0; c < Channels; c++) {
          four[i] |= uint32(__ldg(at + i * Channels + c)) << (8 * c);
        }
      }
    }
    if (first == x) return;
  }
  const uint32 a = four[0], b = four[1], c = four[2], d = four[3];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int place = x + i - first;
    four[i] = place <= 0 ? a : place == 1 ? b : place == 2 ? c : d;
    if (!clamp && (!has_row || place < 0 || place > 3)) four[i] = fill;
  }
}

__device__ __forceinline__ void put_four(uint32* to, bool both, const uint32 (&four)[4]) {
  *reinterpret_cast<uint2*>(to) = make_uint2(four[0], four[1]);
  if (both) *reinterpret_cast<uint2*>(to + 2) = make_uint2(four[2], four[3]);
}

template <int Channels>
__device__ __forceinline__ void load_box(const Source<uint8>& source, const Box& box, bool clamp,
                                         uint32 fill, uint32* pixels) {
  constexpr int quads = (BOX + 3) / 4, step = THREADS / quads;
  const int column = int(threadIdx.x) % quads * 4;
  int row = int(threadIdx.x) / quads;
  if (row >= step || column >= box.columns) return;
  const int x = box.left + column, pitch = source.width * Channels;
  const bool both = column + 4 <= BOX;  // rows hold no whole number of fours
  uint32* to = pixels + row * BOX + column;
  uint32 one[4], other[4];
  if (box.left >= 0 && box.left + quads * 4 <= source.width && box.top > 0 &&
      box.top + box.rows < source.height) {
    // All words around these pixels are in the image. Two rows at a time: the words of both are on
    // the way before one is needed.
    const uint8* at = source.elements + ((box.top + row) * pitch + x * Channels);
    Words<Channels> words, others;
#pragma unroll 1
    for (; row < box.rows; row += 2 * step) {
      words.load(at);
      const bool two = row + step < box.rows;
      if (two) others.load(at + step * pitch);
      words.split(at, one);
      put_four(to, both, one);
      if (two) {
        others.split(at + step * pitch, other);
        put_four(to + step * BOX, both, other);
      }
      at += 2 * step * pitch;
      to += 2 * step * BOX;
    }
    return;
  }
#pragma unroll 1
  for (; row < box.rows; row += step, to += step * BOX) {
    load_at_border<Channels>(source, x, box.top + row, clamp, fill, one);
    put_four(to, both, one);
  }
}

// The product of a byte of `word` and a weight, of which `offset` is -2**23 times.
__device__ __forceinline__ float weighed(uint32 word, int byte, uint32 exponent, float weight,
                                         float offset) {
  // The bits of 2**23 + byte. The product is rounded once, after the offset.
  return __fmaf_rn(__uint_as_float(__byte_perm(word, exponent, 0x7440 | byte)), weight, offset);
}

// The pixel at a point, channel by channel in the last bytes of `blended`.
template <int Channels>
__device__ __forceinline__ void blend_in_box(const uint32* pixels, const Box& box, float x, float y,
                                             uint32* blended) {
  x -= 0.5f, y -= 0.5f;
  const float whole_x = __fadd_rd(x, WHOLE), whole_y = __fadd_rd(y, WHOLE);
  const float right = x - (whole_x - WHOLE), low = y - (whole_y - WHOLE), left = 1.0f - right;
  const float right_offset = -8388608.0f * right, left_offset = -8388608.0f * left;
  const uint32* const at =
      pixels + (__float_as_uint(whole_y) * BOX + __float_as_uint(whole_x) - box.corner);
  const uint32 top_left = at[0], top_right = at[1], low_left = at[BOX], low_right = at[BOX + 1];
#pragma unroll
  for (int c = 0; c < Channels; c++) {
    const float a = weighed(top_left, c, box.exponent, left, left_offset) +
                    weighed(top_right, c, box.exponent, right, right_offset);
    const float b = weighed(low_left, c, box.exponent, left, left_offset) +
                    weighed(low_right, c, box.exponent, right, right_offset);
    const float value = a + (b - a) * low;
    // A mean of bytes is never out of range; rounded, halves up, it is in the last bits.
    blended[c] = __float_as_uint(__fadd_rz(value + 0.49999997f, 8388608.0f));
  }
}

template <int Channels>
__global__ void __launch_bounds__(THREADS, BLOCKS)
warp_bytes(const Sample* __restrict__ samples, uint32 strips_per_sample, bool clamp) {
  __shared__ float at[2][ROWS][RUNS + 1];
  __shared__ Box boxes[TILES];
  __shared__ __align__(16) uint32 pixels[BOX * BOX];
  constexpr int tile_bytes = TILE_WIDTH * Channels, staged_pitch = tile_bytes / 4 + 1;
  __shared__ uint32 staged[ROWS][staged_pitch];

  const uint32 number = blockIdx.x / strips_per_sample;
  const uint32 strip = blockIdx.x - number * strips_per_sample;
  const Sample& sample = samples[number];
  const uint32 across = sample.tiles_across, strip_row = strip / across;
  const int first_row = strip_row * ROWS, run = strip - strip_row * across;
  const int height = sample.canvas[1], width = sample.canvas[2];
  if (first_row >= height) return;  // of a smaller sample than others
  const int rows = min(ROWS, height - first_row), count = min(RESTART, width - run * RESTART);
  const int runs = (count + RUN - 1) / RUN, thread = threadIdx.x;

  if (thread < 2 * ROWS) {
    const int axis = thread / ROWS, row = thread % ROWS;
    const float step = sample.matrix[axis][0];
    float value = start_of_run<2>(sample, axis, first_row + row, run);
    for (int i = 0; i < runs; i++) {
      at[axis][row][i] = value;
#pragma unroll
      for (int k = 0; k < RUN; k++) value += step;
    }
    at[axis][row][runs] = value;
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
      float x = at[0][row][first / RUN + tile_run], y = at[1][row][first / RUN + tile_run];
      uint32* const to = staged[row] + tile_run * (RUN * Channels / 4);
      if (box.columns) {
#pragma unroll
        for (int four = 0; four < RUN; four += 4) {
          uint32 bytes[4 * Channels];
#pragma unroll
          for (int k = 0; k < 4; k++) {
            blend_in_box<Channels>(pixels, box, x, y, bytes + k * Channels);
            x += step_x, y += step_y;
          }
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
          interpolate<2, Channels>(source, point, clamp, static_cast<float>(sample.fill), pixel);
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

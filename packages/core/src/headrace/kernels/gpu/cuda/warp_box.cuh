// How a block makes strips of a warped image of bytes, interpolated.
//
// A strip is as wide as coordinates go without a fresh start. A few threads advance them element by
// element, as on the CPU, and keep every eighth. Then, tile by tile, the box around all that the
// tile needs of the input goes to shared memory, a word for a pixel, with what is beyond the border
// put in; each thread looks up 8 neighbouring pixels and packs them. Tiles whose box is too large
// for that, as the map shrinks images, get their pixels from the input one by one.
#pragma once
#include "warp_sampling.cuh"
#include "warp_steps.cuh"

#include "records:THREADS"
#include "warp:TILE_ROWS"
#include "warp:TILE_WIDTH"

constexpr int WARPS = THREADS / 32, RUN = 8;
constexpr int RUNS = RESTART / RUN, TILE_RUNS = TILE_WIDTH / RUN, TILES = RESTART / TILE_WIDTH;
constexpr int WARP_ROWS = TILE_ROWS / WARPS;
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
__device__ __forceinline__ Box box_of(const float (&at)[2][TILE_ROWS][RUNS + 1], int last_row,
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

// Coordinates of row number `line` of the canvas, of the first pixel of each of `runs` runs and of
// the one after them.
__device__ __forceinline__ void locate_runs(const Sample& sample, int axis, int line, int strip,
                                            int runs, float (&at)[RUNS + 1]) {
  const float step = sample.matrix[axis][0];
  float value = start_of_run<2>(sample, axis, line, strip);
  for (int i = 0; i < runs; i++) {
    at[i] = value;
#pragma unroll
    for (int k = 0; k < RUN; k++) value += step;
  }
  at[runs] = value;
}

// Four pixels from a point on, which moves on: a word for each channel, of which the last byte counts.
// As a float, it is 2**23 more.
template <int Channels>
__device__ __forceinline__ void blend_four(const uint32* pixels, const Box& box, float& x, float& y,
                                           float step_x, float step_y,
                                           uint32 (&bits)[4 * Channels]) {
#pragma unroll
  for (int k = 0; k < 4; k++) {
    blend_in_box<Channels>(pixels, box, x, y, bits + k * Channels);
    x += step_x, y += step_y;
  }
}

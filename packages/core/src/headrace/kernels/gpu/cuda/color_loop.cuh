// The loop around generated functions of pixels; ../color_text.py writes the struct `Body`.
#pragma once
#include "color_functions.cuh"
#include "staging.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "color:ColorPlace"

template <typename Body> struct ColorSample : ColorPlace {
  typename Body::Numbers numbers;
};

// How work is shared out. A thread makes as many neighbours as fill 16 bytes with a channel of the
// larger type; what those of a warp read and write are runs of whole accesses of 16 bytes.
template <typename Body> struct ColorTile {
  using In = typename Body::In;
  using Out = typename Body::Out;
  static constexpr int CIN = Body::in_channels, COUT = Body::out_channels;
  static constexpr int WARPS = THREADS / 32;
  static constexpr int EACH = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  static constexpr int CHUNK = 32 * EACH;  // pixels of a warp
  static constexpr int PIXELS = WARPS * CHUNK;
  static constexpr int READ = CIN * int(sizeof(In));  // bytes of a pixel
  static constexpr int WRITTEN = COUT * int(sizeof(Out));
  static constexpr int BYTES = CHUNK * (READ > WRITTEN ? READ : WRITTEN);
};

// Has a warp's pixels copied to shared memory, if all are there and lie as accesses of 16 bytes do.
template <typename Body>
__device__ __forceinline__ bool fetch(const ColorSample<Body>& s, int64 first, uint8* to, int lane) {
  using Tile = ColorTile<Body>;
  constexpr int ACCESSES = Tile::CHUNK * Tile::READ / 16;
  const char* const from = s.source + first * Tile::READ;
  const bool direct = first >= 0 && first + Tile::CHUNK <= s.pixels &&
                      reinterpret_cast<uint64>(from) % 16 == 0;
  if (direct) {
#pragma unroll
    for (int k = lane; k < ACCESSES; k += 32)
      copy_async<16>(to + 16 * k, reinterpret_cast<const uint8*>(from) + 16 * k);
  }
  return direct;
}

// The pixels that `fetch` has brought, each thread its own neighbours; results take their place.
template <typename Body>
__device__ __forceinline__ void change_fetched(const typename Body::Numbers& numbers, uint8* mine,
                                               int lane) {
  using Tile = ColorTile<Body>;
  using In = typename Body::In;
  constexpr int EACH = Tile::EACH, CIN = Tile::CIN;
  constexpr int WORDS = EACH * Tile::READ / 4, RESULTS = EACH * Tile::WRITTEN / 4;
  uint32 words[WORDS], results[RESULTS];
#pragma unroll
  for (int k = 0; k < WORDS; k++)
    words[k] = reinterpret_cast<const uint32*>(mine)[lane * WORDS + k];
  typename Body::Out made[EACH][Tile::COUT];
  if constexpr (same<In, uint8>) {
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      PackedByte given[CIN];
#pragma unroll
      for (int c = 0; c < CIN; c++)
        given[c] = {words[(k * CIN + c) / 4], uint32(k * CIN + c) % 4};
      Body::pixel(numbers, given, made[k]);
    }
  } else {
    In given[EACH][CIN];
    memcpy(given, words, sizeof(given));
#pragma unroll
    for (int k = 0; k < EACH; k++) Body::pixel(numbers, given[k], made[k]);
  }
  memcpy(results, made, sizeof(made));
  __syncwarp();
#pragma unroll
  for (int k = 0; k < RESULTS; k++)
    reinterpret_cast<uint32*>(mine)[lane * RESULTS + k] = results[k];
}

// The same for pixels that lie anywhere: neighbouring threads take neighbours, a few at a time. View:
// the source is not one run of memory.
template <typename Body, bool View>
__device__ __forceinline__ void change_scattered(const ColorSample<Body>& s,
                                                 const typename Body::Numbers& numbers, int64 first,
                                                 uint8* mine, int lane) {
  using Tile = ColorTile<Body>;
  using In = typename Body::In;
  constexpr int EACH = Tile::EACH, CIN = Tile::CIN, COUT = Tile::COUT;
  constexpr int TOGETHER = EACH < 4 ? EACH : 4;
  const int channel = View ? s.channel : int(sizeof(In));
  const int64 step = View ? s.pixel : Tile::READ;
  const int begin = first < 0 ? int(-first) : 0;  // pixels of the warp that are in the sample
  const int end = int(min(int64(Tile::CHUNK), s.pixels - first));
  // From the first one of this thread's that is not in front of it.
  int at = lane;
  while (at < begin) at += 32;
  int64 x = first + at;
  int y = 0;
  const char* place = s.source + x * step;
  if (View) {
    const auto line = divided(uint64(x), uint64(s.width));
    const auto frame = divided(line.whole, uint64(s.height));
    x = line.rest, y = int(frame.rest);
    place = s.source + frame.whole * s.outer + y * s.row + x * step;
  }
  const int64 next_row = s.row - s.width * step, next_frame = s.outer - s.height * s.row;
#pragma unroll 1
  while (at < end) {
    In given[TOGETHER][CIN];
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      if (at + 32 * k < end) {
#pragma unroll
        for (int c = 0; c < CIN; c++)
          given[k][c] = element_of(reinterpret_cast<const In*>(place + c * channel));
      }
      x += 32;
      place += 32 * step;
      while (View && x >= s.width) {
        x -= s.width;
        place += next_row;
        if (++y == s.height) {
          y = 0;
          place += next_frame;
        }
      }
    }
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      if (at + 32 * k < end) {
        typename Body::Out made[COUT];
        Body::pixel(numbers, given[k], made);
        auto* const target = reinterpret_cast<typename Body::Out*>(mine) + (at + 32 * k) * COUT;
#pragma unroll
        for (int c = 0; c < COUT; c++) target[c] = made[c];
      }
    }
    at += 32 * TOGETHER;
  }
}

// `change_scattered` of views, for what rarely needs it: it takes no registers of the caller's.
template <typename Body>
__device__ __noinline__ void change_any(const ColorSample<Body>& s, int64 first, uint8* mine,
                                        int lane) {
  const typename Body::Numbers numbers = s.numbers;
  change_scattered<Body, true>(s, numbers, first, mine, lane);
}

// Four bytes from where there need not be a word; two aligned words have them.
__device__ __forceinline__ uint32 word_from(uint32 low, uint32 high, uint32 place) {
  return __funnelshift_r(low, high, 8 * place);
}

// Four pixels of three bytes in the opposite order.
__device__ __forceinline__ void reverse_pixels(uint32 (&words)[3]) {
  const uint32 a = words[0], b = words[1], c = words[2];
  words[0] = __byte_perm(b, c, 0x2765u);
  words[1] = __byte_perm(__byte_perm(b, c, 0x0043u), __byte_perm(a, b, 0x4300u), 0x7610u);
  words[2] = __byte_perm(a, b, 0x2105u);
}

// `change_scattered` for views of pixels of three bytes, which may run backwards: a thread takes four
// neighbours, out of the words that they are in. Words beyond the sample are not touched.
template <typename Body>
__device__ __forceinline__ void change_bytes(const ColorSample<Body>& s,
                                             const typename Body::Numbers& numbers, int64 first,
                                             uint8* mine, int lane) {
  using Tile = ColorTile<Body>;
  using Out = typename Body::Out;
  constexpr int GROUPS = Tile::CHUNK / 4, COUT = Tile::COUT;
  constexpr int TOGETHER = GROUPS < 64 ? 1 : 2, RESULTS = COUT * int(sizeof(Out));
  const int step = s.pixel, width = s.width, height = s.height;
  const int64 next_frame = s.outer - height * s.row;
  // Where this thread's first pixel is; those in front of the sample are in front of its first row.
  int64 at = first + 4 * lane;
  int x = at < 0 ? int(at) : 0, y = 0;
  const char* line = s.source;
  if (at > 0) {
    const auto found = divided(uint64(at), uint64(width));
    const auto frame = divided(found.whole, uint64(height));
    x = int(found.rest), y = int(frame.rest);
    line += frame.whole * s.outer + y * s.row;
  }
#pragma unroll 1
  for (int group = lane; group < GROUPS; group += 32 * TOGETHER) {
    uint32 words[TOGETHER][3];
#pragma unroll
    for (int t = 0; t < TOGETHER; t++, at += 128) {
      const char* const begin = line + int64(x) * step - (step < 0 ? 9 : 0);
      const uint32 place = uint32(reinterpret_cast<uint64>(begin)) & 3;
      const uint32* const word = reinterpret_cast<const uint32*>(begin - place);
      const char* const end = reinterpret_cast<const char*>(word + (place ? 4 : 3));
      if (x >= 0 && x + 4 <= width && begin - place >= s.low && end <= s.high) {
        const uint32 given[3] = {__ldg(word), __ldg(word + 1), __ldg(word + 2)};
        const uint32 last = place ? __ldg(word + 3) : 0;
        words[t][0] = word_from(given[0], given[1], place);
        words[t][1] = word_from(given[1], given[2], place);
        words[t][2] = word_from(given[2], last, place);
        if (step < 0) reverse_pixels(words[t]);
      } else {
        // Pixel by pixel, over the end of a row.
        uint8 bytes[12];
        int column = x, row = y;
        const char* from = line;
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const bool there = at + k >= 0 && at + k < s.pixels;
          const uint8* const pixel = reinterpret_cast<const uint8*>(from + int64(column) * step);
#pragma unroll
          for (int c = 0; c < 3; c++) bytes[3 * k + c] = there ? __ldg(pixel + c) : 0;
          if (++column == width) {
            column = 0;
            from += s.row;
            if (++row == height) {
              row = 0;
              from += next_frame;
            }
          }
        }
        memcpy(words[t], bytes, sizeof(bytes));
      }
      x += 128;
      while (x >= width) {
        x -= width;
        line += s.row;
        if (++y == height) {
          y = 0;
          line += next_frame;
        }
      }
    }
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) {
      Out made[4][COUT];
      uint32 results[RESULTS];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        PackedByte given[3];
#pragma unroll
        for (int c = 0; c < 3; c++)
          given[c] = {words[t][(3 * k + c) / 4], uint32(3 * k + c) % 4};
        Body::pixel(numbers, given, made[k]);
      }
      memcpy(results, made, sizeof(made));
      uint32* const target = reinterpret_cast<uint32*>(mine) + (group + 32 * t) * RESULTS;
#pragma unroll
      for (int k = 0; k < RESULTS; k++) target[k] = results[k];
    }
  }
}

// Writes a warp's results.
template <typename Body>
__device__ __forceinline__ void leave(const ColorSample<Body>& s, int64 first, const uint8* mine,
                                      int lane) {
  using Tile = ColorTile<Body>;
  using Out = typename Body::Out;
  constexpr int ACCESSES = Tile::CHUNK * Tile::WRITTEN / 16;
  char* const to = s.out + first * Tile::WRITTEN;
  if (first >= 0 && first + Tile::CHUNK <= s.pixels && reinterpret_cast<uint64>(to) % 16 == 0) {
#pragma unroll
    for (int k = lane; k < ACCESSES; k += 32)
      __stwb(reinterpret_cast<uint4*>(to) + k, reinterpret_cast<const uint4*>(mine)[k]);
    return;
  }
  const int low = first < 0 ? int(-first) * Tile::COUT : 0;
  const int high = int(min(int64(Tile::CHUNK), s.pixels - first)) * Tile::COUT;
  for (int k = low + lane; k < high; k += 32)
    reinterpret_cast<Out*>(to)[k] = reinterpret_cast<const Out*>(mine)[k];
}

// A block makes some tiles, one after the other, and each of its warps a part of each: while one part
// is worked on, the next is copied to shared memory.
template <typename Body, bool View>
__global__ void __launch_bounds__(THREADS, 4)
color(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  using Tile = ColorTile<Body>;
  __shared__ __align__(16) uint8 memory[View ? 1 : 2][Tile::WARPS * Tile::BYTES];
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const auto& s = *reinterpret_cast<const ColorSample<Body>*>(share.record);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int turns = s.turns;
  int64 first = (int64(share.block) * turns) * Tile::PIXELS - s.shift + warp * Tile::CHUNK;
  if constexpr (View) {
    uint8* const mine = memory[0] + warp * Tile::BYTES;
    const bool bytes = Tile::READ == 3 && s.channel == 1 && (s.pixel == 3 || s.pixel == -3);
    const typename Body::Numbers numbers = s.numbers;
#pragma unroll 1
    for (int turn = 0; turn < turns && first < s.pixels; turn++, first += Tile::PIXELS) {
      if (first + Tile::CHUNK <= 0) continue;
      if constexpr (Tile::READ == 3) {
        if (bytes) change_bytes<Body>(s, numbers, first, mine, lane);
      }
      if (!bytes) change_any<Body>(s, first, mine, lane);
      __syncwarp();
      leave<Body>(s, first, mine, lane);
      __syncwarp();
    }
  } else {
    const typename Body::Numbers numbers = s.numbers;
    bool fetched = fetch(s, first, memory[0] + warp * Tile::BYTES, lane);
    fence_copies();
#pragma unroll 1
    for (int turn = 0; turn < turns && first < s.pixels; turn++, first += Tile::PIXELS) {
      uint8* const mine = memory[turn & 1] + warp * Tile::BYTES;
      bool next = false;
      if (turn + 1 < turns) {
        uint8* const other = memory[~turn & 1] + warp * Tile::BYTES;
        next = fetch(s, first + Tile::PIXELS, other, lane);
      }
      fence_copies();
      if (first + Tile::CHUNK > 0) {
        if (fetched) {
          await_copies_but<1>();
          __syncwarp();
          change_fetched<Body>(numbers, mine, lane);
        } else {
          change_scattered<Body, false>(s, numbers, first, mine, lane);
        }
        __syncwarp();
        leave<Body>(s, first, mine, lane);
        __syncwarp();
      }
      fetched = next;
    }
  }
}

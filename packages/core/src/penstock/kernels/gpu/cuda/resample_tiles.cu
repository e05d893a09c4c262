// Separable resampling of tiles: each source pixel is read from memory about once.
//
// A block makes ROWS rows of `tile_pixels` columns, in the CPU's order of arithmetic: first along
// the columns (vertically), from the source to shared memory, for as many source columns at a time
// as fit there; then along the rows, to sums in registers. The source is copied to shared memory,
// too, before, if it fits: it does unless images become much smaller. At last the tile is rounded, normalised,
// converted, and turned round in shared memory, so that it leaves row by row.
//
// The strides in shared memory are such that no two lanes of a warp meet in a bank: a warp writes
// four rows of sums at a time, and reads one column of all rows.
#include "resample.cuh"
#include "staging.cuh"

constexpr int ROWS = 32, WARPS = BLOCK / 32, BAND = 256, PITCH = BAND + 1;
constexpr int BAND_BYTES = ROWS * PITCH * 4;
constexpr int STAGE_BYTES = 20480;
// Behind what is staged, as much is read without being used.
constexpr int STAGE_MARGIN = 512;

// Units of a tile: pixels of G channels; where G is 1, elements.
template <int G> constexpr int TILE_UNITS = G == 1 ? 128 : 32;

// Element `e` of a word. Integers become the last bits of 2^23, which is quicker than to have them
// converted.
template <typename In> __device__ __forceinline__ float number_of(uint32 word, int e) {
  constexpr float BIAS = 8388608.0f;
  constexpr uint32 BITS = 0x4b000000u;
  if constexpr (sizeof(In) == 4) {
    return __uint_as_float(word);
  } else if constexpr (sizeof(In) == 1) {
    return __fsub_rn(__uint_as_float(__byte_perm(word, BITS, 0x7440 + e)), BIAS);
  } else if constexpr (Limits<In>::is_signed) {
    const uint32 above = __byte_perm(word ^ 0x80008000u, BITS, 0x7410 + 0x22 * e);
    return __fsub_rn(__uint_as_float(above), BIAS + 32768.0f);
  } else {
    return __fsub_rn(__uint_as_float(__byte_perm(word, BITS, 0x7410 + 0x22 * e)), BIAS);
  }
}

// Every eighth of N times 8 words of a line, from `line` on, which may begin anywhere; up to 3
// bytes in front of it and up to 4 behind the last word are read as well.
template <typename In, int N>
__device__ __forceinline__ void read_words(const char* line, uint32 (&words)[N]) {
  const uint64 address = reinterpret_cast<uint64>(line);
  const uint32* place = reinterpret_cast<const uint32*>(address & ~uint64(3));
#pragma unroll
  for (int n = 0; n < N; ++n) words[n] = __ldg(place + 8 * n);
  if constexpr (sizeof(In) < 4) {
    const uint32 shift = 8 * (uint32(address) & 3);
    if (shift) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        words[n] = __funnelshift_r(words[n], __ldg(place + 8 * n + 1), shift);
    }
  }
}

// The same near the end of a line, the last element of which is `last` bytes behind `line`: what is
// beyond is 0 and is not read.
template <typename In, int N>
__device__ __forceinline__ void read_last_words(const char* line, int last, uint32 (&words)[N]) {
  constexpr int SIZE = sizeof(In);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    words[n] = 0;
#pragma unroll
    for (int i = 0; i < 4; i += SIZE) {
      const int offset = 32 * n + i;
      if (offset > last) break;
      uint32 part;
      if constexpr (SIZE == 4) part = __ldg(reinterpret_cast<const uint32*>(line + offset));
      else if constexpr (SIZE == 2) part = __ldg(reinterpret_cast<const uint16*>(line + offset));
      else part = __ldg(reinterpret_cast<const uint8*>(line + offset));
      words[n] |= part << (8 * i);
    }
  }
}

// Which row of the tile a thread sums, vertically: eight neighbours share one, and those of a warp
// are as far apart as the banks demand.
template <typename In> __device__ __forceinline__ int row_of_thread() {
  const int warp = threadIdx.x / 32, part = threadIdx.x / 8 % 4;
  if constexpr (sizeof(In) == 1) return 4 * warp + part;
  else if constexpr (sizeof(In) == 2) return 2 * warp + part % 2 + part / 2 * 16;
  else return warp + 8 * part;
}

// Sums of N times 32 neighbouring elements of lines, four of each 32 a thread. LAST: the lines may
// end in between, `last` bytes behind the first element.
template <typename In, int N, bool LAST>
__device__ __forceinline__ void sum_lines(const char* line, int64 row, const float* weights,
                                          int taps, int last, float* sums_of_row) {
  constexpr int SIZE = sizeof(In), IN_WORD = 4 / SIZE;
  const int lane = threadIdx.x % 8;
  line += 4 * lane;
  last -= 4 * lane;
  float sums[N][4] = {};
#pragma unroll 1
  for (int k = 0; k < taps; ++k, line += row) {
    const float weight = __ldg(weights + k);
    uint32 words[N * SIZE];
    if constexpr (LAST) read_last_words<In>(line, last, words);
    else read_words<In>(line, words);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = number_of<In>(words[n * SIZE + e / IN_WORD], e % IN_WORD);
        sums[n][e] = __fmaf_rn(weight, value, sums[n][e]);
      }
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums_of_row[32 * n + IN_WORD * (8 * (e / IN_WORD) + lane) + e % IN_WORD] = sums[n][e];
}

// The same of lines in shared memory, `pitch` bytes apart; what is behind their ends becomes sums that
// nobody uses. Aligned: all begin where a word does.
template <typename In, int N, bool Aligned>
__device__ __forceinline__ void sum_staged(const uint8* line, int pitch, const float* weights,
                                           int taps, float* sums_of_row) {
  constexpr int SIZE = sizeof(In), IN_WORD = 4 / SIZE;
  const int lane = threadIdx.x % 8;
  float sums[N][4] = {};
#pragma unroll 1
  for (int k = 0; k < taps; ++k, line += pitch) {
    const float weight = __ldg(weights + k);
    const uint32 phase = Aligned ? 0 : uint32(reinterpret_cast<uint64>(line)) & 3;
    const uint32* const place = reinterpret_cast<const uint32*>(line - phase) + lane;
    uint32 words[N * SIZE];
#pragma unroll
    for (int n = 0; n < N * SIZE; ++n) words[n] = place[8 * n];
    if constexpr (SIZE < 4 && !Aligned) {
      if (phase) {
#pragma unroll
        for (int n = 0; n < N * SIZE; ++n)
          words[n] = __funnelshift_r(words[n], place[8 * n + 1], 8 * phase);
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = number_of<In>(words[n * SIZE + e / IN_WORD], e % IN_WORD);
        sums[n][e] = __fmaf_rn(weight, value, sums[n][e]);
      }
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums_of_row[32 * n + IN_WORD * (8 * (e / IN_WORD) + lane) + e % IN_WORD] = sums[n][e];
}

// Sums of the lines of a staged band, `elements` of them from the one of this lane on.
template <typename In, bool EVEN>
__device__ __forceinline__ void sum_row(const uint8* from, int pitch, const float* weights,
                                        int taps, int elements, float* to) {
  constexpr int SIZE = sizeof(In);
  int e = 0;
  if constexpr (SIZE < 4)
    for (; e + 96 < elements; e += 128)
      sum_staged<In, 4, EVEN>(from + e * SIZE, pitch, weights, taps, to + e);
  for (; e + 32 < elements; e += 64)
    sum_staged<In, 2, EVEN>(from + e * SIZE, pitch, weights, taps, to + e);
  for (; e < elements; e += 32)
    sum_staged<In, 1, EVEN>(from + e * SIZE, pitch, weights, taps, to + e);
}

// Write a tile that lies in shared memory, in runs of `length` elements, to where it belongs.
template <typename Out>
__device__ __forceinline__ void leave(const Out* staged, int pitch, int plane, int rows, int planes,
                                      int length, Out* out, int64 out_row, int64 out_plane) {
  constexpr int IN_WORD = 4 / int(sizeof(Out));
  const uint64 places = reinterpret_cast<uint64>(out) | uint64(out_row) * sizeof(Out) |
                        (planes > 1 ? uint64(out_plane) * sizeof(Out) : 0);
  const int words = places % 4 == 0 ? length / IN_WORD : 0;
  const int accesses = words ? words + length % IN_WORD : length;
  // As many lanes for a run as it keeps busy, a power of two.
  const int bits = accesses <= 4 ? 2 : accesses <= 8 ? 3 : accesses <= 16 ? 4 : 5;
  const int lane = threadIdx.x & ((1 << bits) - 1);
  for (int run = threadIdx.x >> bits; run < planes * ROWS; run += BLOCK >> bits) {
    const int y = run % ROWS, p = run / ROWS;
    if (y >= rows) continue;
    const Out* source = staged + y * pitch + p * plane;
    Out* target = out + y * out_row + p * out_plane;
    for (int w = lane; w < words; w += 1 << bits)
      reinterpret_cast<uint32*>(target)[w] = reinterpret_cast<const uint32*>(source)[w];
    for (int e = words * IN_WORD + lane; e < length; e += 1 << bits) target[e] = source[e];
  }
}

// What a block makes: pixels and rows of the output, from source columns `begin` to `end` and `lines`
// source rows from `top` on.
struct Work {
  uint64 frame_at;
  uint64 low, high;  // the memory of the frame that is known to be there
  int64 out_at;      // elements
  int tile_x, tile_y, pixels, rows;
  int begin, end, top, lines;
  int band_pixels;   // source columns at a time
  int staged_pitch;  // of lines in shared memory; 0 where they do not fit
};

__device__ __forceinline__ Work work_of(const ResampledSample& s, uint32 block, int parts,
                                        int itemsize) {
  Work work;
  const uint32 across = (s.width + s.tile_pixels - 1) / s.tile_pixels;
  const uint32 down = (s.height + ROWS - 1) / ROWS;
  const uint32 line_of_tiles = block / across, frame = line_of_tiles / down;
  work.tile_x = int(block - line_of_tiles * across) * s.tile_pixels;
  work.tile_y = int(line_of_tiles - frame * down) * ROWS;
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  work.frame_at = reinterpret_cast<uint64>(s.source + outer * s.outer + inner * s.inner);
  work.out_at = outer * s.out_outer + inner * s.out_inner + work.tile_y * s.out_row +
                work.tile_x * s.out_pixel;
  work.pixels = min(s.tile_pixels, s.width - work.tile_x);
  work.rows = min(ROWS, s.height - work.tile_y);
  const int* const columns = s.column_first + work.tile_x;
  const int one_end = __ldg(columns), other_end = __ldg(columns + work.pixels - 1);
  work.begin = min(one_end, other_end);
  work.end = max(one_end, other_end) + s.column_taps;
  const int* const lines = s.row_first + work.tile_y;
  const int one_line = __ldg(lines), other_line = __ldg(lines + work.rows - 1);
  work.top = min(one_line, other_line);
  work.lines = max(one_line, other_line) + s.row_taps - work.top;

  const int channels = parts > 1 ? parts : s.channels, pixel_bytes = channels * itemsize;
  work.band_pixels = BAND / channels;
  const int widest = min(work.band_pixels, work.end - work.begin) * pixel_bytes;
  const int pitch = widest + 32 + ((int(s.row) - widest) & 15);
  const bool fits = work.lines <= STAGE_BYTES / 32 &&
                    work.lines * pitch + 16 + STAGE_MARGIN <= STAGE_BYTES;
  work.staged_pitch = fits ? pitch : 0;
  const int first_row = __ldg(s.row_first), last_row = __ldg(s.row_first + s.height - 1);
  const int first_column = __ldg(s.column_first), last_column = __ldg(s.column_first + s.width - 1);
  const int64 low_row = min(first_row, last_row) * s.row;
  const int64 high_row = (max(first_row, last_row) + s.row_taps - 1) * s.row;
  work.low = work.frame_at + min(low_row, high_row) + min(first_column, last_column) * pixel_bytes;
  work.high = work.frame_at + max(low_row, high_row) +
              (max(first_column, last_column) + s.column_taps) * pixel_bytes;
  return work;
}

template <typename In, typename Out, int G>
__global__ void __launch_bounds__(BLOCK, 4)
    resample_tiles(const uint8* records, uint32 pitch, uint32 count, uint32 uniform, int rounds,
                   float low, float high) {
  DYNAMIC_SHARED(float, band);
  uint8* const stage = reinterpret_cast<uint8*>(band) + BAND_BYTES;
  __shared__ ResampledSample s;
  __shared__ Work shared_work;
  __shared__ Arrivals arrivals;
  constexpr int HELD = TILE_UNITS<G> / WARPS;
  constexpr int SIZE = sizeof(In), WIDE = SIZE == 4 ? 2 : 4;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
    for (int i = threadIdx.x; i < int(sizeof(s) / 8); i += 32)
      reinterpret_cast<uint64*>(&s)[i] = __ldg(reinterpret_cast<const uint64*>(share.record) + i);
    __syncwarp();
    const Work found = work_of(s, share.block, G, SIZE);
    if (threadIdx.x == 0) {
      shared_work = found;
      expect_spans(arrivals, found.lines);
    }
  }
  __syncthreads();
  const Work& work = shared_work;
  const int tile_x = work.tile_x, tile_y = work.tile_y, pixels = work.pixels, rows = work.rows;
  const int begin = work.begin, end = work.end, band_pixels = work.band_pixels;
  const int channels = G > 1 ? G : s.channels, groups = G > 1 ? 1 : s.channels;
  const int units = pixels * groups, pixel_bytes = channels * SIZE;
  const int* firsts = s.column_first + tile_x;

  const int my_row = row_of_thread<In>(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int line_number = tile_y + min(my_row, rows - 1), first_line = __ldg(s.row_first + line_number);
  const float* row_weights = s.row_weights + int64(line_number) * s.row_taps;

  float sums[HELD][G] = {};
  uint32 turn = 0;
  for (int left = begin; left < end; left += band_pixels) {
    const int right = min(left + band_pixels, end);
    if (left > begin) __syncthreads();
    int skipped = 0;  // elements in front of those that are wanted
    if (work.staged_pitch) {
      const int staged_pitch = work.staged_pitch;
      const SpanTable spans = {work.frame_at + work.top * s.row + left * pixel_bytes, s.row,
                               uint32(work.lines), uint32((right - left) * pixel_bytes)};
      turn += stage_spans<16>(stage, staged_pitch, spans, work.low, work.high, arrivals, BLOCK, turn);
      int elements = (right - left) * channels;
      // Where all rows begin at the same place in a word, they are summed from there on.
      const int phase = int(spans.source & 3) / SIZE;
      const bool even_lines = staged_pitch % 4 == 0 && spans.source % SIZE == 0 &&
                              elements + phase <= BAND;
      if (even_lines) skipped = phase;
      if (my_row < rows) {
        const uint8* from = stage + (spans.source & 15) - skipped * SIZE +
                            (first_line - work.top) * staged_pitch;
        elements += skipped;
        float* to = band + my_row * PITCH;
        if (even_lines) sum_row<In, true>(from, staged_pitch, row_weights, s.row_taps, elements, to);
        else sum_row<In, false>(from, staged_pitch, row_weights, s.row_taps, elements, to);
      }
    } else if (my_row < rows) {
      const char* from = reinterpret_cast<const char*>(work.frame_at) + first_line * s.row +
                         int64(left) * pixel_bytes;
      const int elements = (right - left) * channels;
      float* to = band + my_row * PITCH;
      int e = 0;
      // Words behind the last one are read there, too.
      for (; e + 32 * WIDE + 4 <= elements; e += 32 * WIDE)
        sum_lines<In, WIDE, false>(from + e * SIZE, s.row, row_weights, s.row_taps, 0, to + e);
      if constexpr (WIDE > 2)
        for (; e + 68 <= elements; e += 64)
          sum_lines<In, 2, false>(from + e * SIZE, s.row, row_weights, s.row_taps, 0, to + e);
      for (; e + 36 <= elements; e += 32)
        sum_lines<In, 1, false>(from + e * SIZE, s.row, row_weights, s.row_taps, 0, to + e);
      for (; e < elements; e += 32) {
        const int last = (elements - 1 - e) * SIZE;
        sum_lines<In, 1, true>(from + e * SIZE, s.row, row_weights, s.row_taps, last, to + e);
      }
    }
    __syncthreads();
    const float* const values_of_row = band + lane * PITCH + skipped - left * channels;
    const bool whole = left == begin && right == end;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      const int unit = warp + i * WARPS;
      if (unit >= units) break;
      const int x = groups > 1 ? unit / groups : unit;
      const int channel = (unit - x * groups) * G, first = __ldg(firsts + x);
      const int from = whole ? first : max(first, left);
      const int taps = whole ? s.column_taps : min(first + s.column_taps, right) - from;
      const float* weights =
          s.column_weights + ((tile_x + x) * s.column_taps + (from - first));
      const float* values = values_of_row + from * channels + channel;
#pragma unroll 2
      for (int k = 0; k < taps; ++k) {
        const float weight = __ldg(weights + k);
#pragma unroll
        for (int g = 0; g < G; ++g) sums[i][g] = __fmaf_rn(weight, values[g], sums[i][g]);
        values += channels;
      }
    }
  }
  __syncthreads();

  // Lanes are rows: neighbours write what is a whole row, less one word, apart.
  constexpr int STAGED_PITCH = BAND + 4 / int(sizeof(Out));
  Out* staged = reinterpret_cast<Out*>(band);
  const Finish finish{s.table, s.out_channels};
  const Rounding rounded{rounds, low, high};
  const bool normalizes = s.table != nullptr;
  float means[G] = {}, factors[G] = {};  // where a unit is a whole pixel
  if (normalizes && groups == 1) {
#pragma unroll
    for (int g = 0; g < G; ++g) {
      means[g] = finish.mean(g);
      factors[g] = finish.factor(g);
    }
  }
  const bool planar = s.planar;
  const int per_pixel = planar ? 1 : s.out_channels;
  const int per_channel = planar ? (s.tile_pixels + 3) / 4 * 4 : 1;
#pragma unroll
  for (int i = 0; i < HELD; ++i) {
    const int unit = warp + i * WARPS;
    if (unit >= units) break;
    const int x = groups > 1 ? unit / groups : unit, channel = (unit - x * groups) * G;
    Out* to = staged + lane * STAGED_PITCH + x * per_pixel + channel * per_channel;
#pragma unroll
    for (int g = 0; g < G; ++g) {
      const float number = rounded(sums[i][g]);
      Out value;
      if (!normalizes) value = saturated<Out>(number);
      else if (groups > 1) value = finish.template number<Out>(number, channel + g);
      else value = Finish::template normalized<Out>(number, means[g], factors[g]);
      to[g * per_channel] = value;
    }
  }
  for (int c = channels; c < s.out_channels; ++c) {
    const Out value = finish.template outside<Out>(c);
    for (int x = warp; x < pixels; x += WARPS)
      staged[lane * STAGED_PITCH + x * per_pixel + c * per_channel] = value;
  }
  __syncthreads();
  Out* out = reinterpret_cast<Out*>(s.out) + work.out_at;
  if (planar)
    leave(staged, STAGED_PITCH, per_channel, rows, s.out_channels, pixels, out, s.out_row,
          s.out_channel);
  else
    leave(staged, STAGED_PITCH, 0, rows, 1, pixels * per_pixel, out, s.out_row, int64(0));
}

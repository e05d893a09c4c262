// Separable resampling of tiles: each source pixel is read from memory about once.
//
// A block makes ROWS rows of some neighbouring tiles of `tile_pixels` columns, in the CPU's order of
// arithmetic: first along the columns (vertically), from the source to a band in shared memory, for as
// many source columns at a time as fit there; then along the rows, to sums in registers. The source is
// copied to shared memory, too, before, if it fits: it does unless images become much smaller. What the
// next tile needs is on its way there while a tile is summed along its rows. At last the tile is
// rounded, normalised, converted, and turned round where the band was, so that it leaves row by row.
#include "resample_leave.cuh"
#include "staging.cuh"

#include "resample:PASS_UNITS"
#include "resample:PASSES"
#include "resample:PASSES_OF_GROUPS"
#include "resample:MOST_COLUMNS"
#include "resample:MOST_TILES"
#include "resample:STAGE_BYTES"

constexpr int WARPS = THREADS / 32;
static_assert(PASS_UNITS == 4 * WARPS, "four units a warp");
// What a thread makes of a tile, at most: units of one element, or of more.
template <int G> constexpr int PASSES_OF = G == 1 ? PASSES : PASSES_OF_GROUPS;
// After what is staged, as much is read without being used.
constexpr int STAGE_MARGIN = 544;
// Elements of a band where there are several; after them are the sums of the bands before.
constexpr int SHORT_BAND = 128;
// What is kept in shared memory, of the weights if there are no more.
constexpr int MOST_ROW_TAPS = 16, MOST_COLUMN_WEIGHTS = 384;

// What a block makes: columns and rows of the output.
struct Work {
  uint64 frame_at;
  uint64 low, high;  // the memory of the frame
  int64 out_at;      // elements
  int first_column, first_row, columns, rows;
  int top, lines;    // source rows
};

__device__ __forceinline__ Work work_of(const ResampledSample& s, uint32 block) {
  Work work;
  const uint32 strip = s.tile_pixels * s.tiles;
  const uint32 across = (s.width + strip - 1) / strip, down = (s.height + ROWS - 1) / ROWS;
  const uint32 line_of_strips = block / across, frame = line_of_strips / down;
  work.first_column = int(block - line_of_strips * across) * strip;
  work.first_row = int(line_of_strips - frame * down) * ROWS;
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  work.frame_at = reinterpret_cast<uint64>(s.source + outer * s.outer + inner * s.inner);
  work.out_at = outer * s.out_outer + inner * s.out_inner + work.first_row * s.out_row +
                work.first_column * s.out_pixel;
  work.columns = min(int(strip), s.width - work.first_column);
  work.rows = min(ROWS, s.height - work.first_row);
  return work;
}

__device__ __forceinline__ void find_lines(const ResampledSample& s, int pixel_bytes, Work& work) {
  const int* const lines = s.row_first + work.first_row;
  const int one_line = __ldg(lines), other_line = __ldg(lines + work.rows - 1);
  work.top = min(one_line, other_line);
  work.lines = max(one_line, other_line) + s.row_taps - work.top;
  const FrameLimits limits = limits_of(s, work.frame_at, pixel_bytes);
  work.low = limits.low;
  work.high = limits.high;
}

// A tile of those that a block makes.
struct Tile {
  int first, pixels;    // columns of the output, among those of the block
  int begin, end;       // source columns
  int band_pixels;      // of these, at a time
  int staged_pitch;     // of lines in shared memory; 0 where they do not fit
  int staged_weights;   // whether those of columns are in shared memory
};

// What all threads of a block look up again and again.
struct Tables {
  float4 row_weights[ROWS / 4][MOST_ROW_TAPS];
  int4 lines[ROWS / 4];       // of four rows, the first lines, from `Work::top` on
  int columns[MOST_COLUMNS];  // of each pixel, the first source column
  float column_weights[2][MOST_COLUMN_WEIGHTS];  // of this tile, and of the next
  Tile tiles[MOST_TILES];

  template <typename In>
  __device__ __forceinline__ void fill(const ResampledSample& s, const Work& work) {
    const int row = threadIdx.x / WARPS, number = work.first_row + min(row, work.rows - 1);
    const float* const weights = s.row_weights + int64(number) * s.row_taps;
    if (s.row_taps <= MOST_ROW_TAPS)
      for (int k = threadIdx.x % WARPS; k < s.row_taps; k += WARPS)
        reinterpret_cast<float*>(&row_weights[row / 4][k])[row % 4] =
            __ldg(weights + k) * ROW_SCALE<In>;
    if (threadIdx.x % WARPS == 0)
      reinterpret_cast<int*>(lines)[row] = __ldg(s.row_first + number) - work.top;
    if (threadIdx.x < work.columns)
      columns[threadIdx.x] = __ldg(s.column_first + work.first_column + threadIdx.x);
  }
};

__device__ __forceinline__ Tile tile_of(const ResampledSample& s, const Work& work,
                                        const Tables& tables, int number, int channels,
                                        int itemsize) {
  Tile tile;
  tile.first = number * s.tile_pixels;
  tile.pixels = min(s.tile_pixels, work.columns - tile.first);
  const int one_end = tables.columns[tile.first];
  const int other_end = tables.columns[tile.first + tile.pixels - 1];
  tile.begin = min(one_end, other_end);
  tile.end = max(one_end, other_end) + s.column_taps;
  const int band_pixels = (BAND - 3) / channels, needed = tile.end - tile.begin;
  tile.band_pixels = needed > band_pixels ? (SHORT_BAND - 3) / channels : band_pixels;
  const int widest = min(tile.band_pixels, needed) * channels * itemsize;
  const int pitch = widest + 32 + ((int(s.row) - widest) & 15);
  const bool fits = s.row_taps <= MOST_ROW_TAPS && work.lines <= STAGE_BYTES / 32 &&
                    work.lines * pitch + 16 + STAGE_MARGIN <= STAGE_BYTES;
  tile.staged_pitch = fits ? pitch : 0;
  tile.staged_weights = tile.pixels * s.column_taps <= MOST_COLUMN_WEIGHTS;
  return tile;
}

// Four rows of a unit: weighted sums of columns of the band, from element number `at` on, `step`
// elements apart.
template <typename In, int G> struct UnitSums {
  float sums[4][G] = {};

  __device__ __forceinline__ void keep(float4* memory) const {
#pragma unroll
    for (int g = 0; g < G; ++g)
      memory[g * THREADS] = make_float4(sums[0][g], sums[1][g], sums[2][g], sums[3][g]);
  }

  __device__ __forceinline__ void resume(const float4* memory) {
#pragma unroll
    for (int g = 0; g < G; ++g) {
      const float4 four = memory[g * THREADS];
      sums[0][g] = four.x, sums[1][g] = four.y, sums[2][g] = four.z, sums[3][g] = four.w;
    }
  }

  template <bool STAGED>
  __device__ __forceinline__ void add(const float4* band, int at, int step, const float* weights,
                                      int taps, int four_rows) {
    constexpr int IN_WORD = 4 / int(sizeof(In));
    at += BAND_MARGIN<G>;
    uint32 pixel = uint32(at) / G;  // a whole one, for G > 1
#pragma unroll 2
    for (int k = 0; k < taps; ++k) {
      const uint32 unit = G > 1 ? pixel : uint32(at) / IN_WORD;
      const float4* const place =
          band + (G > 1 ? pixel * G : at) * (ROWS / 4) + ((unit ^ four_rows) & 7);
      const float weight = (STAGED ? weights[k] : __ldg(weights + k)) * COLUMN_SCALE<In>;
#pragma unroll
      for (int g = 0; g < G; ++g) {
        const float4 four = place[g * (ROWS / 4)];
        sums[0][g] = __fmaf_rn(weight, four.x, sums[0][g]);
        sums[1][g] = __fmaf_rn(weight, four.y, sums[1][g]);
        sums[2][g] = __fmaf_rn(weight, four.z, sums[2][g]);
        sums[3][g] = __fmaf_rn(weight, four.w, sums[3][g]);
      }
      if (G > 1) pixel++;
      else at += step;
    }
  }
};

// Copies of the lines of a band, from source column `left` to `right`, begin.
__device__ __forceinline__ void queue_lines(const ResampledSample& s, const Work& work, int pitch,
                                            int left, int right, int pixel_bytes, uint8* stage) {
  const int64 stride = s.row;
  const uint64 source = work.frame_at + work.top * stride + left * pixel_bytes;
  const int size = (right - left) * pixel_bytes, lines = work.lines;
  const int64 reach = (lines - 1) * stride;
  if (source + min(reach, int64(0)) < work.low + 16 ||
      source + max(reach, int64(0)) + size + 32 > work.high) {
    Arrivals none;
    const SpanTable spans = {source, stride, uint32(lines), uint32(size)};
    queue_spans<16, false>(stage, pitch, spans, work.low, work.high, none, THREADS);
    return;
  }
  // Sixteen lines farther, memory begins at the same place within 16 bytes.
  constexpr int LANES = 16, LINES = THREADS / LANES;
  const int line = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const uint64 first = source + line * stride;
  const int phase = int(first & 15), end = phase + size;
  const uint8* from = reinterpret_cast<const uint8*>(first - phase) + 16 * lane;
  uint8* to = stage + (int(source & 15) + line * pitch - phase + 16 * lane);
#pragma unroll 1
  for (int i = line; i < lines; i += LINES, from += LINES * stride, to += LINES * pitch) {
    if (16 * lane < end) copy_async<16>(to, from);
#pragma unroll 1
    for (int k = 16 * LANES; k + 16 * lane < end; k += 16 * LANES) copy_async<16>(to + k, from + k);
  }
}

__device__ __forceinline__ void queue_weights(const ResampledSample& s, const Work& work,
                                              const Tile& tile, float* weights) {
  const int taps = s.column_taps, count = tile.pixels * taps;
  const float* const from = s.column_weights + int64(work.first_column + tile.first) * taps;
  if (tile.staged_weights)
    for (int i = threadIdx.x; i < count; i += THREADS)
      copy_async<4>(reinterpret_cast<uint8*>(weights + i), reinterpret_cast<const uint8*>(from + i));
}

// Sums along the columns: the rows of one warp, of source columns `left` to `right`.
template <typename In, int G>
__device__ __forceinline__ void sum_lines(const ResampledSample& s, const Work& work,
                                         const Tables& tables, const Tile& tile, int left, int right,
                                         int channels, const uint8* stage, float4* band) {
  constexpr int SIZE = sizeof(In);
  const int warp = threadIdx.x / 32, taps = s.row_taps, pitch = tile.staged_pitch;
  const int elements = (right - left) * channels;
  if (4 * warp >= work.rows) return;
  int4 lines = tables.lines[warp];
  if (!pitch) {
    const char* const from =
        reinterpret_cast<const char*>(work.frame_at) + (work.top * s.row + left * (channels * SIZE));
    const float* weights[4];
#pragma unroll
    for (int row = 0; row < 4; ++row)
      weights[row] =
          s.row_weights + int64(work.first_row + min(4 * warp + row, work.rows - 1)) * taps;
    for (int first = 0; first < elements; first += 128)
      sum_far<In, G>(from, lines, s.row, weights, taps, first, elements, band, warp);
    return;
  }
  const uint32 source = uint32(work.frame_at) + uint32(work.top) * uint32(s.row) +
                        uint32(left * (channels * SIZE));
  // Where all rows begin at the same place in a word, they are summed from there on.
  const bool even = pitch % 4 == 0 && source % SIZE == 0;
  const int skipped = even ? int(source & 3) / SIZE : 0;
  const int from = int(source & 15) - skipped * SIZE, reach = elements + skipped;
  lines.x *= pitch, lines.y *= pitch, lines.z *= pitch, lines.w *= pitch;
  const float4* const weights = tables.row_weights[warp];
  if (even && reach > 128)
    sum_staged<In, G, 2, true>(stage, from, lines, pitch, weights, taps, skipped, band, warp);
  else if (even)
    sum_staged<In, G, 1, true>(stage, from, lines, pitch, weights, taps, skipped, band, warp);
  else if (reach > 128)
    sum_staged<In, G, 2, false>(stage, from, lines, pitch, weights, taps, 0, band, warp);
  else
    sum_staged<In, G, 1, false>(stage, from, lines, pitch, weights, taps, 0, band, warp);
}

// Where rows, pixels and channels of a tile are in shared memory, in bytes.
template <typename Out> struct Places {
  uint8* memory;
  int row, pixel, channel;

  __device__ __forceinline__ Places(uint8* memory, const ResampledSample& s) : memory(memory) {
    constexpr int SIZE = sizeof(Out);
    const int plane = (s.tile_pixels + 3) / 4 * 4 * SIZE;
    pixel = s.planar ? SIZE : s.out_channels * SIZE;
    channel = s.planar ? plane : SIZE;
    row = ((s.planar ? plane : s.tile_pixels * SIZE) * s.out_channels + 3) / 4 * 4 | 4;
  }

  __device__ __forceinline__ Out& operator()(int y, int x, int c) const {
    return *reinterpret_cast<Out*>(memory + y * row + x * pixel + c * channel);
  }
};

// Four rows of a unit, finished.
template <typename In, typename Out, int G>
__device__ __forceinline__ void finish_unit(const UnitSums<In, G>& total, const ResampledSample& s,
                                            const Rounding& rounded, const Places<Out>& places,
                                            int first_row, int x, int channel) {
  const Places<Out> at = [&] {
    Places<Out> moved = places;
    moved.memory = reinterpret_cast<uint8*>(&places(first_row, x, channel));
    return moved;
  }();
  if (s.table) {
    const Finish finish{s.table, s.out_channels};
#pragma unroll
    for (int g = 0; g < G; ++g) {
      const float mean = finish.mean(channel + g), factor = finish.factor(channel + g);
#pragma unroll
      for (int row = 0; row < 4; ++row)
        at(row, 0, g) = Finish::template normalized<Out>(rounded(total.sums[row][g]), mean, factor);
    }
  } else if (rounded.wanted) {
#pragma unroll
    for (int g = 0; g < G; ++g)
#pragma unroll
      for (int row = 0; row < 4; ++row)
        at(row, 0, g) = rounded.template whole<Out>(total.sums[row][g]);
  } else {
#pragma unroll
    for (int g = 0; g < G; ++g)
#pragma unroll
      for (int row = 0; row < 4; ++row) at(row, 0, g) = saturated<Out>(total.sums[row][g]);
  }
}

template <typename In, typename Out, int G>
__global__ void __launch_bounds__(THREADS, 4)
    resample_tiles(const uint8* records, uint32 pitch, uint32 count, uint32 uniform, int rounds,
                   float low, float high) {
  DYNAMIC_SHARED(float4, band);
  uint8* const stage = reinterpret_cast<uint8*>(band) + BAND_BYTES;
  __shared__ ResampledSample s;
  __shared__ Work work;
  __shared__ Tables tables;
  constexpr int SIZE = sizeof(In);
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
    for (int i = threadIdx.x; i < int(sizeof(s) / 8); i += 32)
      reinterpret_cast<uint64*>(&s)[i] = __ldg(reinterpret_cast<const uint64*>(share.record) + i);
    __syncwarp();
    Work found = work_of(s, share.block);
    find_lines(s, (G > 1 ? G : s.channels) * SIZE, found);
    if (threadIdx.x == 0) work = found;
  }
  __syncthreads();
  const int channels = G > 1 ? G : s.channels, groups = G > 1 ? 1 : s.channels;
  const int pixel_bytes = channels * SIZE, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  tables.template fill<In>(s, work);
  __syncthreads();
  if (int(threadIdx.x) * s.tile_pixels < work.columns)
    tables.tiles[threadIdx.x] = tile_of(s, work, tables, threadIdx.x, channels, SIZE);
  __syncthreads();

  // Four neighbouring units at a time, of which eight threads have four rows each.
  const int four_rows = lane % 8;
  float4* const kept = band + (SHORT_BAND + 4) * (ROWS / 4) + threadIdx.x;
  queue_weights(s, work, tables.tiles[0], tables.column_weights[0]);
  bool queued = false;
  int number = 0, left = tables.tiles[0].begin;
  while (true) {
    const Tile& tile = tables.tiles[number];
    const int right = min(left + tile.band_pixels, tile.end);
    if (tile.staged_pitch && !queued)
      queue_lines(s, work, tile.staged_pitch, left, right, pixel_bytes, stage);
    queued = false;
    await_copies();
    sum_lines<In, G>(s, work, tables, tile, left, right, channels, stage, band);
    __syncthreads();
    const bool done = right == tile.end, last = tile.first + tile.pixels == work.columns;
    if (done && !last) {
      const Tile& next = tables.tiles[number + 1];
      queue_weights(s, work, next, tables.column_weights[(number + 1) % 2]);
      queued = next.staged_pitch && next.end - next.begin <= next.band_pixels;
      if (queued)
        queue_lines(s, work, next.staged_pitch, next.begin, next.end, pixel_bytes, stage);
    }

    UnitSums<In, G> totals[PASSES_OF<G>] = {};
    const int units = tile.pixels * groups;
#pragma unroll
    for (int pass = 0; pass < PASSES_OF<G>; ++pass) {
      const int unit = pass * PASS_UNITS + 4 * warp + lane / 8;
      if (unit >= units) break;
      // If there are several bands, there is one pass.
      if (pass == 0 && left > tile.begin) totals[0].resume(kept);
      const int x = groups > 1 ? unit / groups : unit, channel = (unit - x * groups) * G;
      const int column = tables.columns[tile.first + x], from = max(column, left);
      const int taps = min(column + s.column_taps, right) - from;
      const int at = (from - left) * channels + channel;
      const int weight = x * s.column_taps + (from - column);
      if (tile.staged_weights)
        totals[pass].template add<true>(band, at, channels,
                                        tables.column_weights[number % 2] + weight, taps, four_rows);
      else
        totals[pass].template add<false>(
            band, at, channels,
            s.column_weights + (int64(work.first_column + tile.first) * s.column_taps + weight),
            taps, four_rows);
      if (pass == 0 && !done) totals[0].keep(kept);
    }
    if (!done) {
      left = right;
      continue;
    }
    __syncthreads();

    const Places<Out> places(reinterpret_cast<uint8*>(band), s);
    const Rounding rounded{rounds, low, high};
#pragma unroll
    for (int pass = 0; pass < PASSES_OF<G>; ++pass) {
      const int unit = pass * PASS_UNITS + 4 * warp + lane / 8;
      if (unit >= units) break;
      const int x = groups > 1 ? unit / groups : unit, channel = (unit - x * groups) * G;
      finish_unit<In, Out, G>(totals[pass], s, rounded, places, 4 * four_rows, x, channel);
    }
    if (channels < s.out_channels) {
      const Finish finish{s.table, s.out_channels};
      for (int c = channels; c < s.out_channels; ++c) {
        const Out value = finish.template outside<Out>(c);
        for (int x = warp; x < tile.pixels; x += WARPS) places(lane, x, c) = value;
      }
    }
    __syncthreads();
    const StagedTile staged = {places.row, places.channel, work.rows, s.planar ? s.out_channels : 1,
                               tile.pixels * places.pixel};
    Out* const out = reinterpret_cast<Out*>(s.out) + (work.out_at + tile.first * s.out_pixel);
    leave(reinterpret_cast<const uint8*>(band), staged, reinterpret_cast<uint8*>(out),
          s.out_row * int64(sizeof(Out)), s.out_channel * int64(sizeof(Out)));
    if (last) return;
    left = tables.tiles[++number].begin;
  }
}

// Separable resampling of tiles: each source pixel is read from memory about once.
//
// A block makes ROWS rows of `tile_pixels` columns, in the CPU's order of arithmetic: first along
// the columns (vertically), from the source to a band in shared memory, for as many source columns at
// a time as fit there; then along the rows, to sums in registers. The source is copied to shared
// memory, too, before, if it fits: it does unless images become much smaller. At last the tile is
// rounded, normalised, converted, and turned round in shared memory, so that it leaves row by row.
#include "resample_leave.cuh"
#include "staging.cuh"

constexpr int WARPS = BLOCK / 32, PASS_UNITS = 4 * WARPS;
// Elements of a band where there are several; behind them are the sums of the bands before.
constexpr int SHORT_BAND = 128;
constexpr int STAGE_BYTES = 17408;
// Behind what is staged, as much is read without being used.
constexpr int STAGE_MARGIN = 544;
// Weights that are kept in shared memory, if there are no more.
constexpr int MOST_ROW_TAPS = 16, MOST_COLUMN_WEIGHTS = 768, MOST_PIXELS = 128;

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
  work.band_pixels = (BAND - 3) / channels;
  if (work.end - work.begin > work.band_pixels) work.band_pixels = (SHORT_BAND - 3) / channels;
  const int widest = min(work.band_pixels, work.end - work.begin) * pixel_bytes;
  const int pitch = widest + 32 + ((int(s.row) - widest) & 15);
  const bool fits = s.row_taps <= MOST_ROW_TAPS && work.lines <= STAGE_BYTES / 32 &&
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

template <typename Out>
__device__ __forceinline__ StagedTile staged_tile(const ResampledSample& s, const Work& work) {
  constexpr int SIZE = sizeof(Out);
  const int plane = (s.tile_pixels + 3) / 4 * 4 * SIZE;
  const int row = (s.planar ? plane : s.tile_pixels * SIZE) * s.out_channels;
  const int pitch = (row + 3) / 4 * 4 | 4;
  if (s.planar) return {pitch, plane, work.rows, s.out_channels, work.pixels * SIZE};
  return {pitch, 0, work.rows, 1, work.pixels * s.out_channels * SIZE};
}

// What all threads of a block look up again and again.
struct Tables {
  float4 row_weights[ROWS / 4][MOST_ROW_TAPS];
  int4 lines[ROWS / 4];  // of four rows, the first line: where it is staged, in bytes; else its number
  int columns[MOST_PIXELS];  // of each pixel, the first source column
  float column_weights[MOST_COLUMN_WEIGHTS];

  template <typename In>
  __device__ __forceinline__ void fill(const ResampledSample& s, const Work& work) {
    const int row = threadIdx.x / WARPS, number = work.tile_y + min(row, work.rows - 1);
    const float* const weights = s.row_weights + int64(number) * s.row_taps;
    if (s.row_taps <= MOST_ROW_TAPS)
      for (int k = threadIdx.x % WARPS; k < s.row_taps; k += WARPS)
        reinterpret_cast<float*>(&row_weights[row / 4][k])[row % 4] =
            __ldg(weights + k) * ROW_SCALE<In>;
    if (threadIdx.x % WARPS == 0) {
      const int line = __ldg(s.row_first + number);
      reinterpret_cast<int*>(lines)[row] =
          work.staged_pitch ? (line - work.top) * work.staged_pitch : line;
    }
    if (threadIdx.x < work.pixels)
      columns[threadIdx.x] = __ldg(s.column_first + work.tile_x + threadIdx.x);
    const int count = work.pixels * s.column_taps;
    if (count <= MOST_COLUMN_WEIGHTS)
      for (int i = threadIdx.x; i < count; i += BLOCK)
        column_weights[i] =
            __ldg(s.column_weights + (int64(work.tile_x) * s.column_taps + i)) * COLUMN_SCALE<In>;
  }
};

// Four rows of a unit: weighted sums of columns of the band, from element number `at` on, `step`
// elements apart.
template <typename In, int G> struct UnitSums {
  float sums[4][G] = {};

  __device__ __forceinline__ void keep(float4* memory) const {
#pragma unroll
    for (int g = 0; g < G; ++g)
      memory[g * BLOCK] = make_float4(sums[0][g], sums[1][g], sums[2][g], sums[3][g]);
  }

  __device__ __forceinline__ void resume(const float4* memory) {
#pragma unroll
    for (int g = 0; g < G; ++g) {
      const float4 four = memory[g * BLOCK];
      sums[0][g] = four.x, sums[1][g] = four.y, sums[2][g] = four.z, sums[3][g] = four.w;
    }
  }

  template <bool SCALED>
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
      const float weight = SCALED ? weights[k] : __ldg(weights + k) * COLUMN_SCALE<In>;
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

template <typename In, typename Out, int G>
__global__ void __launch_bounds__(BLOCK, 4)
    resample_tiles(const uint8* records, uint32 pitch, uint32 count, uint32 uniform, int rounds,
                   float low, float high) {
  DYNAMIC_SHARED(float4, band);
  uint8* const stage = reinterpret_cast<uint8*>(band) + BAND_BYTES;
  __shared__ ResampledSample s;
  __shared__ Work work;
  __shared__ Arrivals arrivals;
  __shared__ Tables tables;
  constexpr int SIZE = sizeof(In);
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
    for (int i = threadIdx.x; i < int(sizeof(s) / 8); i += 32)
      reinterpret_cast<uint64*>(&s)[i] = __ldg(reinterpret_cast<const uint64*>(share.record) + i);
    __syncwarp();
    const Work found = work_of(s, share.block, G, SIZE);
    if (threadIdx.x == 0) work = found;
  }
  __syncthreads();
  const int begin = work.begin, end = work.end, band_pixels = work.band_pixels;
  const int channels = G > 1 ? G : s.channels, groups = G > 1 ? 1 : s.channels;
  const int pixel_bytes = channels * SIZE, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int left = begin; left < end; left += band_pixels) {
    const int right = min(left + band_pixels, end), elements = (right - left) * channels;
    int skipped = 0;  // elements in front of those that are wanted
    if (left > begin) __syncthreads();
    if (work.staged_pitch) {
      const int staged_pitch = work.staged_pitch;
      const SpanTable spans = {work.frame_at + work.top * s.row + left * pixel_bytes, s.row,
                               uint32(work.lines), uint32((right - left) * pixel_bytes)};
      queue_spans<16, false>(stage, staged_pitch, spans, work.low, work.high, arrivals, BLOCK);
      if (left == begin) tables.template fill<In>(s, work);
      await_copies();
      // Where all rows begin at the same place in a word, they are summed from there on.
      const bool even = staged_pitch % 4 == 0 && spans.source % SIZE == 0;
      if (even) skipped = int(spans.source & 3) / SIZE;
      if (4 * warp < work.rows) {
        const int from = int(spans.source & 15) - skipped * SIZE;
        const int4 lines = tables.lines[warp];
        const float4* const weights = tables.row_weights[warp];
        const int taps = s.row_taps, reach = elements + skipped;
        if (even) {
          if (reach > 128)
            sum_staged<In, G, 2, true>(stage, from, lines, staged_pitch, weights, taps, 0, skipped, band,
                                       warp);
          else
            sum_staged<In, G, 1, true>(stage, from, lines, staged_pitch, weights, taps, 0, skipped, band,
                                       warp);
        } else {
          for (int first = 0; first < reach; first += 128)
            sum_staged<In, G, 1, false>(stage, from, lines, staged_pitch, weights, taps, first, 0, band,
                                        warp);
        }
      }
    } else {
      if (left == begin) {
        tables.template fill<In>(s, work);
        __syncthreads();
      }
      if (4 * warp < work.rows) {
        const char* const from = reinterpret_cast<const char*>(work.frame_at) + left * pixel_bytes;
        const float* weights[4];
#pragma unroll
        for (int row = 0; row < 4; ++row)
          weights[row] = s.row_weights +
                         int64(work.tile_y + min(4 * warp + row, work.rows - 1)) * s.row_taps;
        for (int first = 0; first < elements; first += 128)
          sum_far<In, G>(from, tables.lines[warp], s.row, weights, s.row_taps, first, elements, band,
                         warp);
      }
    }
    __syncthreads();

    // Four neighbouring units at a time, of which eight threads have four rows each. If there are
    // several bands, there is one pass.
    const int four_rows = lane % 8, units = work.pixels * groups;
    float4* const kept = band + (SHORT_BAND + 4) * (ROWS / 4) + threadIdx.x;
    const StagedTile tile = staged_tile<Out>(s, work);
    const bool planar = s.planar;
    const int per_pixel = planar ? int(sizeof(Out)) : s.out_channels * int(sizeof(Out));
    const int per_channel = planar ? tile.plane : int(sizeof(Out));
    for (int first = 0; first < units; first += PASS_UNITS) {
      const int unit = first + 4 * warp + lane / 8;
      if (unit >= units) break;
      const int x = groups > 1 ? unit / groups : unit, channel = (unit - x * groups) * G;
      const int column = tables.columns[x], from = max(column, left);
      const int taps = min(column + s.column_taps, right) - from;
      UnitSums<In, G> total;
      if (left > begin) total.resume(kept);
      const int at = (from - left) * channels + channel;
      const int weight = x * s.column_taps + (from - column);
      if (work.pixels * s.column_taps <= MOST_COLUMN_WEIGHTS)
        total.template add<true>(band, at, channels, tables.column_weights + weight, taps, four_rows);
      else
        total.template add<false>(
            band, at, channels,
            s.column_weights + (int64(work.tile_x) * s.column_taps + weight), taps, four_rows);
      const Rounding rounded{rounds, low, high};
      if (right < end) {
        total.keep(kept);
        continue;
      }

      uint8* const to =
          stage + 4 * four_rows * tile.pitch + x * per_pixel + channel * per_channel;
      const auto place = [&](int row, int g) {
        return reinterpret_cast<Out*>(to + row * tile.pitch + g * per_channel);
      };
      if (s.table) {
        const Finish finish{s.table, s.out_channels};
#pragma unroll
        for (int g = 0; g < G; ++g) {
          const float mean = finish.mean(channel + g), factor = finish.factor(channel + g);
#pragma unroll
          for (int row = 0; row < 4; ++row)
            *place(row, g) =
                Finish::template normalized<Out>(rounded(total.sums[row][g]), mean, factor);
        }
      } else if (rounds) {
#pragma unroll
        for (int g = 0; g < G; ++g)
#pragma unroll
          for (int row = 0; row < 4; ++row)
            *place(row, g) = rounded.template whole<Out>(total.sums[row][g]);
      } else {
#pragma unroll
        for (int g = 0; g < G; ++g)
#pragma unroll
          for (int row = 0; row < 4; ++row)
            *place(row, g) = saturated<Out>(total.sums[row][g]);
      }
    }
  }
  const StagedTile tile = staged_tile<Out>(s, work);
  if (channels < s.out_channels) {
    const Finish finish{s.table, s.out_channels};
    const int per_pixel = s.planar ? int(sizeof(Out)) : s.out_channels * int(sizeof(Out));
    const int per_channel = s.planar ? tile.plane : int(sizeof(Out));
    for (int c = channels; c < s.out_channels; ++c) {
      const Out value = finish.template outside<Out>(c);
      for (int x = warp; x < work.pixels; x += WARPS)
        *reinterpret_cast<Out*>(stage + lane * tile.pitch + x * per_pixel + c * per_channel) = value;
    }
  }
  __syncthreads();
  leave(stage, tile, reinterpret_cast<uint8*>(reinterpret_cast<Out*>(s.out) + work.out_at),
        s.out_row * int64(sizeof(Out)), s.out_channel * int64(sizeof(Out)));
}

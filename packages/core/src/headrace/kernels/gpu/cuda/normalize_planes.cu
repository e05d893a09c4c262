// (pixel - mean) * factor from pixels, whose G channels lie side by side, to planes of them: what
// normalize_pixels.cu does, for windows inside of the data.
//
// A block makes a tile of some rows, or of a part of a row, which is one run of memory in each plane.
// It copies the rows of the source to shared memory as they are, and writes four neighbours of a
// plane at a time. Rows may run backwards.
#include "as_float.cuh"
#include "colors_as_they_are.cuh"
#include "normalize_pixels_runs.cuh"
#include "staging.cuh"
#include "vector_store.cuh"

#include "normalize_pixels:STAGE_BYTES"
constexpr int LINE = 128;
// Threads on a multiprocessor, for the compiler to find the registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int RESIDENT = 1024;
#else
constexpr int RESIDENT = 1280;
#endif

#include "normalize_pixels:PackedSample"

// Where a plane's elements are in shared memory: `step` bytes apart, `gap` more from row to row.
struct Picked {
  const uint8* from;
  int columns, step, gap;
};

// Four neighbours of a plane from element `k` on. Even: rows follow one another without a gap.
template <typename In, typename Out, bool Even>
__device__ __forceinline__ void write_four(const Picked& picked, const Divisor& by_columns, int k,
                                           float mean, float factor, Out* to) {
  int offsets[4];
  if constexpr (Even) {
#pragma unroll
    for (int e = 0; e < 4; e++) offsets[e] = (k + e) * picked.step;
  } else {
    const int row = by_columns.divide(k), x = k - row * picked.columns;
    offsets[0] = k * picked.step + row * picked.gap;
#pragma unroll
    for (int e = 1; e < 4; e++)
      offsets[e] = offsets[0] + e * picked.step + (x + e >= picked.columns ? picked.gap : 0);
  }
  Out values[4];
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const float number = as_float(*reinterpret_cast<const In*>(picked.from + offsets[e]));
    values[e] = Finish::normalized<Out>(number, mean, factor);
  }
  store_together(to, values);
}

// What a block does.
struct Work {
  SpanTable spans;
  uint64 low, high;
  char* out;
  int64 out_offset, out_channel;  // elements
  const float* table;
  uint32 pitch;
  uint32 sample;
  int columns, run;      // elements of a row, and of all rows, in a plane
  bool backwards, even;  // even: rows follow one another without a gap
};

template <int Pixel> __device__ __forceinline__ Work work_of(const Share& share) {
  const PackedSample& s = *reinterpret_cast<const PackedSample*>(share.record);
  const uint32 across = (s.width + s.tile_columns - 1) / s.tile_columns;
  const uint32 down = (s.height + s.tile_rows - 1) / s.tile_rows;
  const uint32 line = share.block / across, frame = line / down;
  const int x0 = (share.block - line * across) * s.tile_columns;
  const int y0 = (line - frame * down) * s.tile_rows;
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  const int columns = min(s.tile_columns, s.width - x0), rows = min(s.tile_rows, s.height - y0);
  Work work;
  work.backwards = s.pixel < 0;
  work.columns = columns;
  work.run = rows * columns;
  work.table = s.table;
  work.out = s.out;
  work.out_channel = s.out_channel;
  work.out_offset = outer * s.out_outer + inner * s.out_inner + int64(y0) * s.width + x0;

  const uint64 frame_at = reinterpret_cast<uint64>(s.source + outer * s.outer + inner * s.inner);
  const int64 row_reach = int64(s.height - 1) * s.row, pixel_reach = int64(s.width - 1) * s.pixel;
  work.low = frame_at + min(row_reach, int64(0)) + min(pixel_reach, int64(0));
  work.high = frame_at + max(row_reach, int64(0)) + max(pixel_reach, int64(0)) + Pixel;
  const int length = columns * Pixel;  // of a row, in bytes
  work.even = !work.backwards && (rows == 1 || s.row == length);
  // Rows that follow one another are one span; others have a pitch as `stage_spans` wants it.
  work.spans.source =
      frame_at + int64(y0) * s.row + (x0 + (work.backwards ? columns - 1 : 0)) * s.pixel;
  work.spans.stride = s.row;
  work.spans.count = work.even ? 1 : rows;
  work.spans.size = work.even ? rows * length : length;
  work.pitch = work.even ? length : length + 32 + ((int(s.row) - length) & 15);
  return work;
}

template <typename In, typename Out, int G, int Threads, typename Colors = ColorsAsTheyAre>
__global__ void __launch_bounds__(Threads, RESIDENT / Threads)
    normalize_planes(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                     const uint8* colors) {
  __shared__ __align__(16) uint8 memory[STAGE_BYTES];
  constexpr int PIXEL = G * int(sizeof(In));
  __shared__ Work shared_work;
  __shared__ Arrivals arrivals;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
    Work found = work_of<PIXEL>(share);
    if constexpr (Colors::present) found.sample = uint32((share.record - records) / pitch);
    if (threadIdx.x == 0) {
      shared_work = found;
      expect_spans(arrivals, found.spans.count);
    }
  }
  __syncthreads();
  const Work& work = shared_work;
  stage_spans<16>(memory, work.pitch, work.spans, work.low, work.high, arrivals, Threads);
  const int columns = work.columns, run = work.run, step = work.backwards ? -PIXEL : PIXEL;
  const int gap = int(work.pitch) - columns * step;
  const bool even = work.even;
  const Divisor by_columns(columns);
  const Finish finish{work.table, G};
  Out* const out = reinterpret_cast<Out*>(work.out) + work.out_offset;
  const int64 out_channel = work.out_channel;
  const uint8* const from =
      memory + (work.spans.source & 15) + (work.backwards ? (columns - 1) * PIXEL : 0);
  if constexpr (Colors::present) {
    change_rows<Colors, In>(colors, work.sample, memory + (work.spans.source & 15),
                            work.spans.count, even ? run : columns, work.pitch, Threads);
    __syncthreads();
  }
#pragma unroll 1
  for (int c = 0; c < G; c++) {
    const float mean = finish.mean(c), factor = finish.factor(c);
    Out* const to = out + c * out_channel;
    const Picked picked{from + c * int(sizeof(In)), columns, step, gap};
    const int phase = int(reinterpret_cast<uint64>(to) / sizeof(Out)) & 3;
    const int head = min((4 - phase) & 3, run), fours = (run - head) / 4;
    // Neighbours write whole lines at a time: the first ones of a block may have nothing to write.
    // Would they go on with what is next, that line would be written by two instructions.
    const int lead = int(reinterpret_cast<uint64>(to + head) % LINE / (4 * sizeof(Out)));
    const int v0 = int(threadIdx.x) - lead;
    if (even) {
      const Picked ahead{picked.from, columns, PIXEL, 0};
#pragma unroll 2
      for (int v = v0; v < fours; v += Threads)
        if (v >= 0)
          write_four<In, Out, true>(ahead, by_columns, head + 4 * v, mean, factor,
                                    to + head + 4 * v);
    } else {
#pragma unroll 2
      for (int v = v0; v < fours; v += Threads)
        if (v >= 0)
          write_four<In, Out, false>(picked, by_columns, head + 4 * v, mean, factor,
                                     to + head + 4 * v);
    }
  }
  // What is left of each plane before the first four and after the last.
  for (int i = threadIdx.x; i < 8 * G; i += Threads) {
    const int c = i / 8, slot = i % 8;
    Out* const to = out + c * out_channel;
    const int phase = int(reinterpret_cast<uint64>(to) / sizeof(Out)) & 3;
    const int head = min((4 - phase) & 3, run), tail = (run - head) & 3;
    if (slot < 4 ? slot >= head : slot - 4 >= tail) continue;
    const int k = slot < 4 ? slot : run - tail + slot - 4;
    const int row = by_columns.divide(k);
    const uint8* const place = from + c * int(sizeof(In)) + k * step + row * gap;
    to[k] = Finish::normalized<Out>(as_float(*reinterpret_cast<const In*>(place)), finish.mean(c),
                                    finish.factor(c));
  }
}

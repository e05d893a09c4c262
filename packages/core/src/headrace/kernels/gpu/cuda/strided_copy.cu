// Copies of samples whose innermost axes lie next to one another in memory: rows of bytes, anywhere.
//
// A block copies what of the rows lies in some whole lines of the target. It has the rows copied to
// shared memory as they are, and writes vectors of 16 bytes, each from two aligned ones there, or from
// four where one row ends and the next begins.
#include "staging.cuh"
#include "strided_copy_blocks.cuh"

#include "strided_copy:Rows"

#include "strided_copy:ITEMS"
#include "strided_copy:LINE"
#include "strided_copy:NARROW"
#include "strided_copy:THREADS"

constexpr uint32 BYTES = 16;  // of a vector
constexpr uint32 BLOCK_BYTES = THREADS * ITEMS * BYTES;
constexpr uint32 MOST_ROWS = BLOCK_BYTES / NARROW + 2;
constexpr uint32 STAGE_BYTES = 24576;  // for all rows, each with up to 30 bytes around it
constexpr uint64 FAR = 1u << 30;       // more bytes than a block looks at
// Blocks on a multiprocessor, for the compiler to find the registers: Turing has fewer threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr uint32 BLOCKS = 6;
#else
constexpr uint32 BLOCKS = 8;
#endif

// The 16 bytes from byte `shift` on of two vectors that follow one another.
__device__ __forceinline__ uint4 taken(const uint4& low, const uint4& high, uint32 shift) {
  uint32 words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int k = 0; k < 6; k++) words[k] = shift & 8 ? words[k + 2] : words[k];
#pragma unroll
  for (int k = 0; k < 5; k++) words[k] = shift & 4 ? words[k + 1] : words[k];
  const uint32 bits = 8 * (shift & 3);
  return make_uint4(
      __funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
      __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], words[4], bits));
}

// Bytes `begin` to `end` of a vector whose first byte belongs at `to`, by words where all of a word
// is among them.
__device__ __forceinline__ void store_part(uint8* bytes, const uint4& vector, uint32 begin,
                                           uint32 end) {
#pragma unroll 1
  for (uint32 k = 0; k < BYTES; k += 4) {
    const uint32 word = k < 8 ? (k < 4 ? vector.x : vector.y) : (k < 12 ? vector.z : vector.w);
    if (begin <= k && end >= k + 4) {
      *reinterpret_cast<uint32*>(bytes + k) = word;
    } else {
#pragma unroll
      for (uint32 e = 0; e < 4; e++)
        if (k + e >= begin && k + e < end) bytes[k + e] = uint8(word >> (8 * e));
    }
  }
}

// The first `count` bytes of one vector, and the others of another one.
__device__ __forceinline__ uint4 joined(const uint4& first, const uint4& second, uint32 count) {
  const auto part = [&](uint32 one, uint32 other, uint32 begin) {
    const uint32 bits = 8 * (count - begin);
    const uint32 mask = count <= begin ? 0 : bits >= 32 ? 0xffffffffu : (1u << bits) - 1;
    return (one & mask) | (other & ~mask);
  };
  return make_uint4(part(first.x, second.x, 0), part(first.y, second.y, 4),
                    part(first.z, second.z, 8), part(first.w, second.w, 12));
}

// What a block does: lines from `target` on, of which bytes `begin` to `end` are the sample's.
struct Work {
  uint64 source, low, high;
  uint8* target;
  const Axis* axes;
  Quotient<uint64> start;  // row and byte of it that the first one is
  uint64 row_width;
  uint32 begin, end;
  uint32 left, width;  // bytes of the first row, and of others; no more than `FAR`
  uint32 rows;
};

__device__ __forceinline__ Work work_of(const Share& share) {
  const Rows& rows = *reinterpret_cast<const Rows*>(share.record);
  const uint32 lead = uint32(rows.target) % LINE;  // of the line that the sample begins in
  const uint64 at = uint64(share.block) * BLOCK_BYTES;
  const uint64 done = share.block ? at - lead : 0;
  Work work;
  work.source = rows.source;
  work.low = rows.low;
  work.high = rows.high;
  work.target = reinterpret_cast<uint8*>(rows.target - lead + at);
  work.axes = reinterpret_cast<const Axis*>(&rows + 1);
  work.start = divided(done, rows.width);
  work.row_width = rows.width;
  work.begin = share.block ? 0 : lead;
  const uint32 count = uint32(min(rows.size - done, uint64(BLOCK_BYTES - work.begin)));
  work.end = work.begin + count;
  work.left = uint32(min(rows.width - work.start.rest, FAR));
  work.width = uint32(min(rows.width, FAR));
  work.rows = count <= work.left ? 1 : 1 + (count - work.left + work.width - 1) / work.width;
  return work;
}

__device__ __forceinline__ uint64 source_of(const Work& work, int32 axis_count, uint64 row) {
  if (axis_count <= 1) return work.source + row * work.axes[0].source;
  return work.source + offsets_of(work.axes, axis_count, row).source;
}

// Has row `number` of the block copied to `memory`, by `lanes` threads, of which this is number
// `lane`; returns where its first byte is.
__device__ __forceinline__ uint32 stage_row(uint8* memory, const Work& work, int32 axis_count,
                                            uint32 number, Arrivals& arrivals, uint32 lane,
                                            uint32 lanes) {
  const uint32 count = work.end - work.begin;
  const uint32 before = number ? work.left + (number - 1) * work.width : 0;
  const uint32 size = min(number ? work.width : work.left, count - before);
  const uint64 from =
      source_of(work, axis_count, work.start.whole + number) + (number ? 0 : work.start.rest);
  const uint32 phase = uint32(from) % BYTES;
  uint32 at = BYTES + phase;
  if (number) {
    const uint32 pitch = (work.width + 15 + 15) / 16 * 16;
    at += (work.left + 15 + 15) / 16 * 16 + (number - 1) * pitch;
  }
  // Whole vectors, which may hold others' bytes, too, unless these lie outside of the memory.
  uint32 head = 0, tail = 0;  // bytes that are copied one by one
  if (from - phase < work.low) head = min(BYTES - phase, size);
  const uint64 last = (from + size + BYTES - 1) / BYTES * BYTES;
  if (last > work.high && head < size) tail = min(uint32(from + size) % BYTES, size - head);
  const uint8* const source = reinterpret_cast<const uint8*>(from);
  for (uint32 e = lane; e < head; e += lanes) memory[at + e] = __ldg(source + e);
  for (uint32 e = size - tail + lane; e < size; e += lanes) memory[at + e] = __ldg(source + e);
  const uint64 first = head ? from + head : from - phase;
  const uint64 end = tail ? from + size - tail : head < size ? last : first;
  const uint32 bytes = uint32(end - first);
  uint8* const to = memory + at + int32(first - from);
  copy_span(to, reinterpret_cast<const uint8*>(first), bytes, arrivals, lane, lanes);
  return at;
}

// Copies `count` bytes, from byte `position` of the sample on, that may belong to many rows.
__device__ __noinline__ void copy_bytes(const Work& work, int32 axis_count, uint64 position,
                                        uint32 count, uint8* to) {
#pragma unroll 1
  for (uint32 e = 0; e < count; e++) {
    const Quotient<uint64> place = divided(position + e, work.row_width);
    const uint64 from = source_of(work, axis_count, place.whole) + place.rest;
    to[e] = *reinterpret_cast<const uint8*>(from);
  }
}

// The 16 bytes from `place` on.
__device__ __forceinline__ uint4 window(const uint8* memory, uint32 place) {
  const uint4* const vectors = reinterpret_cast<const uint4*>(memory + (place & ~15u));
  return taken(vectors[0], vectors[1], place & 15);
}

__global__ void __launch_bounds__(THREADS, BLOCKS)
copy_rows(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count) {
  // A window may begin in front of its row, and end after it.
  __shared__ __align__(16) uint8 memory[BYTES + STAGE_BYTES + 2 * BYTES];
  __shared__ uint32 places[MOST_ROWS];  // where rows are
  __shared__ Work shared_work;
  __shared__ Arrivals arrivals;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
    const Work found = work_of(share);
    if (threadIdx.x == 0) {
      shared_work = found;
      expect_spans(arrivals, found.rows);
    }
  }
  __syncthreads();
  const Work& work = shared_work;
  const uint32 begin = work.begin, end = work.end;
  if (work.width < NARROW) {
    const uint64 done = work.start.whole * work.row_width + work.start.rest;
    for (uint32 at = BYTES * threadIdx.x; at < end; at += BYTES * THREADS) {
      const uint32 from = max(at, begin), to = min(at + BYTES, end);
      if (from < to) copy_bytes(work, axis_count, done + from - begin, to - from, work.target + from);
    }
    return;
  }
  constexpr uint32 lanes = SPANS_BY_THREAD ? 1 : 32;
  uint32 row = SPANS_BY_THREAD ? spread_thread(THREADS) : threadIdx.x / lanes;
  for (; row < work.rows; row += THREADS / lanes) {
    const uint32 lane = threadIdx.x % lanes;
    const uint32 place = stage_row(memory, work, axis_count, row, arrivals, lane, lanes);
    if (lane == 0) places[row] = place;
  }
  const uint32 left = work.left, width = work.width;
  uint8* const target = work.target;
  const Divisor by_width(width);
  await_spans(arrivals);
#pragma unroll 4
  for (uint32 i = 0; i < ITEMS; i++) {
    const uint32 at = BYTES * (threadIdx.x + i * THREADS);
    const uint32 first = at < begin ? min(begin - at, BYTES) : 0;
    const uint32 last = at < end ? min(end - at, BYTES) : 0;
    if (first >= last) continue;
    const uint32 position = at + first - begin;
    uint32 row = 0, rest = position, behind = left - position;
    if (position >= left) {
      const uint32 whole = by_width.divide(position - left);
      row = 1 + whole;
      rest = position - left - whole * width;
      behind = width - rest;
    }
    uint4 vector = window(memory, places[row] + rest - first);
    if (first + behind < last)
      vector = joined(vector, window(memory, places[row + 1] - first - behind), first + behind);
    if (last - first == BYTES) *reinterpret_cast<uint4*>(target + at) = vector;
    else store_part(target + at, vector, first, last);
  }
}

// Copies of samples whose innermost axes lie next to one another in memory: rows of bytes, anywhere.
//
// A thread writes vectors of 16 bytes, and neighbours whole lines of memory, wherever rows begin.
// What a vector needs of the source lies in one aligned vector there, or in two, of which it takes a
// part each; and in as many again where one row ends and the next begins.
#include "strided_copy_blocks.cuh"

struct Rows {
  uint32 first_block;
  uint64 source, target;
  uint64 width;      // of a row, in bytes
  uint64 size;       // of the sample, in bytes
  uint64 count;      // vectors of the sample, from the line on that it begins in
  uint64 low, high;  // the memory that all rows of the source lie in, with what is between them
  // Axes follow: at least one, which may stand still.
};

constexpr uint32 THREADS = 256, ITEMS = 4, BYTES = 16, LINE = 128;
constexpr uint32 BLOCK_BYTES = THREADS * ITEMS * BYTES;
constexpr uint64 FAR = 1u << 30;  // more bytes than a block looks at

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

// A vector of which only bytes `begin` to `end` may be read.
__device__ __noinline__ uint4 bytes_of(const uint8* from, uint32 begin, uint32 end) {
  uint4 found = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (uint32 k = 0; k < BYTES; k += 4) {
    uint32 word = 0;
#pragma unroll
    for (uint32 e = 0; e < 4; e++)
      if (k + e >= begin && k + e < end) word |= uint32(__ldg(from + k + e)) << (8 * e);
    found.x = k == 0 ? word : found.x;
    found.y = k == 4 ? word : found.y;
    found.z = k == 8 ? word : found.z;
    found.w = k == 12 ? word : found.w;
  }
  return found;
}

// Bytes `begin` to `end` of a vector whose first byte belongs at `to`, by words where all of a word
// is among them.
__device__ __forceinline__ void store_part(uint64 to, const uint4& vector, uint32 begin,
                                           uint32 end) {
  uint8* const bytes = reinterpret_cast<uint8*>(to);
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

// A position in the target, counted from where the work of a block begins.
struct Place {
  uint64 row;
  uint64 rest;  // bytes of the row in front of it
  uint32 left;  // and from there on
};

// Distance of a row from the first one, by more axes than one.
__device__ __noinline__ int64 offset_by_axes(const Axis* axes, int32 count, uint64 row) {
  return offsets_of(axes, count, row).source;
}

__device__ __forceinline__ uint64 source_of(const Rows& rows, int32 axis_count, uint64 row) {
  const Axis* const axes = reinterpret_cast<const Axis*>(&rows + 1);
  if (axis_count <= 1) return rows.source + row * axes[0].source;
  return rows.source + offset_by_axes(axes, axis_count, row);
}

// The rows that a block copies.
struct Part {
  Quotient<uint64> start;
  uint32 left, width;  // of the first row from there on, and of others; no more than `FAR`
  Divisor by_width;

  __device__ __forceinline__ Part(uint64 row_width, uint64 done)
      : start(divided(done, row_width)), left(uint32(min(row_width - start.rest, FAR))),
        width(uint32(min(row_width, FAR))), by_width(width) {}

  __device__ __forceinline__ Place place(uint32 position) const {
    if (position < left) return {start.whole, start.rest + position, left - position};
    const uint32 behind = position - left, whole = by_width.divide(behind);
    const uint32 rest = behind - whole * width;
    return {start.whole + 1 + whole, rest, width - rest};
  }
};

// What a vector of the target is taken from.
struct Window {
  uint4 low, high;
  uint32 shift;

  // From address `from` on; only bytes `begin` to `end` are needed.
  __device__ __forceinline__ void read(const Rows& rows, uint64 from, uint32 begin, uint32 end) {
    shift = uint32(from) % BYTES;
    const uint64 whole = from - shift;
    high = make_uint4(0, 0, 0, 0);
    if (whole >= rows.low && whole + (shift ? 2 : 1) * BYTES <= rows.high) {
      const uint4* const vectors = reinterpret_cast<const uint4*>(whole);
      low = __ldg(vectors);
      if (shift) high = __ldg(vectors + 1);
    } else {
      low = bytes_of(reinterpret_cast<const uint8*>(from), begin, end);
      shift = 0;
    }
  }

  __device__ __forceinline__ uint4 vector() const { return shift ? taken(low, high, shift) : low; }
};

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

// Copies `count` bytes, from byte `position` of the sample on, that may belong to many rows.
__device__ __noinline__ void copy_bytes(const Rows& rows, int32 axis_count, uint64 position,
                                        uint32 count, uint8* to) {
#pragma unroll 1
  for (uint32 e = 0; e < count; e++) {
    const Quotient<uint64> place = divided(position + e, rows.width);
    const uint64 from = source_of(rows, axis_count, place.whole) + place.rest;
    to[e] = *reinterpret_cast<const uint8*>(from);
  }
}

__global__ void __launch_bounds__(THREADS, 3)
copy_rows(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Rows& rows = *reinterpret_cast<const Rows*>(share.record);
  // The line that the sample begins in is not all its own.
  const uint32 lead = uint32(rows.target) % LINE, skipped = share.block ? 0 : lead;
  const uint64 begin = uint64(share.block) * BLOCK_BYTES;
  const uint64 done = share.block ? begin - lead : 0;
  uint8* const target = reinterpret_cast<uint8*>(rows.target - lead + begin);
  const uint32 end = uint32(min(rows.size - done, uint64(BLOCK_BYTES - skipped))) + skipped;
  const Part part(rows.width, done);

  // Nothing is stored before all is read.
  Window windows[ITEMS];
  uint32 lefts[ITEMS];  // bytes until the end of the row
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    const uint32 at = BYTES * (threadIdx.x + i * THREADS);
    const uint32 first = at < skipped ? min(skipped - at, BYTES) : 0;
    const uint32 last = at < end ? min(end - at, BYTES) : 0;
    lefts[i] = 0;
    windows[i].low = windows[i].high = make_uint4(0, 0, 0, 0);
    windows[i].shift = 0;
    if (first >= last) continue;
    const Place place = part.place(at + first - skipped);
    lefts[i] = min(first + place.left, last);
    const uint64 from = source_of(rows, axis_count, place.row) + place.rest - first;
    windows[i].read(rows, from, first, lefts[i]);
  }
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    const uint32 at = BYTES * (threadIdx.x + i * THREADS);
    const uint32 first = at < skipped ? min(skipped - at, BYTES) : 0;
    const uint32 last = at < end ? min(end - at, BYTES) : 0;
    if (first >= last) continue;
    uint4 vector = windows[i].vector();
    if (lefts[i] < last) {
      const Place next = part.place(at + lefts[i] - skipped);
      if (lefts[i] + next.left < last) {
        copy_bytes(rows, axis_count, done + at + first - skipped, last - first,
                   target + at + first);
        continue;
      }
      Window other;
      other.read(rows, source_of(rows, axis_count, next.row) - lefts[i], lefts[i], last);
      vector = joined(vector, other.vector(), lefts[i]);
    }
    if (last - first == BYTES) *reinterpret_cast<uint4*>(target + at) = vector;
    else store_part(reinterpret_cast<uint64>(target + at), vector, first, last);
  }
}

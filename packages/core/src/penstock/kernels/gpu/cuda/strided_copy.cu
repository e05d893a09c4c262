// Copies of samples whose innermost axes lie next to one another in memory: rows of bytes, anywhere.
//
// A thread copies vectors of 16 bytes, aligned as the target is. What a vector needs of the source
// lies in one aligned vector there, or in two, of which it takes a part each. Of the first vector of
// a row and of the last, only some bytes may belong to the row.
#include "strided_copy_blocks.cuh"

struct Rows {
  uint32 first_block;
  uint64 source, target;
  uint64 width;      // of a row, in bytes
  uint64 vectors;    // of a row
  uint64 count;      // vectors of the sample
  uint64 low, high;  // the memory that all rows of the source lie in, with what is between them
  // Axes follow.
};

constexpr uint32 THREADS = 256, ITEMS = 4, VECTORS = THREADS * ITEMS, BYTES = 16;

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
__device__ __forceinline__ uint4 bytes_of(const uint8* from, uint32 begin, uint32 end) {
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

__global__ void __launch_bounds__(THREADS, 4)
copy_rows(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Rows& rows = *reinterpret_cast<const Rows*>(share.record);
  const Axis* axes = reinterpret_cast<const Axis*>(&rows + 1);
  const uint64 done = uint64(share.block) * VECTORS;
  const Quotient<uint64> start = divided(done, rows.vectors);
  const uint32 count = uint32(min(uint64(VECTORS), rows.count - done));
  const bool is_long = rows.vectors >= VECTORS;
  const Divisor by_vectors(is_long ? 1 : uint32(rows.vectors));

  // Nothing is stored before all is read.
  uint4 low[ITEMS], high[ITEMS];
  uint64 targets[ITEMS];
  uint32 parts[ITEMS], shifts[ITEMS];  // first byte, and in the next byte the one behind the last
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    const uint32 index = threadIdx.x + i * THREADS;
    parts[i] = shifts[i] = 0;
    low[i] = high[i] = make_uint4(0, 0, 0, 0);
    if (index >= count) continue;
    uint64 row = start.whole, vector = start.rest + index;
    if (is_long) {
      const bool next = vector >= rows.vectors;
      row += next;
      vector -= next ? rows.vectors : 0;
    } else {
      const uint32 whole = by_vectors.divide(uint32(vector));
      row += whole;
      vector -= whole * uint32(rows.vectors);
    }
    const uint64 to = rows.target + row * rows.width;
    const int64 begin = int64(BYTES * vector) - int64(to % BYTES);
    const uint32 first = begin < 0 ? uint32(-begin) : 0;
    const uint32 last = uint32(max(min(int64(rows.width) - begin, int64(BYTES)), int64(0)));
    parts[i] = first | last << 8;
    targets[i] = to + begin;
    const uint64 from = rows.source + offsets_of(axes, axis_count, row).source + begin;
    const uint32 shift = uint32(from % BYTES);
    const uint64 whole = from - shift;
    if (whole >= rows.low && whole + (shift ? 2 : 1) * BYTES <= rows.high) {
      const uint4* const vectors = reinterpret_cast<const uint4*>(whole);
      low[i] = __ldg(vectors);
      if (shift) high[i] = __ldg(vectors + 1);
      shifts[i] = shift;
    } else {
      low[i] = bytes_of(reinterpret_cast<const uint8*>(from), first, last);
    }
  }
#pragma unroll
  for (uint32 i = 0; i < ITEMS; i++) {
    const uint32 first = parts[i] & 255, last = parts[i] >> 8;
    if (first >= last) continue;
    const uint4 vector = taken(low[i], high[i], shifts[i]);
    if (parts[i] == BYTES << 8) *reinterpret_cast<uint4*>(targets[i]) = vector;
    else store_part(targets[i], vector, first, last);
  }
}

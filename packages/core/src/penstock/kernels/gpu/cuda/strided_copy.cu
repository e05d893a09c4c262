// Copies of samples whose innermost axes lie next to one another in memory: rows of bytes, anywhere.
#include "strided_copy_blocks.cuh"
#include "strided_copy_span.cuh"

struct Rows {
  uint32 first_block;
  uint32 per_block;  // pieces that a block copies
  uint64 source, target;
  uint64 width;   // of a row, in bytes
  uint64 chunks;  // pieces of a row
  uint64 pieces;  // of the sample
};

constexpr uint32 CHUNK = 2048;

// Each `lanes` threads copy a piece at a time: a row, or a part of it that ends where the target is
// aligned.
__global__ void __launch_bounds__(256)
copy_rows(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count,
          uint32 lanes) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Rows& rows = *reinterpret_cast<const Rows*>(share.record);
  const Axis* axes = reinterpret_cast<const Axis*>(&rows + 1);
  const uint32 lane = threadIdx.x & (lanes - 1), groups = blockDim.x / lanes;
  const uint64 first = uint64(share.block) * rows.per_block;
  const uint64 last = min(first + rows.per_block, rows.pieces);
  for (uint64 piece = first + threadIdx.x / lanes; piece < last; piece += groups) {
    Quotient<uint64> row = {piece, 0};
    if (rows.chunks > 1) row = divided(piece, rows.chunks);
    const Offsets at = offsets_of(axes, axis_count, row.whole);
    const uint8* source = reinterpret_cast<const uint8*>(rows.source + at.source);
    uint8* target = reinterpret_cast<uint8*>(rows.target + at.target);
    const uint64 phase = reinterpret_cast<uint64>(target) & 15;
    const uint64 begin = row.rest ? row.rest * CHUNK - phase : 0;
    uint64 end = rows.width;
    if (row.rest + 1 < rows.chunks) end = min(end, (row.rest + 1) * CHUNK - phase);
    if (begin < end) copy_span(target + begin, source + begin, uint32(end - begin), lane, lanes);
  }
}

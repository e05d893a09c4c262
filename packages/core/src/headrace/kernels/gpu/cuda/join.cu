// Runs of words, a fixed distance apart in the target, that follow one another in the source.
#include "common.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "join:EACH"

#include "join:Piece"

template <typename Word>
__global__ void __launch_bounds__(THREADS)
join(const uint8* records, uint32 pitch, uint32 pieces, uint32 uniform) {
  const Share share = share_of({records, pitch, pieces, uniform}, blockIdx.x);
  const Piece& piece = *reinterpret_cast<const Piece*>(share.record);
  const Word* const source = reinterpret_cast<const Word*>(piece.source);
  Word* const target = reinterpret_cast<Word*>(piece.target);
  const uint64 length = piece.length, size = uint64(piece.runs) * length;
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
#pragma unroll
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= size) return;
    const auto place = divided(k, length);
    target[place.whole * uint64(piece.pitch) + place.rest] = source[k];
  }
}

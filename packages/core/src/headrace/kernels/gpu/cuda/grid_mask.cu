// Squares of a grid, set to zero.
#include "common.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "grid_mask:EACH"

#include "grid_mask:Image"

template <typename Word>
__global__ void __launch_bounds__(THREADS)
mask_grid(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Image& image = *reinterpret_cast<const Image*>(share.record);
  const Word* const source = reinterpret_cast<const Word*>(image.source);
  Word* const out = reinterpret_cast<Word*>(image.out);
  const uint64 begin = uint64(share.block) * (THREADS * EACH) + threadIdx.x;
  const uint32 channels = uint32(image.channels);
  for (uint32 e = 0; e < EACH; e++) {
    const uint64 k = begin + e * THREADS;
    if (k >= uint64(image.pixels)) return;
    const auto pixel = divided(k, uint64(image.width));
    const float x = float(pixel.rest), y = float(pixel.whole);
    // As on the CPU: nothing is contracted.
    const float u = __fsub_rn(
        __fsub_rn(__fmul_rn(x, image.cosine), __fmul_rn(y, image.sine)), image.shift_x);
    const float v = __fsub_rn(
        __fadd_rn(__fmul_rn(x, image.sine), __fmul_rn(y, image.cosine)), image.shift_y);
    const bool masked = u - floorf(u) < image.ratio && v - floorf(v) < image.ratio;
    const Word* const given = source + k * channels;
    Word* const made = out + k * channels;
    for (uint32 c = 0; c < channels; c++) made[c] = masked ? Word(0) : given[c];
  }
}

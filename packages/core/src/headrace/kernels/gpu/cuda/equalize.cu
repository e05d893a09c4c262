// Equalization of histograms: the device's side of kernels/cpu/equalize.py, bit by bit.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
constexpr int LEVELS = 256;
static_assert(LEVELS == THREADS, "each thread has a level of its own");

#include "equalize:Images"

// One block for each channel of an image, and one thread for each level.
__global__ void __launch_bounds__(THREADS)
equalize(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  __shared__ int32 below[LEVELS];
  __shared__ uint8 table[LEVELS];
  __shared__ int32 lowest;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Images& images = *reinterpret_cast<const Images*>(share.record);
  const uint32 channels = images.channels, image = share.block / channels;
  const int64 pixels = images.pixels;
  const int64 begin = image * pixels * channels + (share.block - image * channels);
  const uint8* const source = reinterpret_cast<const uint8*>(images.source) + begin;
  uint8* const out = reinterpret_cast<uint8*>(images.out) + begin;
  const int level = threadIdx.x;

  below[level] = 0;
  if (level == 0) lowest = LEVELS;
  __syncthreads();
  for (int64 i = level; i < pixels; i += THREADS) atomicAdd(&below[source[i * channels]], 1);
  __syncthreads();
  const int32 own = below[level];
  if (own) atomicMin(&lowest, level);
  __syncthreads();
  const int32 of_lowest = below[lowest];
  __syncthreads();
  // Pixels that are no brighter, but for those of the lowest level.
  if (level == lowest) below[level] = 0;
  __syncthreads();
  for (int step = 1; step < LEVELS; step *= 2) {
    const int32 more = level >= step ? below[level - step] : 0;
    __syncthreads();
    below[level] += more;
    __syncthreads();
  }
  if (of_lowest == pixels) {
    table[level] = uint8(level);
  } else {
    const float scale = float(LEVELS - 1) / float(pixels - of_lowest);
    table[level] = uint8(rintf(float(below[level]) * scale));
  }
  __syncthreads();
  for (int64 i = level; i < pixels; i += THREADS) out[i * channels] = table[source[i * channels]];
}

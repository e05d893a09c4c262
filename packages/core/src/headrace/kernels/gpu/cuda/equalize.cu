// Equalization of histograms: the device's side of kernels/cpu/equalize.py, bit by bit.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "equalize:LEVELS"
#include "equalize:PART"
static_assert(LEVELS == THREADS, "each thread has a level of its own");

#include "equalize:Images"

// The pixels of a channel that a block works on.
struct Part {
  int64 offset;  // of the channel's first level
  int64 begin, end;
  uint32 channel;  // of all images of the sample
};

__device__ __forceinline__ Part part_of(const Images& images, uint32 block) {
  const uint32 channel = block / images.parts, part = block - channel * images.parts;
  const uint32 image = channel / images.channels;
  const int64 begin = int64(part) * PART;
  return {image * images.pixels * images.channels + (channel - image * images.channels), begin,
          min(begin + int64(PART), images.pixels), channel};
}

// One block for a part of a channel of an image, and one thread for each level.
__global__ void __launch_bounds__(THREADS)
count_levels(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  __shared__ uint32 counts[LEVELS];
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Images& images = *reinterpret_cast<const Images*>(share.record);
  const Part part = part_of(images, share.block);
  const int64 channels = images.channels;
  const uint8* const source = reinterpret_cast<const uint8*>(images.source) + part.offset;
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int64 i = part.begin + threadIdx.x; i < part.end; i += THREADS) {
    atomicAdd(&counts[source[i * channels]], 1u);
  }
  __syncthreads();
  reinterpret_cast<uint32*>(images.counts)[uint64(share.block) * LEVELS + threadIdx.x] =
      counts[threadIdx.x];
}

__global__ void __launch_bounds__(THREADS)
equalize(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  __shared__ int32 below[LEVELS];
  __shared__ uint8 table[LEVELS];
  __shared__ int32 lowest;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Images& images = *reinterpret_cast<const Images*>(share.record);
  const Part part = part_of(images, share.block);
  const int64 pixels = images.pixels, channels = images.channels;
  const uint8* const source = reinterpret_cast<const uint8*>(images.source) + part.offset;
  uint8* const out = reinterpret_cast<uint8*>(images.out) + part.offset;
  const int level = threadIdx.x;

  const uint32* const counts = reinterpret_cast<const uint32*>(images.counts) +
                               uint64(part.channel) * images.parts * LEVELS + level;
  int32 own = 0;
  for (uint32 k = 0; k < images.parts; k++) own += counts[k * LEVELS];
  below[level] = own;
  if (level == 0) lowest = LEVELS;
  __syncthreads();
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
  for (int64 i = part.begin + level; i < part.end; i += THREADS) {
    out[i * channels] = table[source[i * channels]];
  }
}

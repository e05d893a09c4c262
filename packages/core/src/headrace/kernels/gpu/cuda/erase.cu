// Regions of samples filled with values, one for all or one a channel.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "erase:AXES"

#include "erase:Region"

// `T` is the type of the bits.
template <typename T>
__global__ void __launch_bounds__(THREADS)
fill_regions(const uint8* records, uint32 pitch, uint32 regions, uint32 uniform) {
  const Share share = share_of({records, pitch, regions, uniform}, blockIdx.x);
  const Region& region = *reinterpret_cast<const Region*>(share.record);
  const int64 index = int64(share.block) * THREADS + threadIdx.x;
  if (index >= region.size) return;
  uint64 number = index, fill = 0;
  int64 place = 0;
  for (int k = AXES - 1; k >= 0; k--) {
    if (region.extents[k] == 1) continue;
    const auto next = divided(number, uint64(region.extents[k]));
    if (k == region.channel) fill = next.rest;
    place += int64(next.rest) * region.strides[k];
    number = next.whole;
  }
  reinterpret_cast<T*>(region.out)[place] = reinterpret_cast<const T*>(region.fills)[fill];
}

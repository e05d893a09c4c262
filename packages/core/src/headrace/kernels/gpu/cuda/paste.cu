// Images pasted together of regions of others.
#include "cast.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "paste:PastedRegion"
#include "paste:PastedImage"

template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
paste(const uint8* records, uint32 pitch, uint32 images, uint32 uniform) {
  const Share share = share_of({records, pitch, images, uniform}, blockIdx.x);
  const PastedImage& image = *reinterpret_cast<const PastedImage*>(share.record);
  const int64 index = int64(share.block) * THREADS + threadIdx.x;
  if (index >= image.size) return;
  const auto pixel = divided(uint64(index), uint64(image.channels));
  const auto place = divided(pixel.whole, uint64(image.width));
  const PastedRegion* const regions = reinterpret_cast<const PastedRegion*>(image.regions);
  Out value = 0;
  for (int32 k = image.count - 1; k >= 0; k--) {  // the last one lies on top
    const PastedRegion& region = regions[k];
    const int64 y = int64(place.whole) - region.target[0], x = int64(place.rest) - region.target[1];
    if (y < 0 || x < 0 || y >= region.extent[0] || x >= region.extent[1]) continue;
    const int64 from = (region.begin[0] + y) * region.width + region.begin[1] + x;
    const In* const source = reinterpret_cast<const In*>(region.source);
    value = cast_to<Out>(source[from * image.channels + int64(pixel.rest)]);
    break;
  }
  reinterpret_cast<Out*>(image.out)[index] = value;
}

// Conversion of decoded images whose rows stay rows.
#include "decode_convert.cuh"

#include "decode.convert:BYTES_EACH"
#include "decode.convert:PIXELS_EACH"

// What a thread converts at once: BYTES_EACH of the larger type.
template <typename In, typename Out>
constexpr int kElements = BYTES_EACH / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));

template <typename T, int count> struct alignas(sizeof(T) * count) Pack { T values[count]; };

// Images without gaps that stay as they are but for the type of their elements.
// Grid: pieces of blockDim.x * kElements elements, images.
template <typename In, typename Out>
__global__ void convert_elements(const DecodedImage *images) {
  const DecodedImage image = images[blockIdx.y];
  const int64 count = int64(image.height) * image.width * image.channels;
  const In *source = reinterpret_cast<const In *>(image.source);
  Out *target = reinterpret_cast<Out *>(image.target);
  constexpr int many = kElements<In, Out>;
  using InPack = Pack<In, many>;
  using OutPack = Pack<Out, many>;
  const int64 start = (int64(blockIdx.x) * blockDim.x + threadIdx.x) * many;
  if (start >= count) return;
  const bool aligned =
      image.source % alignof(InPack) == 0 && image.target % alignof(OutPack) == 0;
  if (aligned && start + many <= count) {
    const InPack in = *reinterpret_cast<const InPack *>(source + start);
    OutPack out;
#pragma unroll
    for (int k = 0; k < many; k++) out.values[k] = rescaled<In, Out>(in.values[k]);
    *reinterpret_cast<OutPack *>(target + start) = out;
    return;
  }
  const int64 end = start + many < count ? start + many : count;
  for (int64 i = start; i < end; i++) target[i] = rescaled<In, Out>(source[i]);
}

// Any image whose rows are rows of what is stored, in whatever direction.
// Grid: pieces of blockDim.x * PIXELS_EACH pixels, images. Neighbours handle neighbouring pixels.
template <typename In, typename Out>
__global__ void convert_pixels(const DecodedImage *images, const float *matrix) {
  const DecodedImage image = images[blockIdx.y];
  const uint32 width = image.width, count = uint32(image.height) * width;
  const In *source = reinterpret_cast<const In *>(image.source);
  Out *target = reinterpret_cast<Out *>(image.target);
  uint32 pixel = blockIdx.x * blockDim.x * PIXELS_EACH + threadIdx.x;
  if (pixel >= count) return;
  uint32 row = pixel / width, column = pixel % width;
  for (int k = 0; k < PIXELS_EACH && pixel < count; k++) {
    store_pixel<In, Out>(
        source + row * image.row_step + column * image.column_step,
        target + int64(pixel) * image.channels, image.channels, matrix);
    pixel += blockDim.x;
    column += blockDim.x;
    if (column >= width) {
      const uint32 rows = width >= blockDim.x ? 1 : column / width;
      row += rows;
      column -= rows * width;
    }
  }
}

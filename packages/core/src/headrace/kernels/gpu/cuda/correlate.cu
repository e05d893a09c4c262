// Weighted sums of neighbourhoods: the device's side of kernels/cpu/correlate.py.
#include "as_float.cuh"
#include "arithmetic_types.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "correlate:Border"
#include "correlate:Image"

// Which element stands at `position`; -1 where there is none.
__device__ __forceinline__ int mirrored(int position, int extent, int border) {
  if (position >= 0 && position < extent) return position;
  if (border == CONSTANT) return -1;
  if (border == CLAMP) return position < 0 ? 0 : extent - 1;
  if (border != WRAP && extent == 1) return 0;
  const int period = border == WRAP ? extent : 2 * extent - (border == REFLECT_101 ? 2 : 0);
  position %= period;
  if (position < 0) position += period;
  return position < extent ? position : period - position - (border == REFLECT_1001);
}

// Halves become the even neighbour, and limits are kept.
template <typename Out> __device__ __forceinline__ Out rounded(float value) {
  if constexpr (!Limits<Out>::is_integer) {
    return saturated<Out>(value);
  } else {
    constexpr float low = is_signed<Out> ? -float(1 << (bits<Out> - 1)) : 0.0f;
    constexpr float high = float(highest<Out>);
    value = rintf(value);
    return static_cast<Out>(static_cast<int32>(fminf(fmaxf(value, low), high)));
  }
}

template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
correlate(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 border) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Image& image = *reinterpret_cast<const Image*>(share.record);
  const int64 number = int64(share.block) * THREADS + threadIdx.x;
  if (number >= image.size) return;
  const auto pixel = divided(uint64(number), uint64(image.channels));
  const auto row = divided(pixel.whole, uint64(image.out_extents[2]));
  const auto slice = divided(row.whole, uint64(image.out_extents[1]));
  const auto plane = divided(slice.whole, uint64(image.out_extents[0]));
  const int x = int(row.rest) - image.anchor[2], y = int(slice.rest) - image.anchor[1],
            z = int(plane.rest) - image.anchor[0];
  const int depth = image.extents[0], height = image.extents[1], width = image.extents[2];
  const int channels = image.channels;
  const In* const source = reinterpret_cast<const In*>(image.source) +
                           int64(plane.whole) * depth * height * width * channels + pixel.rest;
  const float* weight = reinterpret_cast<const float*>(image.weights);
  const float fill = image.fill ? as_float(*reinterpret_cast<const In*>(image.fill)) : 0.0f;
  float sum = 0.0f;
  for (int k = 0; k < image.window[0]; k++) {
    const int at_z = mirrored(z + k, depth, border);
    for (int j = 0; j < image.window[1]; j++) {
      const int at_y = mirrored(y + j, height, border);
      const int64 line = (int64(at_z) * height + at_y) * width;
      for (int i = 0; i < image.window[2]; i++, weight++) {
        const int at_x = mirrored(x + i, width, border);
        const bool outside = (at_z | at_y | at_x) < 0;
        const float value = outside ? fill : as_float(source[(line + at_x) * channels]);
        sum = __fmaf_rn(value, __ldg(weight), sum);
      }
    }
  }
  reinterpret_cast<Out*>(image.out)[number] = rounded<Out>(sum);
}

// (pixel - mean) * factor on the way from one layout and element type to another: the device's side
// of kernels/cpu/normalize_pixels.py.
//
// A unit is a pixel, all G channels of it, or, where G is 1, one element of a pixel or a plane. A
// block makes UNITS of them, neighbours in the output. Samples may have any strides.
#include "normalize_pixels_runs.cuh"

struct Range {
  int begin, end;
  __device__ __forceinline__ bool has(int value) const { return value >= begin && value < end; }
};

struct NormalizedSample {
  uint32 first_block;
  const char* source;  // of the first element of the window; need not be in the data
  int64 outer, inner, row, pixel, channel;  // bytes between neighbours
  char* out;
  int64 out_outer, out_inner, out_row, out_pixel, out_channel;  // elements between neighbours
  const float* table;
  Range in_outer, in_inner, in_rows, in_columns;  // what of the window is in the data
  int inners, height, width;
  int channels, out_channels;
  int planes;  // planes a frame is worked on in; 1 where a block makes all channels
  int groups;  // units a pixel
  int mode;
};

template <typename In, typename Out, int G>
__global__ void __launch_bounds__(BLOCK, 4)
    normalize_pixels(const uint8* records, uint32 pitch, uint32 count, uint32 uniform) {
  constexpr int MOST = G == 3 ? 4 : G;  // channels of the output: three may be padded
  __shared__ __align__(16) uint8 memory[MOST * Runs<Out>::BYTES];
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const NormalizedSample& s = *reinterpret_cast<const NormalizedSample*>(share.record);
  const uint32 row_units = s.width * s.groups, frame_units = s.height * row_units;
  const uint32 frame_blocks = (frame_units + UNITS - 1) / UNITS;
  uint32 frame = share.block / frame_blocks;
  const uint32 first = (share.block - frame * frame_blocks) * UNITS;
  const uint32 units = min(frame_units - first, uint32(UNITS));
  int plane = 0;
  if (s.planes > 1) {
    plane = frame % s.planes;
    frame /= s.planes;
  }
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  const bool in_frame = s.in_outer.has(outer) && s.in_inner.has(inner);
  const char* source = s.source + outer * s.outer + inner * s.inner + plane * s.channel;
  Out* out = reinterpret_cast<Out*>(s.out) + outer * s.out_outer + inner * s.out_inner +
             plane * s.out_channel;
  const Finish finish{s.table, s.out_channels};

  const uint32 first_row = first / row_units, first_unit = first - first_row * row_units;
  const Divider rows(row_units);
  const int step = s.mode == PIXELS ? (G > 1 ? s.out_channels : 1) : 1;
  Out* target = out + int64(first) * step;
  const Runs<Out> runs{reinterpret_cast<Out*>(memory)};

  // All loads come before the first use, to be on their way together.
  In given[ITEMS][G];
  int channels[ITEMS];  // that the data has, of a unit's
  int units_channel[ITEMS];
  int64 places[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32 unit = threadIdx.x + i * BLOCK;
    const uint32 down = rows(first_unit + unit);
    const int y = first_row + down;
    int x = first_unit + unit - down * row_units;
    int channel = plane;
    if (s.groups > 1) {
      const int element = x;
      x = uint32(element) / uint32(s.groups);
      channel = element - x * s.groups;
    }
    const bool inside = unit < units && in_frame && s.in_rows.has(y) && s.in_columns.has(x);
    const int further = s.groups > 1 ? channel : 0;
    const char* pixel = source + y * s.row + x * s.pixel + further * s.channel;
    places[i] = y * s.out_row + x * s.out_pixel + further * s.out_channel;
    units_channel[i] = channel;
    channels[i] = inside ? s.channels - channel : 0;
#pragma unroll
    for (int g = 0; g < G; ++g)
      if (g < channels[i]) given[i][g] = __ldg(reinterpret_cast<const In*>(pixel + g * s.channel));
  }

#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32 unit = threadIdx.x + i * BLOCK;
    if (unit >= units) break;
#pragma unroll
    for (int c = 0; c < MOST; ++c) {
      if (c >= G && c >= s.out_channels) break;
      const int channel = units_channel[i] + c;
      Out value;
      if (c < G && c < channels[i]) {
        const float number = static_cast<float>(widened(given[i][c < G ? c : 0]));
        value = finish.template number<Out>(number, channel);
      } else {
        value = finish.template outside<Out>(channel);
      }
      if (s.mode == SCATTERED) out[places[i] + c * s.out_channel] = value;
      else if (s.mode == PIXELS) runs.place(0, target)[unit * step + c] = value;
      else runs.place(c, target + c * s.out_channel)[unit] = value;
    }
  }
  if (s.mode == SCATTERED) return;
  __syncthreads();
  if (s.mode == PIXELS) {
    runs.leave(0, target, units * step);
  } else {
    const int parts = G > 1 ? s.out_channels : 1;
    for (int c = 0; c < parts; ++c) runs.leave(c, target + c * s.out_channel, units);
  }
}

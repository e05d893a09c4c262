// Resampling where few source pixels, or many channels, make an output pixel: every thread reads
// what it needs. A unit is a pixel of G channels, or, where G is 1, an element of one; a block
// makes UNITS of them.
#include "resample.cuh"

// MODE: how the output is written. TAPS along each axis: 1, at most 2, or, for 0, any number.
template <typename In, typename Out, int G, int MODE, int TAPS>
__global__ void __launch_bounds__(BLOCK)
    resample_direct(const uint8* records, uint32 pitch, uint32 count, uint32 uniform, int rounds,
                    float low, float high) {
  constexpr int MOST = G == 3 ? 4 : G;  // channels of the output: three may be padded
  __shared__ __align__(16) uint8 memory[MODE == SCATTERED ? 16 : MOST * Runs<Out>::BYTES];
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const ResampledSample& s = *reinterpret_cast<const ResampledSample*>(share.record);
  const int channels = G > 1 ? G : s.channels;
  const uint32 groups = channels / G, row_units = s.width * groups;
  const uint32 frame_units = s.height * row_units;
  const uint32 frame_blocks = (frame_units + UNITS - 1) / UNITS;
  const uint32 frame = share.block / frame_blocks;
  const uint32 first = (share.block - frame * frame_blocks) * UNITS;
  const uint32 units = min(frame_units - first, uint32(UNITS));
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  const char* source = s.source + outer * s.outer + inner * s.inner;
  Out* out = reinterpret_cast<Out*>(s.out) + outer * s.out_outer + inner * s.out_inner;
  const Finish finish{s.table, s.out_channels};
  const Rounding rounded{rounds, low, high};
  const int row_taps = s.row_taps, column_taps = s.column_taps;
  const int pixel_bytes = channels * int(sizeof(In));

  const uint32 first_row = first / row_units, first_unit = first - first_row * row_units;
  const Divider rows(row_units);
  const int step = MODE == PIXELS ? (groups > 1 ? G : s.out_channels) : 1;
  Out* target = out + int64(first) * step;
  const Runs<Out> runs{reinterpret_cast<Out*>(memory)};

  float values[ITEMS][G];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32 unit = min(threadIdx.x + i * BLOCK, units - 1);
    const uint32 down = rows(first_unit + unit);
    const uint32 y = first_row + down, in_row = first_unit + unit - down * row_units;
    const uint32 x = groups > 1 ? in_row / groups : in_row;
    const int channel = groups > 1 ? int(in_row - x * groups) * G : 0;
    const int top = __ldg(s.row_first + y), left = __ldg(s.column_first + x);
    const char* place =
        source + top * s.row + int64(left) * pixel_bytes + channel * int(sizeof(In));
    if constexpr (TAPS == 1) {
#pragma unroll
      for (int g = 0; g < G; ++g) values[i][g] = number_at<In>(place + g * int(sizeof(In)));
    } else {
      const float* row_weights = s.row_weights + int64(y) * row_taps;
      const float* column_weights = s.column_weights + int64(x) * column_taps;
#pragma unroll
      for (int g = 0; g < G; ++g) values[i][g] = 0.0f;
#pragma unroll
      for (int kx = 0; kx < (TAPS ? TAPS : column_taps); ++kx) {
        if (TAPS && kx >= column_taps) break;
        float sums[G];
#pragma unroll
        for (int g = 0; g < G; ++g) sums[g] = 0.0f;
        const char* tap = place + kx * pixel_bytes;
#pragma unroll
        for (int ky = 0; ky < (TAPS ? TAPS : row_taps); ++ky) {
          if (TAPS && ky >= row_taps) break;
          const float weight = __ldg(row_weights + ky);
#pragma unroll
          for (int g = 0; g < G; ++g)
            sums[g] = __fmaf_rn(weight, number_at<In>(tap + g * int(sizeof(In))), sums[g]);
          tap += s.row;
        }
        const float weight = __ldg(column_weights + kx);
#pragma unroll
        for (int g = 0; g < G; ++g) values[i][g] = __fmaf_rn(weight, sums[g], values[i][g]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const uint32 unit = threadIdx.x + i * BLOCK;
    if (unit >= units) break;
    const uint32 down = rows(first_unit + unit);
    const uint32 in_row = first_unit + unit - down * row_units;
    const uint32 x = groups > 1 ? in_row / groups : in_row;
    const int channel = groups > 1 ? int(in_row - x * groups) * G : 0;
    Out* scattered = out + (first_row + down) * s.out_row + x * s.out_pixel;
    const auto put = [&](int c, Out value) {
      const int part = groups > 1 ? c - channel : c;
      if constexpr (MODE == SCATTERED) scattered[c * s.out_channel] = value;
      else if constexpr (MODE == PIXELS) runs.place(0, target)[unit * step + part] = value;
      else runs.place(c, target + c * s.out_channel)[unit] = value;
    };
#pragma unroll
    for (int g = 0; g < G; ++g)
      put(channel + g, finish.template number<Out>(rounded(values[i][g]), channel + g));
    if (channel + G == channels)
      for (int c = channels; c < s.out_channels; ++c) put(c, finish.template outside<Out>(c));
  }
  if constexpr (MODE != SCATTERED) {
    __syncthreads();
    const int parts = MODE == PIXELS ? 1 : s.out_channels;
    for (int p = 0; p < parts; ++p) runs.leave(p, target + p * s.out_channel, units * step);
  }
}

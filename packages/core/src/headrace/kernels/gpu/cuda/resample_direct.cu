// Resampling where few source pixels, or many channels, make an output pixel: every thread reads
// what it needs. A unit is a pixel of G channels, or, where G is 1, an element of one; a block
// makes UNITS of them.
#include "resample.cuh"
#include "resample_numbers.cuh"

// Bytes around two pixels of G channels that may be read: at most 3 in front, and so many from them on.
constexpr int READ_BYTES = 12;

// Eight bytes from any place on, of which so many as two pixels of G channels have are wanted: words
// without wanted bytes are not read.
template <int G> __device__ __forceinline__ void read_two(const char* place, uint32 (&words)[2]) {
  const uint32 phase = uint32(reinterpret_cast<uint64>(place)) & 3;
  const uint32* const from = reinterpret_cast<const uint32*>(place - phase);
  const uint32 first = __ldg(from), second = __ldg(from + 1);
  const uint32 third = phase + 2 * G > 8 ? __ldg(from + 2) : 0;
  words[0] = __funnelshift_r(first, second, 8 * phase);
  words[1] = __funnelshift_r(second, third, 8 * phase);
}

// A pixel of bytes, from two pixels of two lines.
template <int G>
__device__ __forceinline__ void blend_two(const char* top, const char* bottom,
                                          const float* row_weights, const float* column_weights,
                                          float (&values)[G]) {
  uint32 upper[2], lower[2];
  read_two<G>(top, upper);
  read_two<G>(bottom, lower);
  const float above = __ldg(row_weights) * ROW_SCALE<uint8>;
  const float below = __ldg(row_weights + 1) * ROW_SCALE<uint8>;
  const float left = __ldg(column_weights) * COLUMN_SCALE<uint8>;
  const float right = __ldg(column_weights + 1) * COLUMN_SCALE<uint8>;
  const auto mean = [&](int e) {
    const float sum = __fmaf_rn(above, number_of<uint8>(upper[e / 4], e % 4), 0.0f);
    return __fmaf_rn(below, number_of<uint8>(lower[e / 4], e % 4), sum);
  };
#pragma unroll
  for (int g = 0; g < G; ++g)
    values[g] = __fmaf_rn(right, mean(G + g), __fmaf_rn(left, mean(g), 0.0f));
}

// MODE: how the output is written. TAPS along each axis: 1, at most 2, or, for 0, any number.
template <typename In, typename Out, int G, int MODE, int TAPS>
__global__ void __launch_bounds__(THREADS)
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
  constexpr bool PAIRS = TAPS == 2 && same<In, uint8> && G > 1;
  bool by_pairs = PAIRS && row_taps == 2 && column_taps == 2;
  const int pixel_bytes = channels * int(sizeof(In));

  const uint32 first_row = first / row_units, first_unit = first - first_row * row_units;
  const Divider rows(row_units);
  const int step = MODE == PIXELS ? (groups > 1 ? G : s.out_channels) : 1;
  Out* target = out + int64(first) * step;
  const Runs<Out> runs{reinterpret_cast<Out*>(memory)};

  float values[ITEMS][G];
  if constexpr (PAIRS) {
    if (by_pairs) {
      const int64 row = s.row;
      const int* const tops = s.row_first;
      const int* const lefts = s.column_first;
      const float* const row_weights = s.row_weights;
      const float* const column_weights = s.column_weights;
      const FrameLimits limits = limits_of(s, reinterpret_cast<uint64>(source), pixel_bytes);
      const char* upper[ITEMS];
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const uint32 unit = min(threadIdx.x + i * THREADS, units - 1), down = rows(first_unit + unit);
        const uint32 y = first_row + down, x = first_unit + unit - down * row_units;
        upper[i] = source + __ldg(tops + y) * row + __ldg(lefts + x) * G;
        const uint64 one = reinterpret_cast<uint64>(upper[i]), other = one + row;
        by_pairs &= min(one, other) >= limits.low + 3 && max(one, other) + READ_BYTES <= limits.high;
      }
      if (by_pairs) {
#pragma unroll
        for (int i = 0; i < ITEMS; ++i) {
          const uint32 unit = min(threadIdx.x + i * THREADS, units - 1), down = rows(first_unit + unit);
          const uint32 y = first_row + down, x = first_unit + unit - down * row_units;
          blend_two<G>(upper[i], upper[i] + row, row_weights + 2 * int64(y), column_weights + 2 * x,
                       values[i]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (by_pairs) break;
    const uint32 unit = min(threadIdx.x + i * THREADS, units - 1);
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
    const uint32 unit = threadIdx.x + i * THREADS;
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
      put(channel + g, s.table == nullptr && rounds
                           ? rounded.template whole<Out>(values[i][g])
                           : finish.template number<Out>(rounded(values[i][g]), channel + g));
    if (channel + G == channels)
      for (int c = channels; c < s.out_channels; ++c) put(c, finish.template outside<Out>(c));
  }
  if constexpr (MODE != SCATTERED) {
    __syncthreads();
    const int parts = MODE == PIXELS ? 1 : s.out_channels;
    for (int p = 0; p < parts; ++p) runs.leave(p, target + p * s.out_channel, units * step);
  }
}

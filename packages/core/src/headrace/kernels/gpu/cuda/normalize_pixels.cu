// (pixel - mean) * factor on the way from one layout and element type to another: the device's side
// of kernels/cpu/normalize_pixels.py.
//
// A unit is a pixel of G channels, which lie side by side, or, where G is 1, an element of a pixel
// or of a plane. A block makes UNITS of them at a time, neighbours in the output, and then maybe
// more, as what it has to find out before takes longer than that. Samples may have any strides.
#include "colors_as_they_are.cuh"
#include "normalize_pixels_runs.cuh"

#include "normalize_pixels:NormalizedSample"

// Whether a position lies within a part, its begin and end.
__device__ __forceinline__ bool has(const int (&part)[2], int value) {
  return value >= part[0] && value < part[1];
}

// MODE: how the output is written. CHECKED: what is wanted may not be in the data. Offset: of the
// elements of a frame, in bytes of the source and in elements of the output.
template <typename In, typename Out, int G, int MODE, bool CHECKED, typename Offset,
          typename Colors = ColorsAsTheyAre>
__global__ void __launch_bounds__(THREADS, 4)
    normalize_pixels(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                     const uint8* colors) {
  // Channels of the output: three may be padded.
  constexpr int MOST = CHECKED && G == 3 ? 4 : G;
  // A warp that writes 4 bytes a thread fills whole sectors as it is.
  constexpr bool STAGED = MODE == PIXELS || (MODE == PLANES && sizeof(Out) < 4);
  __shared__ __align__(16) uint8 memory[STAGED ? MOST * Runs<Out>::BYTES : 16];
  const Runs<Out> runs{reinterpret_cast<Out*>(memory)};
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const NormalizedSample& s = *reinterpret_cast<const NormalizedSample*>(share.record);
  const uint32 groups = G > 1 ? 1 : s.groups;
  const uint32 row_units = s.width * groups, frame_units = s.height * row_units;
  const uint32 block_units = s.turns * UNITS;
  const uint32 frame_blocks = (frame_units + block_units - 1) / block_units;
  uint32 frame = share.block / frame_blocks;
  uint32 first = (share.block - frame * frame_blocks) * block_units;
  const uint32 end = min(first + block_units, frame_units);
  int plane = 0;
  if (G == 1 && s.planes > 1) {
    plane = frame % s.planes;
    frame /= s.planes;
  }
  const int outer = frame / s.inners, inner = frame - outer * s.inners;
  const bool in_frame = !CHECKED || (has(s.inside[0], outer) && has(s.inside[1], inner));
  const char* source = s.source + outer * s.strides[0] + inner * s.strides[1];
  Out* out = reinterpret_cast<Out*>(s.out) + outer * s.out_strides[0] + inner * s.out_strides[1] +
             plane * s.out_strides[4];
  const Offset row = s.strides[2], pixel = s.strides[3], channel_step = s.strides[4];
  const Offset out_row = s.out_strides[2], out_pixel = s.out_strides[3];
  const Offset out_channel = s.out_strides[4];
  const int channels = G > 1 ? G : s.channels;
  const int out_channels = G == 1 ? 1 : CHECKED ? s.out_channels : G;
  const int step = MODE == PIXELS ? out_channels : 1;

  const Finish finish{s.table, s.out_channels};
  float means[G], factors[G];
#pragma unroll
  for (int g = 0; g < G; ++g) {
    means[g] = finish.mean(plane + g);
    factors[g] = finish.factor(plane + g);
  }

  const Divider rows(row_units);
  uint32 first_row = first / row_units, first_unit = first - first_row * row_units;
  for (; first < end; first += UNITS) {
    const uint32 units = min(end - first, uint32(UNITS));
    // All loads come before the first use, to be on their way together.
    In given[ITEMS][G];
    int there[ITEMS], parts[ITEMS];  // channels in the data; the first channel, of each unit
    Offset scattered[ITEMS];
    bool wanted[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      wanted[i] = threadIdx.x + i * THREADS < units;
      const uint32 unit = first_unit + (wanted[i] ? threadIdx.x + i * THREADS : 0);
      const uint32 down = rows(unit);
      const int y = first_row + down;
      int x = unit - down * row_units;
      parts[i] = plane;
      if (G == 1 && groups > 1) {
        const uint32 element = x;
        x = element / groups;
        parts[i] = element - x * groups;
      }
      const char* place = source + (y * row + x * pixel + parts[i] * channel_step);
      there[i] = G;
      if constexpr (CHECKED) {
        const bool inside = in_frame && has(s.inside[2], y) && has(s.inside[3], x);
        there[i] = inside ? channels - parts[i] : 0;
      }
#pragma unroll
      for (int g = 0; g < G; ++g)
        if (g < there[i]) given[i][g] = __ldg(reinterpret_cast<const In*>(place) + g);
      if constexpr (MODE == SCATTERED)
        scattered[i] = y * out_row + x * out_pixel + (parts[i] - plane) * out_channel;
    }

    if constexpr (Colors::present) {
      const uint32 sample = uint32((share.record - records) / pitch);
#pragma unroll
      for (int i = 0; i < ITEMS; ++i)
        if (there[i] == G) change_colors<Colors>(colors, sample, given[i]);
    }

    Out* target = out + int64(first) * step;
#pragma unroll
    for (int c = 0; c < MOST; ++c) {
      if (c >= out_channels) break;
      Out* place = MODE == SCATTERED ? out + c * out_channel : target + c * out_channel;
      if constexpr (STAGED)
        place = MODE == PIXELS ? runs.place(0, target) + c : runs.place(c, place);
      if constexpr (MODE != SCATTERED) place += threadIdx.x * step;
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int channel = parts[i] + c, g = c < G ? c : 0;
        Out value;
        if (!CHECKED || c < there[i]) {
          const float number = static_cast<float>(widened(given[i][g]));
          if (G == 1 && groups > 1) value = finish.template number<Out>(number, channel);
          else value = Finish::template normalized<Out>(number, means[g], factors[g]);
        } else {
          value = finish.template outside<Out>(channel);
        }
        if (wanted[i]) place[MODE == SCATTERED ? scattered[i] : i * THREADS * step] = value;
      }
    }
    if constexpr (STAGED) {
      __syncthreads();
      const int count = MODE == PIXELS ? 1 : out_channels;
      for (int p = 0; p < count; ++p) runs.leave(p, target + p * out_channel, units * step);
      __syncthreads();
    }
    first_unit += UNITS;
    const uint32 down = rows(first_unit);
    first_row += down;
    first_unit -= down * row_units;
  }
}

// Weighted sums of source lines, the vertical half of resampling: from lines in shared memory, or
// from where they are.
//
// A thread sums four elements, which fill as many words as an element has bytes, for four rows of the
// output. Its sums go to the band, where the 32 rows of one element are neighbours: eight vectors of
// four. Which of the eight places a vector has differs from unit to unit, so that eight threads that
// store vectors of the same rows, and eight that load all vectors of an element, use all banks.
#pragma once
#include "resample.cuh"
#include "resample_numbers.cuh"

#include "resample:BAND"
#include "resample:ROWS"
// Elements of the band in front of the first that is wanted: words may begin before that.
template <int G> constexpr int BAND_MARGIN = G == 3 ? 3 : 4;
#include "resample:BAND_BYTES"

// Sums of N times four elements, for four rows.
template <int N> struct LineSums {
  float sums[N][4][4] = {};  // (N, row, element)

  template <typename In>
  __device__ __forceinline__ void add(int row, float weight, const uint32 (&words)[N * sizeof(In)]) {
    constexpr int SIZE = sizeof(In), IN_WORD = 4 / SIZE;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = number_of<In>(words[n * SIZE + e / IN_WORD], e % IN_WORD);
        sums[n][row][e] = __fmaf_rn(weight, value, sums[n][row][e]);
      }
  }

  // The first word of the thread has the elements from `first` on, and others follow after 32 words.
  template <typename In, int G>
  __device__ __forceinline__ void store(float4* band, int first, int four_rows) const {
    constexpr int IN_WORD = 4 / int(sizeof(In));
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int at = first + 128 * n + e / IN_WORD * 32 * IN_WORD + e % IN_WORD + BAND_MARGIN<G>;
        const uint32 unit = uint32(at) / (G > 1 ? G : IN_WORD);
        band[at * (ROWS / 4) + ((unit ^ four_rows) & 7)] =
            make_float4(sums[n][0][e], sums[n][1][e], sums[n][2][e], sums[n][3][e]);
      }
  }
};

// Sums for one warp's rows of lines in shared memory that are `pitch` bytes apart. What is after the
// ends of lines becomes sums that are not used.
// `lines`: how far after byte number `begin` the first line of each row begins. `weights`: four for each tap. EVEN: all lines
// begin where a word does, so that `skipped` elements stand in front of the wanted ones.
template <typename In, int G, int N, bool EVEN>
__device__ __forceinline__ void sum_staged(const uint8* stage, int begin, const int4& lines, int pitch,
                                           const float4* weights, int taps, int skipped,
                                           float4* band, int four_rows) {
  constexpr int SIZE = sizeof(In), IN_WORD = 4 / SIZE;
  const int lane = threadIdx.x % 32;
  begin += 4 * lane;
  int places[4] = {begin + lines.x, begin + lines.y, begin + lines.z, begin + lines.w};
  LineSums<N> total;
  const auto add_tap = [&] {
    const float4 four = *weights++;
    const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      uint32 words[N * SIZE];
      if constexpr (EVEN || SIZE == 4) {
        const uint32* const place = reinterpret_cast<const uint32*>(stage + places[row]);
#pragma unroll
        for (int n = 0; n < N * SIZE; ++n) words[n] = place[32 * n];
      } else {
        const uint32 shift = 8 * places[row];  // of which five bits count
        const uint32* const place = reinterpret_cast<const uint32*>(stage + (places[row] & ~3));
#pragma unroll
        for (int n = 0; n < N * SIZE; ++n)
          words[n] = __funnelshift_r(place[32 * n], place[32 * n + 1], shift);
      }
      total.template add<In>(row, weight[row], words);
      places[row] += pitch;
    }
  };
  // The sums that the first adds to are constants.
  add_tap();
#pragma unroll 1
  while (--taps) add_tap();
  total.template store<In, G>(band, IN_WORD * lane - skipped, four_rows);
}

// A word of a line that begins anywhere, `left` bytes before its end; nothing beyond is read.
template <typename In> __device__ __forceinline__ uint32 word_at(const char* place, int left) {
  constexpr int SIZE = sizeof(In);
  const uint32* const words = reinterpret_cast<const uint32*>(reinterpret_cast<uint64>(place) & ~uint64(3));
  const uint32 shift = 8 * (uint32(reinterpret_cast<uint64>(place)) & 3);
  if (SIZE == 4 || shift == 0) {
    if (left >= 4) return __ldg(words);
  } else if (left >= 8) {
    return __funnelshift_r(__ldg(words), __ldg(words + 1), shift);
  }
  uint32 word = 0;
#pragma unroll
  for (int i = 0; i < 4; i += SIZE) {
    if (i >= left) break;
    if constexpr (SIZE == 2) word |= uint32(__ldg(reinterpret_cast<const uint16*>(place + i))) << (8 * i);
    if constexpr (SIZE == 1) word |= uint32(__ldg(reinterpret_cast<const uint8*>(place + i))) << (8 * i);
  }
  return word;
}

// The same of lines in global memory, `stride` bytes apart, that end with element number `elements`.
// `weights`: `taps` for each row.
template <typename In, int G>
__device__ __forceinline__ void sum_far(const char* source, const int4& lines, int64 stride,
                                        const float* const (&weights)[4], int taps, int first,
                                        int elements, float4* band, int four_rows) {
  constexpr int SIZE = sizeof(In), IN_WORD = 4 / SIZE;
  const int lane = threadIdx.x % 32;
  const char* const from = source + (first * SIZE + 4 * lane);
  const char* places[4] = {from + lines.x * stride, from + lines.y * stride, from + lines.z * stride,
                           from + lines.w * stride};
  const int left = (elements - first) * SIZE - 4 * lane;
  LineSums<1> total;
#pragma unroll 2
  for (int k = 0; k < taps; ++k) {
#pragma unroll
    for (int row = 0; row < 4; ++row) {
      const float weight = __ldg(weights[row] + k) * ROW_SCALE<In>;
      uint32 words[SIZE];
#pragma unroll
      for (int n = 0; n < SIZE; ++n) words[n] = word_at<In>(places[row] + 128 * n, left - 128 * n);
      total.template add<In>(row, weight, words);
      places[row] += stride;
    }
  }
  total.template store<In, G>(band, first + IN_WORD * lane, four_rows);
}

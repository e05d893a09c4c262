// Windows of samples: what lies inside of the data is copied, or converted; what lies outside is a
// constant, or made from the inside.
//
// Threads write rows of the output, word by word. Elements of a row are runs along `x`: the window
// goes along `x`, and runs (channels, often single elements) are whole.
#include "strided_copy_blocks.cuh"
#include "strided_copy_span.cuh"
#include "truncated.cuh"

#include "window:Policy"

#include "window:Window"

#include "records:THREADS"
#include "window:CHUNK"

// The coordinate in the data, of any extent but 0, that stands for one outside of it.
__device__ __forceinline__ int64 mapped(int64 at, int64 extent, int32 policy) {
  if (policy == EDGE || extent == 1) return at < 0 ? 0 : extent - 1;
  const int64 period = policy == WRAP           ? extent
                       : policy == REFLECT_1001 ? 2 * extent
                                                : 2 * (extent - 1);
  at %= period;
  if (at < 0) at += period;
  if (policy == REFLECT_1001) return min(at, period - 1 - at);
  if (policy == REFLECT_101) return min(at, period - at);
  return at;
}

template <typename Out> struct WordOf { using type = uint32; };
template <> struct WordOf<uint64> { using type = uint64; };
template <> struct WordOf<int64> { using type = uint64; };
template <> struct WordOf<double> { using type = uint64; };

template <typename Word, typename Out> __device__ __forceinline__ Word bits_of(Out value) {
  if constexpr (same<Out, float>) return __float_as_uint(value);
  else if constexpr (same<Out, half>) return __half_as_ushort(value);
  else return Word(value);
}

template <typename In> __device__ __forceinline__ In element_at(const uint8* at) {
  return __ldg(reinterpret_cast<const In*>(at));
}
template <> __device__ __forceinline__ bool element_at<bool>(const uint8* at) {
  return __ldg(at) != 0;
}

// One row of a window.
struct Row {
  const uint8* source;  // of coordinate 0 along `x`
  bool inside;          // along the other axes
  int64 run, run_stride;
  int32 policy;
  const void* fill;
  int64 fill_index;       // of the whole row,
  bool fill_x, fill_run;  // unless the channels are an axis of it
};

template <typename In, typename Out>
__device__ __forceinline__ Out element(const Row& row, const WindowAxis& axis, int64 x, int64 r) {
  int64 at = axis.anchor + x;
  bool inside = row.inside;
  if (at < 0 || at >= axis.data) {
    if (row.policy == CONSTANT) inside = false;
    else at = mapped(at, axis.data, row.policy);
  }
  if (inside)
    return truncated_to<Out>(element_at<In>(row.source + at * axis.stride + r * row.run_stride));
  const int64 channel = row.fill_x ? x : row.fill_run ? r : row.fill_index;
  return static_cast<const Out*>(row.fill)[channel];
}

// Elements `begin` to `end` of a row, of which `begin` is the first of a run or follows one.
template <typename In, typename Out>
__device__ __forceinline__ void write_piece(const Row& row, const WindowAxis& axis, Out* target,
                                            int64 begin, int64 end, uint32 lane, uint32 lanes) {
  using Word = typename WordOf<Out>::type;
  constexpr int32 PER_WORD = sizeof(Word) / sizeof(Out);
  Out* const first = target + begin;
  const int32 phase = int32(reinterpret_cast<uint64>(first) % sizeof(Word) / sizeof(Out));
  Word* const words = reinterpret_cast<Word*>(first - phase);
  const int32 length = int32(end - begin);
  const int32 count = (phase + length + PER_WORD - 1) / PER_WORD;

  // Whole words whose elements follow one another in the source.
  int32 direct = 0, direct_end = 0;
  if (row.inside && row.run_stride == sizeof(In) && axis.stride == row.run * int64(sizeof(In))) {
    const int64 from = max(-axis.anchor, int64(0)) * row.run - begin;
    const int64 to = (axis.data - axis.anchor) * row.run - begin;
    if (from < length && to > 0) {
      direct = (phase + int32(max(from, int64(0))) + PER_WORD - 1) / PER_WORD;
      direct_end = (phase + int32(min(to, int64(length)))) / PER_WORD;
    }
  }
  const uint8* const source =
      row.source + axis.anchor * axis.stride + (begin - phase) * int64(sizeof(In));
  if constexpr (same<In, Out>) {
    const uint64 shift = reinterpret_cast<uint64>(source) % sizeof(Word) * 8;
    if (direct < direct_end) {
      if (shift == 0) {
        copy_words(words + direct, reinterpret_cast<const Word*>(source) + direct,
                   uint32(direct_end - direct), lane, lanes);
      } else if constexpr (sizeof(Word) == 4) {
        // The aligned words that hold the first bytes and the last may begin and end outside.
        direct++;
        direct_end = max(direct, direct_end - 1);
        copy_shifted(words + direct,
                     reinterpret_cast<const uint32*>(source - shift / 8) + direct, uint32(shift),
                     uint32(direct_end - direct), lane, lanes);
      }
    }
  } else {
#pragma unroll 4
    for (int32 w = direct + int32(lane); w < direct_end; w += lanes) {
      Word word = 0;
#pragma unroll
      for (int32 e = 0; e < PER_WORD; e++) {
        const In found = element_at<In>(source + (w * PER_WORD + e) * int32(sizeof(In)));
        word |= bits_of<Word>(truncated_to<Out>(found)) << (8 * sizeof(Out) * e);
      }
      words[w] = word;
    }
  }

  const int64 x0 = begin / row.run, r0 = begin - x0 * row.run;
  const Divisor by_run{uint32(row.run)};
  const int32 skipped = max(direct_end - direct, 0);
  for (int32 i = int32(lane); i < count - skipped; i += lanes) {
    const int32 w = i < direct || skipped == 0 ? i : i + skipped;
    const int32 e0 = w ? 0 : phase, e1 = min(PER_WORD, phase + length - w * PER_WORD);
    const uint32 k = uint32(w * PER_WORD + e0 - phase + r0);
    const uint32 runs = by_run.divide(k);
    int64 x = x0 + runs, r = k - runs * uint32(row.run);
    Word word = 0;
#pragma unroll
    for (int32 e = 0; e < PER_WORD; e++) {
      if (e < e0 || e >= e1) continue;
      const Out value = element<In, Out>(row, axis, x, r);
      word |= bits_of<Word>(value) << (8 * sizeof(Out) * e);
      if (e1 - e0 < PER_WORD) reinterpret_cast<Out*>(words + w)[e] = value;
      if (++r == row.run) {
        r = 0;
        x++;
      }
    }
    if (e1 - e0 == PER_WORD) words[w] = word;
  }
}

// `fill_axis`: the axis whose coordinate chooses the fill value: an outer one, `x` (axis_count), the
// run (axis_count + 1), or none (-1).
template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
window(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count,
       uint32 lanes, int32 policy, const Out* fill, int32 fill_axis) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Window& window = *reinterpret_cast<const Window*>(share.record);
  const WindowAxis* axes = reinterpret_cast<const WindowAxis*>(&window + 1);
  const uint32 lane = threadIdx.x & (lanes - 1), groups = blockDim.x / lanes;
  const int64 first = int64(share.block) * window.per_block;
  const int64 last = min(first + window.per_block, window.pieces);
  for (int64 piece = first + threadIdx.x / lanes; piece < last; piece += groups) {
    const Quotient<uint64> part = divided(uint64(piece), uint64(window.chunks));
    Row row = {reinterpret_cast<const uint8*>(window.source),
               true,
               window.run,
               window.run_stride,
               policy,
               fill,
               0,
               fill_axis == axis_count,
               fill_axis == axis_count + 1};
    uint64 index = part.whole;
#pragma unroll 1
    for (int32 k = axis_count - 1; k >= 0; k--) {
      const WindowAxis& axis = axes[k];
      const Quotient<uint64> next = divided(index, uint64(axis.extent));
      index = next.whole;
      if (k == fill_axis) row.fill_index = next.rest;
      int64 at = axis.anchor + int64(next.rest);
      if (at < 0 || at >= axis.data) {
        if (policy == CONSTANT) row.inside = false;
        else at = mapped(at, axis.data, policy);
      }
      row.source += at * axis.stride;
    }
    Out* target = reinterpret_cast<Out*>(window.target) + part.whole * window.row;
    const int64 begin = part.rest * CHUNK;
    write_piece<In>(row, window.x, target, begin, min(begin + CHUNK, window.row), lane, lanes);
  }
}

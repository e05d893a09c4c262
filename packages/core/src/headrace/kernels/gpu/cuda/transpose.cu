// Copies of samples whose elements change their order: transpositions, mirrors, channels that are
// split or joined, every other element.
//
// A block copies a tile at a time: a box of the output, `a` rows of `x` runs of elements, where a run
// (often a single element) is in order on both sides. What the source has of it lies in a few spans
// of memory. They are copied to shared memory as they are, and elements picked from there, word by
// word of the output.
#include "transpose_tiles.cuh"

#include "transpose_tiles:STAGE_BYTES"
#include "transpose_tiles:THREADS"

// Blocks on a multiprocessor, for the compiler to find the registers: Turing has less memory.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr uint32 BLOCKS = 2;
#else
constexpr uint32 BLOCKS = 8;
#endif

template <typename T> struct WordOf { using type = uint32; };
template <> struct WordOf<uint64> { using type = uint64; };

// Rows of the output and where their elements are in shared memory; distances in bytes. An element
// is number `i` of `inner` along one axis, and then along another.
struct Picture {
  int32 origin;
  uint32 rows, length;  // elements
  int32 row_step;
  uint32 inner;
  int32 inner_step, outer_step;
};

// Offset of element `k` of a row. Inner: the extent of the inner axis, if it is known.
template <uint32 Inner>
__device__ __forceinline__ int32 offset_of(const Picture& picture, const Divisor& by_inner,
                                           uint32 k) {
  if constexpr (Inner == 1) return int32(k) * picture.outer_step;
  const uint32 outer = by_inner.divide(k);
  return int32(outer) * picture.outer_step +
         int32(k - outer * picture.inner) * picture.inner_step;
}

// Offsets of `Count` elements from element `k` of a row on.
template <uint32 Inner, uint32 Count>
__device__ __forceinline__ void offsets_from(const Picture& picture, const Divisor& by_inner,
                                             uint32 k, int32 (&offsets)[Count]) {
  if constexpr (Inner == 1) {
    offsets[0] = int32(k) * picture.outer_step;
#pragma unroll
    for (uint32 e = 1; e < Count; e++) offsets[e] = offsets[e - 1] + picture.outer_step;
  } else {
    const uint32 inner = Inner ? Inner : picture.inner;
    const uint32 outer = Inner ? k / Inner : by_inner.divide(k);
    uint32 r = k - outer * inner;
    const int32 gap = picture.outer_step - int32(inner) * picture.inner_step;
    offsets[0] = int32(outer) * picture.outer_step + int32(r) * picture.inner_step;
    if constexpr (Inner >= Count - 1 && Inner > 0) {
      // At most one step along the outer axis on the way.
#pragma unroll
      for (uint32 e = 1; e < Count; e++)
        offsets[e] = offsets[0] + int32(e) * picture.inner_step + (r + e >= Inner ? gap : 0);
    } else {
#pragma unroll
      for (uint32 e = 1; e < Count; e++) {
        const bool over = ++r == inner;
        r = over ? 0 : r;
        offsets[e] = offsets[e - 1] + picture.inner_step + (over ? gap : 0);
      }
    }
  }
}

// The elements at these offsets, as a word.
template <typename T, typename Word, uint32 Count>
__device__ __forceinline__ Word word_at(const uint8* from, const int32 (&offsets)[Count]) {
  Word elements[Count];
#pragma unroll
  for (uint32 e = 0; e < Count; e++) elements[e] = *reinterpret_cast<const T*>(from + offsets[e]);
  if constexpr (Count == 4) {
    return __byte_perm(__byte_perm(elements[0], elements[1], 0x0040),
                       __byte_perm(elements[2], elements[3], 0x0040), 0x5410);
  } else if constexpr (Count == 2) {
    return __byte_perm(elements[0], elements[1], 0x5410);
  } else {
    return elements[0];
  }
}

template <typename T, uint32 Inner>
__device__ __forceinline__ void write_rows(const uint8* memory, const Picture& picture,
                                           uint64 target, int64 target_step) {
  using Word = typename WordOf<T>::type;
  constexpr uint32 PER_WORD = sizeof(Word) / sizeof(T);
  const Divisor by_inner(Inner == 1 ? 1 : picture.inner);
  const uint32 most = picture.length / PER_WORD;
  // In a transposition, threads that take neighbours in a span meet no conflict of banks.
  uint32 lanes = picture.rows < THREADS / 32 ? THREADS : 32;
  if (Inner == 1 && picture.outer_step >= 32) lanes = min(lanes, 8 * uint32(sizeof(T)));
  while (lanes > 1 && lanes / 2 >= most) lanes /= 2;
  const uint32 lane = threadIdx.x & (lanes - 1);
#pragma unroll 1
  for (uint32 j = threadIdx.x / lanes; j < picture.rows; j += THREADS / lanes) {
    T* const to = reinterpret_cast<T*>(target + int64(j) * target_step);
    const uint32 phase = uint32(reinterpret_cast<uint64>(to) % sizeof(Word) / sizeof(T));
    const uint32 head = min(picture.length, (PER_WORD - phase) % PER_WORD);
    const uint32 words = (picture.length - head) / PER_WORD;
    const uint8* const from = memory + picture.origin + int32(j) * picture.row_step;
    Word* const whole = reinterpret_cast<Word*>(to + head);
    // Neighbours write whole lines of long rows: lanes in front of the first word have nothing to do
    // in the first round. Would they go on with the next line, two instructions would write it.
    uint32 lead = 0;
    if (words >= 8 * lanes || lanes < 32)
      lead = uint32(reinterpret_cast<uint64>(whole) / sizeof(Word)) & (min(lanes, 32u) - 1);
    const int32 begin = int32(lane) - int32(lead);
    if constexpr (Inner == 3 && PER_WORD == 4) {
      if (words >= 8 * lanes) {
        // Three words a turn, after which elements are as they were, `lanes` times 4 steps further.
        int32 offsets[3][PER_WORD];
        const int32 turn = int32(4 * lanes) * picture.outer_step;
#pragma unroll
        for (uint32 n = 0; n < 3; n++) {
          const int32 first = begin + int32(n * lanes);
          const uint32 w = uint32(first < 0 ? first + int32(3 * lanes) : first);
          offsets_from<Inner>(picture, by_inner, head + w * PER_WORD, offsets[n]);
#pragma unroll
          for (uint32 e = 0; e < PER_WORD; e++) offsets[n][e] -= first < 0 ? turn : 0;
        }
        for (int32 w = begin; w < int32(words); w += 3 * lanes) {
#pragma unroll
          for (uint32 n = 0; n < 3; n++) {
            const uint32 at = uint32(w) + n * lanes;  // beyond all where it is negative
            if (at < words) whole[at] = word_at<T, Word>(from, offsets[n]);
#pragma unroll
            for (uint32 e = 0; e < PER_WORD; e++) offsets[n][e] += turn;
          }
        }
        continue;
      }
    }
#pragma unroll 2
    for (int32 w = begin; w < int32(words); w += lanes) {
      if (w < 0) continue;
      int32 offsets[PER_WORD];
      offsets_from<Inner>(picture, by_inner, head + w * PER_WORD, offsets);
      whole[w] = word_at<T, Word>(from, offsets);
    }
  }
  if constexpr (PER_WORD > 1) {
    // Of the first word of a row and of the last, maybe only some elements belong to it.
    if (((target | uint64(target_step) | picture.length * sizeof(T)) & (sizeof(Word) - 1)) == 0)
      return;
    for (uint32 i = threadIdx.x; i < picture.rows * 2 * PER_WORD; i += THREADS) {
      const uint32 j = i / (2 * PER_WORD), slot = i % (2 * PER_WORD);
      T* const to = reinterpret_cast<T*>(target + int64(j) * target_step);
      const uint32 phase = uint32(reinterpret_cast<uint64>(to) % sizeof(Word) / sizeof(T));
      const uint32 head = min(picture.length, (PER_WORD - phase) % PER_WORD);
      const uint32 tail = (picture.length - head) % PER_WORD;
      const bool first = slot < PER_WORD;
      if (first ? slot >= head : slot - PER_WORD >= tail) continue;
      const uint32 k = first ? slot : picture.length - tail + slot - PER_WORD;
      const uint8* const from = memory + picture.origin + int32(j) * picture.row_step;
      to[k] = *reinterpret_cast<const T*>(from + offset_of<Inner>(picture, by_inner, k));
    }
  }
}

// What a block does.
struct Work {
  Tile tile;
  Picture picture;
};

template <typename T>
__device__ __forceinline__ Work work_of(const Share& share, int32 axis_count) {
  const Tiles& tiles = *reinterpret_cast<const Tiles*>(share.record);
  Work work;
  work.tile = tile_of(tiles, share.block, sizeof(T), axis_count);
  const Tile& tile = work.tile;
  Picture& picture = work.picture;
  picture.origin = tile.origin;
  if (tiles.joined) {
    picture.rows = 1;
    picture.length = tile.a_count * tile.x_count;
    picture.row_step = 0;
    picture.inner = tile.x_count;
    picture.inner_step = tile.x_step;
    picture.outer_step = tile.a_step;
  } else {
    picture.rows = tile.a_count;
    picture.length = tile.x_count * tiles.run;
    picture.row_step = tile.a_step;
    picture.inner = tiles.run;
    picture.inner_step = sizeof(T);
    picture.outer_step = tile.x_step;
  }
  return work;
}

// Inner: the extent of the inner axis of a `Picture`, if it is 1 or 3 in all samples; else 0.
template <typename T, int Inner>
__global__ void __launch_bounds__(THREADS, BLOCKS)
copy_tiles(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 axis_count) {
  __shared__ __align__(16) uint8 memory[STAGE_BYTES];
  __shared__ Work shared_work;
  __shared__ Arrivals arrivals;
  if (threadIdx.x < 32) {
    const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
    const Work found = work_of<T>(share, axis_count);
    if (threadIdx.x == 0) {
      shared_work = found;
      expect_spans(arrivals, found.tile.spans.count);
    }
  }
  __syncthreads();
  const Tile& tile = shared_work.tile;
  if (tile.unit == 16)
    stage_spans<16>(memory, tile.pitch, tile.spans, tile.low, tile.high, arrivals, THREADS);
  else
    stage_spans<4>(memory, tile.pitch, tile.spans, tile.low, tile.high, arrivals, THREADS);
  const Picture picture = shared_work.picture;
  write_rows<T, Inner>(memory, picture, tile.target, tile.target_step);
}

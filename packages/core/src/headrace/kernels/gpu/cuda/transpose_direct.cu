// The same as transpose.cu, of elements that lie too far apart for spans of them to be read: every
// thread reads what it writes, word by word of the output.
#include "strided_copy_blocks.cuh"

#include "transpose:FarTiles"

#include "records:THREADS"
constexpr uint32 WARPS = THREADS / 32;

// A tile: extents, and how far one goes in `from`, from which elements are picked, for a step.
struct Box {
  uint32 a, x, run;
  int64 a_step, x_step, a_target;
};

template <typename T> struct WordOf { using type = uint32; };
template <> struct WordOf<uint64> { using type = uint64; };

// Goes through the elements of a tile in the order of the output.
template <typename T, bool single, bool joined> struct Walk {
  const uint8* at;
  uint32 r, x;
  const uint32 run, x_extent;
  const int64 x_gap, a_gap;

  __device__ Walk(const uint8* from, const Box& box, uint32 a, uint32 x, uint32 r)
      : at(from + a * box.a_step + x * box.x_step + r * sizeof(T)),
        r(r), x(x), run(box.run), x_extent(box.x),
        x_gap(box.x_step - int64(box.run * sizeof(T))),
        a_gap(box.a_step - int64(box.x) * box.x_step) {}

  __device__ T next() {
    const T found = *reinterpret_cast<const T*>(at);
    at += sizeof(T);
    if (single || ++r == run) {
      r = 0;
      at += x_gap;
      if (joined && ++x == x_extent) {
        x = 0;
        at += a_gap;
      }
    }
    return found;
  }
};

// Writes a tile. `single`: runs are single elements; `joined`: rows follow one another in the
// target, and are written as one.
template <typename T, bool single, bool joined>
__device__ __forceinline__ void pick(const uint8* from, const Box& box, uint64 target,
                                     uint32 lane) {
  using Word = typename WordOf<T>::type;
  constexpr uint32 PER_WORD = sizeof(Word) / sizeof(T);
  const uint32 row = box.x * box.run;
  const uint32 rows = joined ? 1 : box.a, length = joined ? row * box.a : row;
  const uint32 lanes = lanes_for((length + 2 * PER_WORD - 2) / PER_WORD);
  const Divisor by_run(box.run), by_x(box.x);
  const auto walk_from = [&](uint32 j, uint32 k) {
    uint32 x = single ? k : by_run.divide(k), a = j;
    const uint32 r = k - x * box.run;
    if (joined) {
      a = by_x.divide(x);
      x -= a * box.x;
    }
    return Walk<T, single, joined>(from, box, a, x, r);
  };
  for (uint32 j = lane / lanes; j < rows; j += 32 / lanes) {
    T* const to = reinterpret_cast<T*>(target + int64(j) * box.a_target);
    // Of the first and the last word, maybe only some elements belong to the row.
    const uint32 phase = uint32(reinterpret_cast<uint64>(to) % sizeof(Word) / sizeof(T));
    const uint32 head = min(length, (PER_WORD - phase) % PER_WORD);
    const uint32 words = (length - head) / PER_WORD, tail = head + words * PER_WORD;
    for (uint32 k = lane & (lanes - 1); k < head + length - tail; k += lanes) {
      const uint32 at = k < head ? k : k - head + tail;
      to[at] = walk_from(j, at).next();
    }
    Word* const whole = reinterpret_cast<Word*>(to + head);
    uint32 w = lane & (lanes - 1);
    if constexpr (single && !joined) {
      const int64 step = box.x_step, stride = int64(lanes * PER_WORD) * step;
      const uint8* at = from + j * box.a_step + (head + w * PER_WORD) * step;
#pragma unroll 2
      for (; w < words; w += lanes, at += stride) {
        Word word = 0;
#pragma unroll
        for (uint32 e = 0; e < PER_WORD; e++)
          word |= Word(*reinterpret_cast<const T*>(at + int64(e) * step)) << (8 * sizeof(T) * e);
        whole[w] = word;
      }
    } else {
      for (; w < words; w += lanes) {
        auto walk = walk_from(j, head + w * PER_WORD);
        Word word = 0;
#pragma unroll
        for (uint32 e = 0; e < PER_WORD; e++) word |= Word(walk.next()) << (8 * sizeof(T) * e);
        whole[w] = word;
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void pick(const uint8* from, const Box& box, uint64 target,
                                     uint32 lane) {
  constexpr uint32 LONG = 512;  // bytes of a row that keeps all threads busy by itself
  const int64 row = int64(box.x * box.run * sizeof(T));
  const bool joined = box.a_target == row && row < LONG;
  if (box.run == 1) {
    if (joined) pick<T, true, true>(from, box, target, lane);
    else pick<T, true, false>(from, box, target, lane);
  } else {
    if (joined) pick<T, false, true>(from, box, target, lane);
    else pick<T, false, false>(from, box, target, lane);
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
copy_far_tiles(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform,
               int32 axis_count) {
  const uint32 warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const FarTiles& tiles = *reinterpret_cast<const FarTiles*>(share.record);
  const Axis* axes = reinterpret_cast<const Axis*>(&tiles + 1);
  const uint32 tile = share.block * WARPS + warp;
  if (tile >= tiles.count) return;

  const Quotient<uint32> along_x = divided(tile, tiles.x_tiles);
  const Quotient<uint32> along_a = divided(along_x.whole, tiles.a_tiles);
  const uint64 x = uint64(along_x.rest) * tiles.x_tile;
  const uint64 a = uint64(along_a.rest) * tiles.a_tile;
  const Offsets outer = offsets_of(axes, axis_count, along_a.whole);
  const uint64 source = tiles.source + outer.source + int64(a) * tiles.a_source +
                        int64(x) * tiles.x_source;
  const uint64 target = tiles.target + outer.target + int64(a) * tiles.a_target +
                        int64(x * tiles.run * sizeof(T));
  const Box box = {uint32(min(uint64(tiles.a_tile), tiles.a_extent - a)),
                   uint32(min(uint64(tiles.x_tile), tiles.x_extent - x)),
                   tiles.run,
                   tiles.a_source,
                   tiles.x_source,
                   tiles.a_target};
  pick<T>(reinterpret_cast<const uint8*>(source), box, target, lane);
}

// Copies of bytes that lie next to one another, whatever the alignment of either side.
#pragma once
#include "common.cuh"

// The four bytes at any address.
__device__ __forceinline__ uint32 bytes_at(const uint8* at) {
  return uint32(__ldg(at)) | uint32(__ldg(at + 1)) << 8 | uint32(__ldg(at + 2)) << 16 |
         uint32(__ldg(at + 3)) << 24;
}

// The same from the two aligned words that hold them; `shift` is 8, 16 or 24 bits.
__device__ __forceinline__ uint32 shifted(uint32 low, uint32 high, uint32 shift) {
  return low >> shift | high << (32 - shift);
}

// What a copy of words does: `count` words by `lanes` threads. Loads come before stores, so that
// several are under way at once.
template <typename Word>
__device__ __forceinline__ void copy_words(Word* target, const Word* source, uint32 count,
                                           uint32 lane, uint32 lanes) {
  uint32 i = lane;
  for (; i + 3 * lanes < count; i += 4 * lanes) {
    const Word a = __ldg(source + i), b = __ldg(source + i + lanes);
    const Word c = __ldg(source + i + 2 * lanes), d = __ldg(source + i + 3 * lanes);
    target[i] = a;
    target[i + lanes] = b;
    target[i + 2 * lanes] = c;
    target[i + 3 * lanes] = d;
  }
  for (; i < count; i += lanes) target[i] = __ldg(source + i);
}

__device__ __forceinline__ void copy_shifted(uint32* target, const uint32* source, uint32 shift,
                                             uint32 count, uint32 lane, uint32 lanes) {
  uint32 i = lane;
  for (; i + 3 * lanes < count; i += 4 * lanes) {
    uint32 low[4], high[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      low[k] = __ldg(source + i + k * lanes);
      high[k] = __ldg(source + i + k * lanes + 1);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) target[i + k * lanes] = shifted(low[k], high[k], shift);
  }
  for (; i < count; i += lanes)
    target[i] = shifted(__ldg(source + i), __ldg(source + i + 1), shift);
}

// Copies `size` bytes by `lanes` threads, of which this is number `lane`. Reads nothing but them,
// not even in the same word.
__device__ __forceinline__ void copy_span(uint8* target, const uint8* source, uint32 size,
                                          uint32 lane, uint32 lanes) {
  constexpr uint32 LONG = 256;
  const uint32 to = uint32(reinterpret_cast<uint64>(target));
  const uint32 from = uint32(reinterpret_cast<uint64>(source));
  uint32 head, body;
  if (((to ^ from) & 15) == 0 && size >= LONG) {
    head = (0 - to) & 15;
    const uint32 words = (size - head) / 16;
    copy_words(reinterpret_cast<uint4*>(target + head),
               reinterpret_cast<const uint4*>(source + head), words, lane, lanes);
    body = 16 * words;
  } else {
    head = (0 - to) & 3;
    const uint32 phase = (from + head) & 3;
    if (phase > head) head += 4;  // the word that holds its first bytes begins outside
    // With a phase, the word behind the last one is read, too.
    const uint32 room = head + (phase ? 4 - phase + 4 : 0);
    uint32 words = 0;
    if (phase == 0) {
      words = size > head ? (size - head) / 4 : 0;
      copy_words(reinterpret_cast<uint32*>(target + head),
                 reinterpret_cast<const uint32*>(source + head), words, lane, lanes);
    } else if (size >= room) {
      words = (size - room) / 4 + 1;
      copy_shifted(reinterpret_cast<uint32*>(target + head),
                   reinterpret_cast<const uint32*>(source + head - phase), 8 * phase, words, lane,
                   lanes);
    }
    body = 4 * words;
    if (body == 0) head = 0;  // all of it byte by byte, from the first
  }
  for (uint32 i = lane; i < head; i += lanes) target[i] = __ldg(source + i);
  for (uint32 i = head + body + lane; i < size; i += lanes) target[i] = __ldg(source + i);
}

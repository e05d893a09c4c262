// Elements of words as floats, for sums of products.
#pragma once
#include "arithmetic_types.cuh"

// Unsigned integers become floats by their place in a word: in its bits 16 to 23 (8 to 23), where the
// exponent ends, a byte (16 bits) is the float 2^-133 (2^-141) times as large, down to 0. Weights of
// rows are multiplied by 2^122 for that, those of columns by the rest. Powers of two change no bit of
// a sum, unless weights are below 2^-100.
template <typename In> constexpr bool IN_PLACE = same<In, uint8> || same<In, uint16>;
template <typename In> constexpr float ROW_SCALE = IN_PLACE<In> ? 0x1p122f : 1.0f;
template <typename In>
constexpr float COLUMN_SCALE = !IN_PLACE<In> ? 1.0f : sizeof(In) == 1 ? 0x1p11f : 0x1p19f;

// Element `e` of a word, over ROW_SCALE * COLUMN_SCALE.
template <typename In> __device__ __forceinline__ float number_of(uint32 word, int e) {
  if constexpr (sizeof(In) == 4) {
    return __uint_as_float(word);
  } else if constexpr (sizeof(In) == 1) {
    return __uint_as_float(e == 2 ? word & 0xff0000 : __byte_perm(word, 0, 0x4044 | e << 8));
  } else if constexpr (!IN_PLACE<In>) {
    // The last bits of 2^23 + 2^15, which is quicker than to have them converted.
    const uint32 above = __byte_perm(word ^ 0x80008000u, 0x4b000000u, 0x7410 + 0x22 * e);
    return __fsub_rn(__uint_as_float(above), 8388608.0f + 32768.0f);
  } else {
    return __uint_as_float(__byte_perm(word, 0, e ? 0x4324 : 0x4104));
  }
}

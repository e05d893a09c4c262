// Elements that lie next to one another, stored in one access.
#pragma once
#include "common.cuh"

// Stores four elements at `to`, which is aligned to all four of them. Written out, since the compiler
// makes four stores of an assignment where it has taken the vector apart before: then every line of
// memory is written in four goes.
template <typename T>
__device__ __forceinline__ void store_together(T* to, const T (&elements)[4]) {
  constexpr int WORDS = sizeof(T);
  uint32 words[WORDS];
  memcpy(words, elements, sizeof(words));
#ifdef HEADRACE_ON_CPU
  if constexpr (WORDS == 4) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  } else if constexpr (WORDS == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
  } else {
    *reinterpret_cast<uint32*>(to) = words[0];
  }
#else
  if constexpr (WORDS == 4) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3]));
  } else if constexpr (WORDS == 2) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1]));
  } else {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(to), "r"(words[0]));
  }
#endif
}

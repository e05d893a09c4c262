// How pixels get to memory: normalised, converted, and in accesses that do not depend on where rows
// begin. Shared by the kernels that resample and the one that only normalises.
#pragma once
#include "pixel_finish.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "normalize_pixels:ITEMS"
constexpr int UNITS = THREADS * ITEMS; // of a block, neighbours in the output

// How an output is written: element by element; or, where its pixels make up one run of memory,
// channels together or in planes, as such runs.
#include "normalize_pixels:Mode"

// Division of what is less than divisor + UNITS: without a division each time, and branches.
struct Divider {
  uint32 reciprocal, limit;

  __device__ __forceinline__ explicit Divider(uint32 divisor) : reciprocal(0), limit(divisor) {
    // Of what is at least UNITS, the quotient is 0 or 1.
    if (divisor < UNITS) {
      reciprocal = 0xffffffffu / divisor + (divisor > 1);
      limit = divisor > 1 ? 0xffffffffu : 1;
    }
  }

  __device__ __forceinline__ uint32 operator()(uint32 value) const {
    return __umulhi(value, reciprocal) + (value >= limit);
  }
};

// Runs of neighbouring elements that a block makes, gathered in shared memory in the places they
// have within 16 bytes, so that they leave in accesses of 16 bytes wherever they begin.
template <typename Out> struct Runs {
  // Four runs of UNITS elements, or one of four times as many.
  static constexpr int ELEMENTS = UNITS + 16 / int(sizeof(Out));
  static constexpr int BYTES = ELEMENTS * int(sizeof(Out));

  Out* memory;

  static __device__ __forceinline__ int shift(const Out* target) {
    return int(reinterpret_cast<uint64>(target) & 15) / int(sizeof(Out));
  }

  __device__ __forceinline__ Out* place(int run, const Out* target) const {
    return memory + run * ELEMENTS + shift(target);
  }

  // Write the first `count` elements of a run to where they belong.
  __device__ __forceinline__ void leave(int run, Out* target, int count) const {
    constexpr int PER_ACCESS = 16 / int(sizeof(Out));
    const int begin = shift(target), end = begin + count;
    const Out* source = memory + run * ELEMENTS;
    target -= begin;
    for (int first = threadIdx.x * PER_ACCESS; first < end; first += THREADS * PER_ACCESS) {
      if (first >= begin && first + PER_ACCESS <= end) {
        *reinterpret_cast<uint4*>(target + first) = *reinterpret_cast<const uint4*>(source + first);
      } else {
        for (int e = max(first, begin); e < min(first + PER_ACCESS, end); ++e)
          target[e] = source[e];
      }
    }
  }
};

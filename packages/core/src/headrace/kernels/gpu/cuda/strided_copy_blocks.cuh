// How the blocks of a grid are shared out among samples of any sizes, and addresses in samples of
// any rank.
//
// A batch is a table of records, one a sample, `pitch` bytes apart. The first member of each is the
// number of the sample's first block; axes follow after the members.
#pragma once
#include "sample_search.cuh"

struct Table {
  const uint8* records;
  uint32 pitch;
  uint32 samples;
  uint32 uniform;  // blocks of a sample, if all have as many; 0 otherwise
};

struct Share {
  const uint8* record;
  uint32 block;  // number of this block among those of the sample
};

// To be called by whole warps.
__device__ __forceinline__ Share share_of(const Table& table, uint32 block) {
  if (table.uniform) {
    const uint32 sample = block / table.uniform;
    return {table.records + uint64(sample) * table.pitch, block - sample * table.uniform};
  }
  const auto first_of = [&](uint32 sample) {
    return *reinterpret_cast<const uint32*>(table.records + uint64(sample) * table.pitch);
  };
  const uint32 sample = sample_of(table.samples, block, first_of);
  return {table.records + uint64(sample) * table.pitch, block - first_of(sample)};
}

template <typename Index> struct Quotient {
  Index whole, rest;
};

__device__ __forceinline__ Quotient<uint32> divided(uint32 value, uint32 by) {
  const uint32 whole = value / by;
  return {whole, value - whole * by};
}

// Numbers are almost always small, and divisions of 64 bits slow.
__device__ __forceinline__ Quotient<uint64> divided(uint64 value, uint64 by) {
  if ((value | by) >> 32) return {value / by, value % by};
  const uint32 whole = uint32(value) / uint32(by);
  return {whole, uint32(value) - whole * uint32(by)};
}

#include "strided_axes:Axis"

struct Offsets {
  int64 source, target;
};

// Where element number `index` is, counted with the last axis fastest.
template <typename Index>
__device__ __forceinline__ Offsets offsets_of(const Axis* axes, int32 count, Index index) {
  Offsets found = {0, 0};
#pragma unroll 1
  for (int32 k = count - 1; k >= 0; k--) {
    Quotient<Index> next = {0, index};
    if (k) next = divided(index, Index(axes[k].extent));
    found.source += int64(next.rest) * axes[k].source;
    found.target += int64(next.rest) * axes[k].target;
    index = next.whole;
  }
  return found;
}

// Divides numbers below 2**32 / divisor by multiplication.
struct Divisor {
  uint32 value, reciprocal;
  __device__ explicit Divisor(uint32 value)
      : value(value), reciprocal(value > 1 ? 0xffffffffu / value + 1 : 0) {}
  __device__ uint32 divide(uint32 number) const {
    return value > 1 ? __umulhi(number, reciprocal) : number;
  }
};

// The smallest power of two, up to 32, of threads that do `items` things at once.
__device__ __forceinline__ uint32 lanes_for(uint32 items) {
  uint32 lanes = 32;
  while (lanes > 1 && lanes / 2 >= items) lanes /= 2;
  return lanes;
}

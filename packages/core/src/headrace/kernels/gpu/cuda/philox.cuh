// Philox4x32-10: the device's side of kernels/cpu/philox_draws.py, where it is described.
#pragma once
#include "common.cuh"

struct Stream {
  uint32 iteration_low, iteration_high;
  uint32 key0, key1;
};

struct Words {
  uint32 w[4];
};

// The four words of block `number` of a sample.
__device__ __forceinline__ Words philox_block(const Stream& stream, uint32 number, uint32 sample) {
  uint32 w0 = number, w1 = sample, w2 = stream.iteration_low, w3 = stream.iteration_high;
  uint32 k0 = stream.key0, k1 = stream.key1;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64 p0 = uint64(w0) * 0xD2511F53u;
    const uint64 p1 = uint64(w2) * 0xCD9E8D57u;
    w0 = uint32(p1 >> 32) ^ w1 ^ k0;
    w2 = uint32(p0 >> 32) ^ w3 ^ k1;
    w1 = uint32(p1);
    w3 = uint32(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{w0, w1, w2, w3}};
}

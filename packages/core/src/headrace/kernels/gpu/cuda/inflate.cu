// Blocks of LZ4: the device's side of kernels/cpu/inflate.py, a warp for each.
#include "common.cuh"

#include "inflate:LANES"
#include "inflate:Block"

struct Reader {
  const uint8* source;
  int64 at, size;

  // A length that goes on in further bytes; -1 where they are missing.
  __device__ int64 length(int64 first) {
    if (first < 15) return first;
    for (int32 more = 255; more == 255; first += more) {
      if (at >= size) return -1;
      more = source[at++];
    }
    return first;
  }
};

__device__ int64 decode(const Block& block, int32 lane) {
  Reader in{reinterpret_cast<const uint8*>(block.source), 0, block.size};
  uint8* const out = reinterpret_cast<uint8*>(block.out);
  int64 done = 0, status = -1;
  while (in.at < in.size) {
    const int32 token = in.source[in.at++];
    int64 length = in.length(token >> 4);
    if (length < 0 || length > in.size - in.at) break;
    if (length > block.room - done) {
      status = -2;
      break;
    }
    for (int64 k = lane; k < length; k += LANES) out[done + k] = in.source[in.at + k];
    in.at += length;
    done += length;
    if (in.at == in.size) {
      status = done;
      break;
    }
    if (in.size - in.at < 2) break;
    const int64 back = in.source[in.at] + 256 * in.source[in.at + 1];
    in.at += 2;
    if (back == 0 || back > done) {
      status = -3;
      break;
    }
    length = in.length(token & 15);
    if (length < 0) break;
    length += 4;
    if (length > block.room - done) {
      status = -2;
      break;
    }
    __syncwarp();  // what is copied again was written by other lanes
    for (int64 k = lane; k < length; k += LANES) {
      out[done + k] = out[done - back + (back < length ? uint32(k) % uint32(back) : k)];
    }
    done += length;
  }
  for (int64 k = done + lane; k < block.room; k += LANES) out[k] = 0;
  return status;
}

__global__ void inflate_lz4(const Block* blocks, uint32 blocks_each) {
  const Block& block = blocks[blockIdx.x];
  const int64 status = decode(block, threadIdx.x);
  if (threadIdx.x == 0) *reinterpret_cast<int64*>(block.status) = status;
}

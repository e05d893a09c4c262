// Numbers replaced by what a table has for them: the device's side of kernels/cpu/lookup.py.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "lookup:EACH"

#include "lookup:Numbers"

// Types are those of the bits. The table's entry number `last` is for all numbers that have none.
template <typename In, typename Out>
__global__ void __launch_bounds__(THREADS)
look_up(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, uint64 table,
        uint32 last) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Numbers& numbers = *reinterpret_cast<const Numbers*>(share.record);
  const In* const source = reinterpret_cast<const In*>(numbers.source);
  Out* const out = reinterpret_cast<Out*>(numbers.out);
  const Out* const values = reinterpret_cast<const Out*>(table);
  const int64 begin = int64(share.block) * (THREADS * EACH) + threadIdx.x;
#pragma unroll
  for (uint32 e = 0; e < EACH; e++) {
    const int64 i = begin + e * THREADS;
    if (i >= numbers.size) return;
    const uint64 number = source[i];
    out[i] = __ldg(values + (number < last ? uint32(number) : last));
  }
}

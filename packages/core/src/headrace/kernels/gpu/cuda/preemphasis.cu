// Each number less a part of the one before it.
#include "cast.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "preemphasis:EACH"

enum Border : int32 { CLAMP, ZERO, REFLECT };

#include "preemphasis:Signal"

// In the type `Wide`, as on the CPU.
template <typename In, typename Out, typename Wide>
__global__ void __launch_bounds__(THREADS)
preemphasize(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, int32 border) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Signal& signal = *reinterpret_cast<const Signal*>(share.record);
  const In* const source = reinterpret_cast<const In*>(signal.source);
  Out* const out = reinterpret_cast<Out*>(signal.out);
  const Wide coefficient = signal.coefficient;
  const int64 begin = int64(share.block) * (THREADS * EACH) + threadIdx.x;
  for (uint32 e = 0; e < EACH; e++) {
    const int64 t = begin + e * THREADS;
    if (t >= signal.size) return;
    Wide before = 0;
    if (t > 0) before = Wide(source[t - 1]);
    else if (border == CLAMP) before = Wide(source[0]);
    else if (border == REFLECT && signal.size > 1) before = Wide(source[1]);
    out[t] = cast_to<Out>(Wide(source[t]) - coefficient * before);
  }
}

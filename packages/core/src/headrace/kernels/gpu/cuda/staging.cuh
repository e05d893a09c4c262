// Pieces of memory on their way to shared memory, all of them at once: no thread waits for what it
// has asked for before it asks for more.
#pragma once
#include "common.cuh"

// Queues the copy of `Size` bytes, 4 or 16, to shared memory; both sides are aligned by as many.
template <uint32 Size>
__device__ __forceinline__ void copy_async(uint8* to, const uint8* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const uint32 place = static_cast<uint32>(__cvta_generic_to_shared(to));
  if constexpr (Size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
#else
  if constexpr (Size == 16)
    *reinterpret_cast<uint4*>(to) = __ldg(reinterpret_cast<const uint4*>(from));
  else
    *reinterpret_cast<uint32*>(to) = __ldg(reinterpret_cast<const uint32*>(from));
#endif
}

// Waits for the copies of all threads of the block.
__device__ __forceinline__ void await_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

// Makes one group of the copies that this thread has queued since the last.
__device__ __forceinline__ void fence_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's groups but for the `Last` ones.
template <int Last> __device__ __forceinline__ void await_copies_but() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Last) : "memory");
#endif
}

// Spans of memory: `count` of them, of `size` bytes each, `stride` bytes apart.
struct SpanTable {
  uint64 source;
  int64 stride;
  uint32 count, size;
};

// Where copies of whole spans say that they are done, in shared memory. Only from sm_90 on there are
// such copies, which one thread queues.
struct Arrivals {
  uint64 barrier;
};

// Whether one thread has a whole span copied; else many do.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool SPANS_BY_THREAD = true;
#else
constexpr bool SPANS_BY_THREAD = false;
#endif

// Shorter spans are copied by many threads all the same: to have one copied takes a warp some ten
// instructions, one thread after the other.
[[maybe_unused]] constexpr uint32 LEAST_SPAN = 512;

// The number of a thread among those that have spans copied: neighbours are in different warps.
__device__ __forceinline__ uint32 spread_thread(uint32 threads) {
  return threadIdx.x % 32 * (threads / 32) + threadIdx.x / 32;
}

// By one thread, before all of a block meet: `count` spans will be copied.
__device__ __forceinline__ void expect_spans(Arrivals& arrivals, uint32 count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const uint32 place = static_cast<uint32>(__cvta_generic_to_shared(&arrivals.barrier));
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place), "r"(count) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Has `size` bytes copied to shared memory, all of it in multiples of 16 bytes, by `lanes` threads.
__device__ __forceinline__ void copy_span(uint8* to, const uint8* from, uint32 size,
                                          Arrivals& arrivals, uint32 lane, uint32 lanes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const uint32 barrier = static_cast<uint32>(__cvta_generic_to_shared(&arrivals.barrier));
  const uint32 place = static_cast<uint32>(__cvta_generic_to_shared(to));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(size)
               : "memory");
  if (size)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(place), "l"(from), "r"(size), "r"(barrier)
        : "memory");
#else
#pragma unroll 4
  for (uint32 k = 16 * lane; k < size; k += 16 * lanes) copy_async<16>(to + k, from + k);
#endif
}

// By all threads: everything that `copy_span` was asked for is there, and what threads have written.
// `turn`: how many times this was awaited before.
__device__ __forceinline__ void await_spans(Arrivals& arrivals, uint32 turn = 0) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __syncthreads();
  const uint32 barrier = static_cast<uint32>(__cvta_generic_to_shared(&arrivals.barrier));
  uint32 done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier), "r"(turn & 1)
        : "memory");
  }
#else
  await_copies();
#endif
}

// Queues copies of spans to `memory`, which is aligned to 16 bytes and to which byte 0 of the first
// span goes at `source % 16`. They are `pitch` bytes apart there, which is congruent to the stride,
// modulo `Size`, and leaves `2 * Size` bytes between them. Copies are of `Size` bytes, aligned, so that
// some of what is around a span is read, too, unless it lies outside of `low` to `high`. Returns whether
// `await_spans` says that they are done, else `await_copies` does. ByThread: one thread may have a whole
// span copied, which is the better the longer spans are.
template <uint32 Size, bool ByThread = SPANS_BY_THREAD>
__device__ __forceinline__ bool queue_spans(uint8* memory, uint32 pitch, const SpanTable& spans,
                                            uint64 low, uint64 high, Arrivals& arrivals,
                                            uint32 threads) {
  const uint32 begin = uint32(spans.source) & 15;
  const int64 reach = int64(spans.count - 1) * spans.stride;
  const uint64 first = spans.source + min(reach, int64(0));
  const uint64 last = spans.source + max(reach, int64(0)) + spans.size;
  const bool free = first >= low + Size && last + 2 * Size <= high;
  if (ByThread && Size == 16 && free && spans.size >= LEAST_SPAN) {
    for (uint32 i = spread_thread(threads); i < spans.count; i += threads) {
      const uint64 source = spans.source + int64(i) * spans.stride;
      const uint32 phase = uint32(source) % 16;
      copy_span(memory + (begin + i * pitch - phase), reinterpret_cast<const uint8*>(source - phase),
                (phase + spans.size + 15) / 16 * 16, arrivals, 0, 1);
    }
    return true;
  }
  const uint32 units = (spans.size + 2 * Size - 2) / Size;  // of a span, wherever it begins
  // As many threads for a span as it keeps busy, a power of two; short ones are copied in one go.
  uint32 bits = 1;
  while (bits < 5 && (1u << bits) < units) bits++;
  while ((2u << bits) <= units && (2u << bits) <= threads) bits++;
  const uint32 lane = threadIdx.x & ((1u << bits) - 1), step = Size << bits;
#pragma unroll 1
  for (uint32 i = threadIdx.x >> bits; i < spans.count; i += threads >> bits) {
    const uint64 source = spans.source + int64(i) * spans.stride;
    const uint32 phase = uint32(source) % Size;
    const uint8* from = reinterpret_cast<const uint8*>(source - phase);
    uint8* to = memory + (begin + i * pitch - phase);
    const uint32 end = phase + spans.size;
    if (free) {
#pragma unroll 4
      for (uint32 k = lane * Size; k < end; k += step) copy_async<Size>(to + k, from + k);
    } else {
#pragma unroll 1
      for (uint32 k = lane * Size; k < end; k += step) {
        if (source - phase + k >= low && source - phase + k + Size <= high) {
          copy_async<Size>(to + k, from + k);
          continue;
        }
#pragma unroll 4
        for (uint32 e = max(k, phase); e < min(k + Size, end); e++) to[e] = __ldg(from + e);
      }
    }
  }
  return false;
}

// Waits for what `queue_spans` has queued, by all threads.
__device__ __forceinline__ void await_queued(bool by_barrier, Arrivals& arrivals, uint32& turn) {
  if (by_barrier) await_spans(arrivals, turn++);
  else await_copies();
}

// Queues copies of spans and waits for them. Returns, in all threads, whether by `await_spans`, when
// everything is there.
template <uint32 Size>
__device__ __forceinline__ bool stage_spans(uint8* memory, uint32 pitch, const SpanTable& spans,
                                            uint64 low, uint64 high, Arrivals& arrivals,
                                            uint32 threads, uint32 turn = 0) {
  const bool by_barrier = queue_spans<Size>(memory, pitch, spans, low, high, arrivals, threads);
  await_queued(by_barrier, arrivals, turn);
  return by_barrier;
}

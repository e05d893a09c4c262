// Loads and stores with cache hints, fences, atomics.
#pragma once

template <typename T> inline T __ldg(const T* p) { return *p; }
template <typename T> inline T __ldca(const T* p) { return *p; }
template <typename T> inline T __ldcg(const T* p) { return *p; }
template <typename T> inline T __ldcs(const T* p) { return *p; }
template <typename T> inline T __ldlu(const T* p) { return *p; }
template <typename T> inline T __ldcv(const T* p) { return *p; }
template <typename T> inline void __stwb(T* p, T v) { *p = v; }
template <typename T> inline void __stcg(T* p, T v) { *p = v; }
template <typename T> inline void __stcs(T* p, T v) { *p = v; }
template <typename T> inline void __stwt(T* p, T v) { *p = v; }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// Threads run one after the other: nothing comes between a load and a store.
#define EMULATED_ATOMIC(name, T, result)                                                 \
  inline T name(T* p, T v) {                                                             \
    const T old = *p;                                                                    \
    *p = result;                                                                         \
    return old;                                                                          \
  }
#define EMULATED_ATOMICS(T)                                                              \
  EMULATED_ATOMIC(atomicMin, T, old < v ? old : v)                                       \
  EMULATED_ATOMIC(atomicMax, T, old > v ? old : v)                                       \
  EMULATED_ATOMIC(atomicAnd, T, old & v)                                                 \
  EMULATED_ATOMIC(atomicOr, T, old | v)                                                  \
  EMULATED_ATOMIC(atomicXor, T, old ^ v)                                                 \
  EMULATED_ATOMIC(atomicExch, T, v)                                                      \
  inline T atomicCAS(T* p, T expected, T v) {                                            \
    const T old = *p;                                                                    \
    if (old == expected) *p = v;                                                         \
    return old;                                                                          \
  }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(atomicMin, long long, old < v ? old : v)
EMULATED_ATOMIC(atomicMax, long long, old > v ? old : v)
EMULATED_ATOMIC(atomicExch, float, v)
EMULATED_ATOMIC(atomicAdd, int, static_cast<int>(unsigned(old) + unsigned(v)))
EMULATED_ATOMIC(atomicAdd, unsigned, old + v)
EMULATED_ATOMIC(atomicAdd, unsigned long long, old + v)
EMULATED_ATOMIC(atomicAdd, float, old + v)
EMULATED_ATOMIC(atomicAdd, double, old + v)
EMULATED_ATOMIC(atomicSub, int, static_cast<int>(unsigned(old) - unsigned(v)))
EMULATED_ATOMIC(atomicSub, unsigned, old - v)
EMULATED_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
EMULATED_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
inline unsigned short atomicCAS(unsigned short* p, unsigned short expected, unsigned short v) {
  const unsigned short old = *p;
  if (old == expected) *p = v;
  return old;
}
#undef EMULATED_ATOMICS
#undef EMULATED_ATOMIC

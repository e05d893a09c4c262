// Barriers, shuffles and votes.
#pragma once
#ifdef HEADRACE_FIBERS

namespace emulated {

inline unsigned lane() { return current & 31; }

// Every lane of `mask` hands over `value`; what they handed over is `visible` afterwards.
template <typename T> inline void exchange(unsigned mask, T value) {
  static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
  if (!(mask >> lane() & 1)) fail("the mask %08x does not name the lane that waits", mask);
  memset(&threads[current].posted, POISON, 8);
  memcpy(&threads[current].posted, &value, sizeof value);
  wait_for(IN_WARP, mask);
}

template <typename T> inline T posted_by(unsigned source) {
  T value;
  memcpy(&value, &visible[(current & ~31u) + source], sizeof value);
  return value;
}

template <typename T> inline T shuffled(unsigned mask, T value, unsigned source) {
  exchange(mask, value);
  return posted_by<T>(source);
}

inline int counted(int predicate) {
  // Two barriers: the first for all to have counted, the second before anyone counts anew.
  static int count;
  count += predicate != 0;
  wait_for(AT_BARRIER, 0);
  const int result = count;
  wait_for(AT_BARRIER, 0);
  count = 0;
  wait_for(AT_BARRIER, 0);
  return result;
}

}  // namespace emulated

inline void __syncthreads() { emulated::wait_for(emulated::AT_BARRIER, 0); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulated::exchange(mask, 0); }
inline int __syncthreads_count(int predicate) { return emulated::counted(predicate); }
inline int __syncthreads_or(int predicate) { return emulated::counted(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return emulated::counted(!predicate) == 0; }

template <typename T> inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = emulated::lane();
  return emulated::shuffled(mask, value, (lane & ~(width - 1u)) + (source & (width - 1)));
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned d, int width = 32) {
  const unsigned lane = emulated::lane();
  return emulated::shuffled(mask, value, (lane & (width - 1u)) < d ? lane : lane - d);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned d, int width = 32) {
  const unsigned lane = emulated::lane();
  const bool inside = (lane & (width - 1u)) + d < unsigned(width);
  return emulated::shuffled(mask, value, inside ? lane + d : lane);
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const unsigned lane = emulated::lane(), source = lane ^ unsigned(bits);
  const bool inside = source < (lane & ~(width - 1u)) + width;
  return emulated::shuffled(mask, value, inside ? source : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  emulated::exchange(mask, predicate != 0 ? 1u : 0u);
  unsigned result = 0;
  for (unsigned l = 0; l < 32; l++)
    if (mask >> l & 1 && emulated::posted_by<unsigned>(l) == 1u) result |= 1u << l;
  return result;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <typename T> inline unsigned __match_any_sync(unsigned mask, T value) {
  emulated::exchange(mask, value);
  unsigned result = 0;
  for (unsigned l = 0; l < 32; l++) {
    const T other = emulated::posted_by<T>(l);
    if (mask >> l & 1 && memcmp(&other, &value, sizeof value) == 0) result |= 1u << l;
  }
  return result;
}

#endif

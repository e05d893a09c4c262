// Arithmetic of one rounding, whole numbers, bits, smallest and largest.
#pragma once

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
// A double holds the sum of floats, unless one is too small to matter but for the direction.
inline float __fadd_rd(float a, float b) {
  const double sum = double(a) + b;
  const float near = static_cast<float>(sum);
  return near > sum ? nextafterf(near, -INFINITY) : near;
}
inline float __fadd_rz(float a, float b) {
  const double sum = double(a) + b;
  const float near = static_cast<float>(sum);
  return fabs(near) > fabs(sum) ? nextafterf(near, 0.0f) : near;
}
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return static_cast<float>(1.0 / sqrt(double(a))); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
// Not-a-numbers become 0, as by the instruction.
inline float __saturatef(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

#define EMULATED_EXTREMES(T, A, B)                                                       \
  inline T min(A left, B right) {                                                        \
    const T a = left, b = right;                                                         \
    return a < b ? a : b;                                                                \
  }                                                                                      \
  inline T max(A left, B right) {                                                        \
    const T a = left, b = right;                                                         \
    return a > b ? a : b;                                                                \
  }
EMULATED_EXTREMES(int, int, int)
EMULATED_EXTREMES(unsigned, unsigned, unsigned)
EMULATED_EXTREMES(unsigned, int, unsigned)
EMULATED_EXTREMES(unsigned, unsigned, int)
EMULATED_EXTREMES(long, long, long)
EMULATED_EXTREMES(unsigned long, unsigned long, unsigned long)
EMULATED_EXTREMES(unsigned long, long, unsigned long)
EMULATED_EXTREMES(unsigned long, unsigned long, long)
EMULATED_EXTREMES(long long, long long, long long)
EMULATED_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
EMULATED_EXTREMES(unsigned long long, long long, unsigned long long)
EMULATED_EXTREMES(unsigned long long, unsigned long long, long long)
#undef EMULATED_EXTREMES
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b) >> 1);
}
inline int __rhadd(int a, int b) {
  return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __sad(int a, int b, unsigned c) {
  return (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)) + c;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += int((signed char)(a >> i)) * int((signed char)(b >> i));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __brev(unsigned v) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (v >> i & 1u) << (31 - i);
  return r;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned s = selector >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (s & 7))) & 0xff;
    if (s & 8) byte = byte & 0x80 ? 0xff : 0;
    r |= byte << (8 * i);
  }
  return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}

namespace emulated {
// An operation on each of the four bytes of a word.
template <typename F> inline unsigned bytewise(unsigned a, unsigned b, F f) {
  unsigned r = 0;
  for (int i = 0; i < 32; i += 8) r |= (unsigned(f(int(a >> i & 0xff), int(b >> i & 0xff))) & 0xff) << i;
  return r;
}
}  // namespace emulated
#define EMULATED_BYTEWISE(name, result)                                                  \
  inline unsigned name(unsigned a, unsigned b) {                                         \
    return emulated::bytewise(a, b, [](int x, int y) { return result; });                \
  }
EMULATED_BYTEWISE(__vminu4, x < y ? x : y)
EMULATED_BYTEWISE(__vmaxu4, x > y ? x : y)
EMULATED_BYTEWISE(__vadd4, x + y)
EMULATED_BYTEWISE(__vsub4, x - y)
EMULATED_BYTEWISE(__vaddus4, x + y > 255 ? 255 : x + y)
EMULATED_BYTEWISE(__vsubus4, x > y ? x - y : 0)
EMULATED_BYTEWISE(__vavgu4, (x + y + 1) / 2)
EMULATED_BYTEWISE(__vabsdiffu4, x > y ? x - y : y - x)
EMULATED_BYTEWISE(__vcmpeq4, x == y ? 255 : 0)
EMULATED_BYTEWISE(__vcmpgtu4, x > y ? 255 : 0)
#undef EMULATED_BYTEWISE

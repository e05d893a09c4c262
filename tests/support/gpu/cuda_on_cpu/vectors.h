// Vector types of CUDA, with its alignments: a misaligned one is a fault on the GPU.
#pragma once

#define EMULATED_VECTORS(name, T, align2, align4)                                        \
  struct name##1 { T x; };                                                               \
  struct alignas(align2) name##2 { T x, y; };                                            \
  struct name##3 { T x, y, z; };                                                         \
  struct alignas(align4) name##4 { T x, y, z, w; };                                      \
  inline name##1 make_##name##1(T x) { return {x}; }                                     \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }                             \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                     \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATED_VECTORS(char, signed char, 2, 4)
EMULATED_VECTORS(uchar, unsigned char, 2, 4)
EMULATED_VECTORS(short, short, 4, 8)
EMULATED_VECTORS(ushort, unsigned short, 4, 8)
EMULATED_VECTORS(int, int, 8, 16)
EMULATED_VECTORS(uint, unsigned, 8, 16)
EMULATED_VECTORS(longlong, long long, 16, 16)
EMULATED_VECTORS(ulonglong, unsigned long long, 16, 16)
EMULATED_VECTORS(float, float, 8, 16)
EMULATED_VECTORS(double, double, 16, 16)
#undef EMULATED_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

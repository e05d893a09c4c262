// Conversions between numbers, and between numbers and their bits.
#pragma once

namespace emulated {
// What `cvt` of PTX does with a number that is rounded already: limits are kept; not-a-numbers
// become 0, or the top bit alone where 64 bits are on either side.
template <typename I, typename F> inline I converted(F v) {
  constexpr bool is_signed = std::is_signed_v<I>;
  constexpr int bits = sizeof(I) * 8;
  constexpr bool wide = sizeof(I) == 8 || sizeof(F) == 8;
  using U = std::make_unsigned_t<I>;
  if (v != v) return wide ? static_cast<I>(U(1) << (bits - 1)) : I(0);
  const F end = static_cast<F>(U(1) << (bits - 1)) * (is_signed ? 1 : 2);
  if (v >= end) return is_signed ? static_cast<I>(~(U(1) << (bits - 1))) : static_cast<I>(~U(0));
  if (is_signed ? v < -end : v < 0) return is_signed ? static_cast<I>(U(1) << (bits - 1)) : I(0);
  return static_cast<I>(v);
}

template <typename To, typename From> inline To bits_of(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
}  // namespace emulated

#define EMULATED_TO_INTEGER(F, from, I, to)                                              \
  inline I __##from##2##to##_rn(F v) { return emulated::converted<I>(rint(v)); }         \
  inline I __##from##2##to##_rz(F v) { return emulated::converted<I>(trunc(v)); }        \
  inline I __##from##2##to##_rd(F v) { return emulated::converted<I>(floor(v)); }        \
  inline I __##from##2##to##_ru(F v) { return emulated::converted<I>(ceil(v)); }
EMULATED_TO_INTEGER(float, float, int, int)
EMULATED_TO_INTEGER(float, float, unsigned, uint)
EMULATED_TO_INTEGER(float, float, long long, ll)
EMULATED_TO_INTEGER(float, float, unsigned long long, ull)
EMULATED_TO_INTEGER(double, double, int, int)
EMULATED_TO_INTEGER(double, double, unsigned, uint)
EMULATED_TO_INTEGER(double, double, long long, ll)
EMULATED_TO_INTEGER(double, double, unsigned long long, ull)
#undef EMULATED_TO_INTEGER

inline float __int2float_rn(int v) { return static_cast<float>(v); }
inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
inline float __ll2float_rn(long long v) { return static_cast<float>(v); }
inline float __ull2float_rn(unsigned long long v) { return static_cast<float>(v); }
inline double __int2double_rn(int v) { return v; }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __ll2double_rn(long long v) { return static_cast<double>(v); }
inline double __ull2double_rn(unsigned long long v) { return static_cast<double>(v); }
inline float __double2float_rn(double v) { return static_cast<float>(v); }

inline int __float_as_int(float v) { return emulated::bits_of<int>(v); }
inline unsigned __float_as_uint(float v) { return emulated::bits_of<unsigned>(v); }
inline float __int_as_float(int v) { return emulated::bits_of<float>(v); }
inline float __uint_as_float(unsigned v) { return emulated::bits_of<float>(v); }
inline long long __double_as_longlong(double v) { return emulated::bits_of<long long>(v); }
inline double __longlong_as_double(long long v) { return emulated::bits_of<double>(v); }
inline int __double2hiint(double v) { return static_cast<int>(__double_as_longlong(v) >> 32); }
inline int __double2loint(double v) { return static_cast<int>(__double_as_longlong(v)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}

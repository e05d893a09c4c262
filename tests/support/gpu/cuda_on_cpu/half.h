// `half`: a storage type, with the conversions and the arithmetic that cuda_fp16.h gives it.
#pragma once

struct __half {
  _Float16 value;
  __half() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  __half(T number) : value(static_cast<_Float16>(number)) {}
  operator float() const { return static_cast<float>(value); }
};
using half = __half;
static_assert(sizeof(half) == 2 && alignof(half) == 2);

inline float __half2float(half v) { return v; }
inline half __float2half(float v) { return half(v); }
inline half __float2half_rn(float v) { return half(v); }
inline half __double2half(double v) { return half(v); }
inline half __int2half_rn(int v) { return half(v); }
inline half __uint2half_rn(unsigned v) { return half(v); }
inline unsigned short __half_as_ushort(half v) {
  unsigned short bits;
  memcpy(&bits, &v, 2);
  return bits;
}
inline short __half_as_short(half v) { return static_cast<short>(__half_as_ushort(v)); }
inline half __ushort_as_half(unsigned short bits) {
  half v;
  memcpy(&v, &bits, 2);
  return v;
}
inline half __short_as_half(short bits) {
  return __ushort_as_half(static_cast<unsigned short>(bits));
}

// Each operation is rounded to half, as by the device's own instructions.
inline half operator+(half a, half b) { return half(float(a) + float(b)); }
inline half operator-(half a, half b) { return half(float(a) - float(b)); }
inline half operator*(half a, half b) { return half(float(a) * float(b)); }
inline half operator/(half a, half b) { return half(float(a) / float(b)); }
inline half operator-(half a) { return half(-float(a)); }
inline bool operator==(half a, half b) { return float(a) == float(b); }
inline bool operator!=(half a, half b) { return float(a) != float(b); }
inline bool operator<(half a, half b) { return float(a) < float(b); }
inline bool operator>(half a, half b) { return float(a) > float(b); }
inline bool operator<=(half a, half b) { return float(a) <= float(b); }
inline bool operator>=(half a, half b) { return float(a) >= float(b); }
inline bool __hisnan(half v) { return __builtin_isnan(float(v)); }

struct alignas(4) __half2 { half x, y; };
using half2 = __half2;
inline half2 make_half2(half x, half y) { return {x, y}; }
inline half2 __halves2half2(half x, half y) { return {x, y}; }
inline half2 __floats2half2_rn(float x, float y) { return {half(x), half(y)}; }
inline half2 __float22half2_rn(float2 v) { return {half(v.x), half(v.y)}; }
inline float2 __half22float2(half2 v) { return {float(v.x), float(v.y)}; }
inline half __low2half(half2 v) { return v.x; }
inline half __high2half(half2 v) { return v.y; }
inline float __low2float(half2 v) { return v.x; }
inline float __high2float(half2 v) { return v.y; }

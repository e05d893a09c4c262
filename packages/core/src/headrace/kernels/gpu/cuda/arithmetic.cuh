// The operations of expressions: the device's side of kernels/cpu/arithmetic.py.
// Operands have one type but in comparisons. Integers wrap around; half is computed in float and
// rounded after every operation. Multiplications and additions are never contracted.
#pragma once
#include "arithmetic_types.cuh"

// Where a kernel leaves the number of a sample that cannot be computed, the lowest there is.
struct Fault {
  int32* lowest_sample;
  int32 sample;
  __device__ void report() const {
    if (*lowest_sample > sample) atomicMin(lowest_sample, sample);
  }
};

// What brings an operand to the type of an operation: integers are cut off, not saturated.
template <typename To, typename From> __device__ __forceinline__ To as(From value) {
  if constexpr (same<To, From>) return value;
  else if constexpr (same<From, half>) return static_cast<To>(__half2float(value));
  else if constexpr (same<To, half>) return __float2half_rn(static_cast<float>(value));
  else return static_cast<To>(value);
}

// Functions of real numbers that exist for float and for double.
#define HEADRACE_REAL(name, for_float, for_double)                                             \
  template <typename T> __device__ __forceinline__ T name(T x) {                               \
    if constexpr (same<T, half>) return __float2half_rn(for_float(__half2float(x)));           \
    else if constexpr (same<T, float>) return for_float(x);                                    \
    else return for_double(x);                                                                 \
  }
#define HEADRACE_REAL_OF_TWO(name, for_float, for_double)                                      \
  template <typename T> __device__ __forceinline__ T name(T x, T y) {                          \
    if constexpr (same<T, half>)                                                               \
      return __float2half_rn(for_float(__half2float(x), __half2float(y)));                     \
    else if constexpr (same<T, float>) return for_float(x, y);                                 \
    else return for_double(x, y);                                                              \
  }
HEADRACE_REAL(op_sqrt, sqrtf, sqrt)
HEADRACE_REAL(op_cbrt, cbrtf, cbrt)
HEADRACE_REAL(op_exp, expf, exp)
HEADRACE_REAL(op_log, logf, log)
HEADRACE_REAL(op_log2, log2f, log2)
HEADRACE_REAL(op_log10, log10f, log10)
HEADRACE_REAL(op_fabs, fabsf, fabs)
HEADRACE_REAL(op_floor, floorf, floor)
HEADRACE_REAL(op_ceil, ceilf, ceil)
HEADRACE_REAL(op_sin, sinf, sin)
HEADRACE_REAL(op_cos, cosf, cos)
HEADRACE_REAL(op_tan, tanf, tan)
HEADRACE_REAL(op_asin, asinf, asin)
HEADRACE_REAL(op_acos, acosf, acos)
HEADRACE_REAL(op_atan, atanf, atan)
HEADRACE_REAL(op_sinh, sinhf, sinh)
HEADRACE_REAL(op_cosh, coshf, cosh)
HEADRACE_REAL(op_tanh, tanhf, tanh)
HEADRACE_REAL(op_asinh, asinhf, asinh)
HEADRACE_REAL(op_acosh, acoshf, acosh)
HEADRACE_REAL(op_atanh, atanhf, atanh)
HEADRACE_REAL_OF_TWO(op_atan2, atan2f, atan2)
HEADRACE_REAL_OF_TWO(op_fpow, powf, pow)
HEADRACE_REAL_OF_TWO(remainder_of_reals, fmodf, fmod)
#undef HEADRACE_REAL
#undef HEADRACE_REAL_OF_TWO

#define HEADRACE_ARITHMETIC(name, symbol)                                                      \
  template <typename T> __device__ __forceinline__ T name(T x, T y) {                          \
    if constexpr (same<T, half>)                                                               \
      return __float2half_rn(__half2float(x) symbol __half2float(y));                          \
    else if constexpr (is_real<T>) return x symbol y;                                          \
    else return static_cast<T>(Wrapping<T>(x) symbol Wrapping<T>(y));                          \
  }
HEADRACE_ARITHMETIC(op_add, +)
HEADRACE_ARITHMETIC(op_sub, -)
HEADRACE_ARITHMETIC(op_mul, *)
#undef HEADRACE_ARITHMETIC

template <typename T> __device__ __forceinline__ T op_div(T x, T y) {
  if constexpr (same<T, half>) return __float2half_rn(__half2float(x) / __half2float(y));
  else return x / y;
}

// 1 over the rounded square root: the device's own instruction rounds once.
template <typename T> __device__ __forceinline__ T op_rsqrt(T x) {
  return op_div(as<T>(1), op_sqrt(x));
}

// Quotient and remainder of integers, cut off towards zero, for divisors that are not zero.
template <typename T> __device__ __forceinline__ T whole_quotient(T x, T y) {
  if constexpr (is_signed<T>) {
    if (y == T(-1)) return static_cast<T>(0 - Wrapping<T>(x));  // the most negative number wraps
  }
  return static_cast<T>(x / y);
}

template <typename T> __device__ __forceinline__ T whole_remainder(T x, T y) {
  if constexpr (is_signed<T>) {
    if (y == T(-1)) return 0;
  }
  return static_cast<T>(x % y);
}

// The same for any divisor; a division by zero gives 0 and is reported.
template <typename T> __device__ __forceinline__ T op_floordiv(T x, T y, const Fault& fault) {
  if (y == 0) {
    fault.report();
    return 0;
  }
  return whole_quotient(x, y);
}

template <typename T> __device__ __forceinline__ T op_mod(T x, T y, const Fault& fault) {
  if (y == 0) {
    fault.report();
    return 0;
  }
  return whole_remainder(x, y);
}

// Integers to a negative power are zero.
template <typename T> __device__ __forceinline__ T whole_power(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) return 0;
  }
  Wrapping<T> factor = base, left = exponent, product = 1;
  while (left) {
    if (left & 1) product *= factor;
    factor *= factor;
    left >>= 1;
  }
  return static_cast<T>(product);
}

template <typename T> __device__ __forceinline__ T op_neg(T x) {
  if constexpr (same<T, half>) return __float2half_rn(-__half2float(x));
  else if constexpr (is_real<T>) return -x;
  else return static_cast<T>(0 - Wrapping<T>(x));
}

template <typename T> __device__ __forceinline__ T op_abs(T x) {
  if constexpr (is_real<T>) return op_fabs(x);
  else if constexpr (is_signed<T>) return x < 0 ? op_neg(x) : x;
  else return x;
}

#define HEADRACE_BITWISE(name, symbol)                                                         \
  template <typename T> __device__ __forceinline__ T name(T x, T y) {                          \
    return static_cast<T>(x symbol y);                                                         \
  }
HEADRACE_BITWISE(op_and, &)
HEADRACE_BITWISE(op_or, |)
HEADRACE_BITWISE(op_xor, ^)
#undef HEADRACE_BITWISE

template <typename T> __device__ __forceinline__ T op_invert(T x) {
  if constexpr (same<T, bool>) return !x;
  else return static_cast<T>(~x);
}

// As on x86 only the low five bits of the count matter, six for 64-bit integers.
template <typename T> __device__ __forceinline__ T op_lshift(T x, T y) {
  if constexpr (same<T, bool>) return x;
  else return static_cast<T>(Wrapping<T>(x) << (y & (bits<T> == 64 ? 63 : 31)));
}

template <typename T> __device__ __forceinline__ T op_rshift(T x, T y) {
  if constexpr (same<T, bool>) return x > y;
  else return static_cast<T>(x >> (y & (bits<T> == 64 ? 63 : 31)));
}

// Not a number only where the second one is.
template <typename T> __device__ __forceinline__ T op_min(T x, T y) {
  return widened(x) < widened(y) ? x : y;
}
template <typename T> __device__ __forceinline__ T op_max(T x, T y) {
  return widened(x) > widened(y) ? x : y;
}

// A bound that is not a number does not bound.
template <typename T> __device__ __forceinline__ T op_clamp(T value, T low, T high) {
  const T raised = widened(value) < widened(low) ? low : value;
  return widened(raised) > widened(high) ? high : raised;
}

// Comparisons of numbers as the numbers they are: a negative one is below any unsigned one.
template <typename A, typename B> __device__ __forceinline__ bool op_lt(A x, B y) {
  if constexpr (same<A, half>) return __half2float(x) < __half2float(y);
  else if constexpr (same<A, B>) return x < y;
  else if constexpr (is_signed<A>) return x < 0 || static_cast<B>(x) < y;
  else return y >= 0 && x < static_cast<A>(y);
}
template <typename A, typename B> __device__ __forceinline__ bool op_le(A x, B y) {
  if constexpr (same<A, half>) return __half2float(x) <= __half2float(y);
  else if constexpr (same<A, B>) return x <= y;
  else if constexpr (is_signed<A>) return x < 0 || static_cast<B>(x) <= y;
  else return y >= 0 && x <= static_cast<A>(y);
}
template <typename A, typename B> __device__ __forceinline__ bool op_eq(A x, B y) {
  if constexpr (same<A, half>) return __half2float(x) == __half2float(y);
  else if constexpr (same<A, B>) return x == y;
  else if constexpr (is_signed<A>) return x >= 0 && static_cast<B>(x) == y;
  else return y >= 0 && x == static_cast<A>(y);
}
template <typename A, typename B> __device__ __forceinline__ bool op_ne(A x, B y) {
  return !op_eq(x, y);
}
template <typename A, typename B> __device__ __forceinline__ bool op_gt(A x, B y) {
  return op_lt(y, x);
}
template <typename A, typename B> __device__ __forceinline__ bool op_ge(A x, B y) {
  return op_le(y, x);
}

// The Box-Muller transform: the device's side of kernels/cpu/normal.py.
#pragma once
#include "philox.cuh"

template <typename T> struct Pair {
  T cosine, sine;
};

// Two independent normals from uniforms: `radius` from (0, 1], `angle` from [0, 1). Operation for
// operation as on the CPU: logarithm, sine and cosine are FDLIBM's polynomials (Sun Microsystems,
// 1993: e_log.c, k_sin.c, k_cos.c).
__device__ __forceinline__ Pair<double> box_muller(double radius, double angle) {
  const int64 raw = __double_as_longlong(radius);
  const int64 mantissa = raw & 0x000FFFFFFFFFFFFFll;
  const int64 carry = mantissa >= 0x0006A09E667F3BCDll ? 1 : 0;
  const int32 exponent = static_cast<int32>((raw >> 52) - 1023 + carry);
  const double fraction = __longlong_as_double(mantissa | (0x3FF0000000000000ll - (carry << 52)));

  const double f = fraction - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double w = z * z;
  const double t1 =
      w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332));
  const double t2 =
      z * (0.6666666666666735130 +
           w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591)));
  const double half_square = 0.5 * f * f;
  const double logarithm =
      exponent * 0.6931471805599453 - (half_square - s * (half_square + t1 + t2)) + f;
  const double r = sqrt(-2.0 * (logarithm < 0.0 ? logarithm : 0.0));

  const double turns = angle * 4.0;
  const int32 quadrant = static_cast<int32>(turns + 0.5);
  const double x = (turns - quadrant) * 1.5707963267948966;
  const double x2 = x * x;
  const double sine =
      x + x * x2 *
              (-1.66666666666666324348e-01 +
               x2 * (8.33333333332248946124e-03 +
                     x2 * (-1.98412698298579493134e-04 +
                           x2 * (2.75573137070700676789e-06 +
                                 x2 * (-2.50507602534068634195e-08 +
                                       x2 * 1.58969099521155010221e-10)))));
  const double cosine =
      1.0 - 0.5 * x2 +
      x2 * x2 *
          (4.16666666666666019037e-02 +
           x2 * (-1.38888888888741095749e-03 +
                 x2 * (2.48015872894767294178e-05 +
                       x2 * (-2.75573143513906633035e-07 +
                             x2 * (2.08757232129817482790e-09 +
                                   x2 * -1.13596475577881948265e-11)))));
  const bool odd = quadrant & 1;
  double c = odd ? sine : cosine;
  double d = odd ? cosine : sine;
  if ((quadrant + 1) & 2) c = -c;
  if (quadrant & 2) d = -d;
  return {r * c, r * d};
}

// 1 / sqrt(value) of a normal number, by the instruction for that: within two units in the last
// place. `rsqrtf` would look for numbers below the normal ones.
__device__ __forceinline__ float reciprocal_root(float value) {
#ifdef HEADRACE_ON_CPU
  return rsqrtf(value);
#else
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
#endif
}

// The logarithm of (number + 1) / 2**32, within two units in the last place near 1 as elsewhere.
__device__ __forceinline__ float logarithm32(uint32 number) {
  // 2**(exponent / 2**23) times something between 2/3 and 4/3, of which 1 is taken off.
  const float value = static_cast<float>(number) + 1.0f;
  const int32 bits = static_cast<int32>(__float_as_uint(value));
  const int32 exponent = (bits - 0x4f2aaaab) & ~0x007fffff;
  float f = __fmaf_rn(__uint_as_float(static_cast<uint32>(bits - exponent)), 0x1p-32f, -1.0f);
  // Where that leaves the whole logarithm, no digit must have been lost before: as a signed number
  // of 32 bits, number + 1 has 2**32 less.
  if (exponent == 0) f = static_cast<float>(static_cast<int32>(number + 1)) * 0x1p-32f;

  // The polynomial of N. Juffa's single precision logarithm.
  const float s = f * f;
  float r = __fmaf_rn(-0.130310059f, s, -0.121483512f);
  float t = __fmaf_rn(0.140869141f, s, 0.139814854f);
  r = __fmaf_rn(r, s, -0.166846126f);
  t = __fmaf_rn(t, s, 0.200120345f);
  r = __fmaf_rn(r, s, -0.249996200f);
  r = __fmaf_rn(t, f, r);
  r = __fmaf_rn(r, f, 0.333331972f);
  r = __fmaf_rn(r, f, -0.5f);
  r = __fmaf_rn(r, s, f);
  return __fmaf_rn(static_cast<float>(exponent), 0.693147182f * 0x1p-23f, r);
}

// `box_muller` of (radius + 1) / 2**32 and angle / 2**32 in single precision: a few units in the
// last place from what double precision gives, in a fraction of its time.
__device__ __forceinline__ Pair<float> box_muller(uint32 radius, uint32 angle) {
  // At least what keeps the root a number, and cannot be told from 0 in the end.
  const float square = fmaxf(-2.0f * logarithm32(radius), 1e-30f);
  const float r = square * reciprocal_root(square);

  // Quarters of a turn, and what is left of one, from -1/2 to 1/2. There, minimax polynomials of
  // sin(pi / 2 x) and cos(pi / 2 x) are right to 3e-9 and 4e-8.
  const uint32 quarters = angle + 0x20000000u;
  const float x = static_cast<float>(static_cast<int32>(angle << 2)) * 0x1p-32f;
  const float z = x * x;
  const float sine =
      x * __fmaf_rn(__fmaf_rn(__fmaf_rn(-0.00460166f, z, 0.07968003f), z, -0.64596346f), z,
                    1.57079632f);
  const float cosine = __fmaf_rn(
      __fmaf_rn(__fmaf_rn(-0.02041728f, z, 0.25360321f), z, -1.23369771f), z, 1.0f);
  // Bit 30 of the quarters, as the sign of twice as many: fewer instructions than to test the bit.
  const bool odd = static_cast<int32>(angle + angle + 0x40000000u) < 0;
  const float c = odd ? sine : cosine, d = odd ? cosine : sine;
  const uint32 turned = (quarters + 0x40000000u) & 0x80000000u, half = quarters & 0x80000000u;
  return {r * __uint_as_float(__float_as_uint(c) ^ turned),
          r * __uint_as_float(__float_as_uint(d) ^ half)};
}

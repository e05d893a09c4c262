// The Box-Muller transform: the device's side of kernels/cpu/normal.py.
#pragma once
#include "philox.cuh"

// A normal from uniforms: `radius` from (0, 1], `angle` from [0, 1). Operation for
// operation as on the CPU: logarithm, sine and cosine are FDLIBM's polynomials (Sun Microsystems,
// 1993: e_log.c, k_sin.c, k_cos.c).
__device__ __forceinline__ double box_muller(double radius, double angle) {
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
  const double c = quadrant & 1 ? sine : cosine;
  return r * ((quadrant + 1) & 2 ? -c : c);
}

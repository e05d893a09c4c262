// Mathematical functions that the C library does not have, or has under another name.
//
// They are exact to about one rounding; the device's are not, by a few. Tests must leave room.
#pragma once

inline float rsqrtf(float v) { return static_cast<float>(1.0 / sqrt(double(v))); }
inline double rsqrt(double v) { return 1.0 / sqrt(v); }
inline float rcbrtf(float v) { return static_cast<float>(1.0 / cbrt(double(v))); }
inline double rcbrt(double v) { return 1.0 / cbrt(v); }
inline float rhypotf(float a, float b) { return static_cast<float>(1.0 / hypot(a, b)); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float v) { return expf(v); }
inline float __exp10f(float v) { return exp10f(v); }
inline float __logf(float v) { return logf(v); }
inline float __log2f(float v) { return log2f(v); }
inline float __log10f(float v) { return log10f(v); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __sinf(float v) { return sinf(v); }
inline float __cosf(float v) { return cosf(v); }
inline float __tanf(float v) { return tanf(v); }
inline void __sincosf(float v, float* s, float* c) { sincosf(v, s, c); }

inline void sincospi(double v, double* sine, double* cosine) {
  const double quarters = rint(2 * v);  // |rest| <= 1/4, exact
  const double rest = (v - quarters / 2) * 3.14159265358979323846;
  const double s = sin(rest), c = cos(rest);
  switch (static_cast<long long>(fmod(quarters, 4)) & 3) {
    case 0: *sine = s; *cosine = c; break;
    case 1: *sine = c; *cosine = -s; break;
    case 2: *sine = -s; *cosine = -c; break;
    default: *sine = -c; *cosine = s; break;
  }
}
inline double sinpi(double v) { double s, c; sincospi(v, &s, &c); return s; }
inline double cospi(double v) { double s, c; sincospi(v, &s, &c); return c; }
inline void sincospif(float v, float* sine, float* cosine) {
  double s, c;
  sincospi(v, &s, &c);
  *sine = static_cast<float>(s);
  *cosine = static_cast<float>(c);
}
inline float sinpif(float v) { return static_cast<float>(sinpi(v)); }
inline float cospif(float v) { return static_cast<float>(cospi(v)); }

// Wichura, M. J., "Algorithm AS 241: The percentage points of the normal distribution", Applied
// Statistics 37 (1988), routine PPND16: about 1 part in 10**16.
inline double normcdfinv(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  const double q = p - 0.5;
  if (fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r
        + 6.7265770927008700853e4) * r + 4.5921953931549871457e4) * r
        + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
        + 1.3314166789178437745e2) * r + 3.3871328727963666080e0)
        / (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r
        + 3.9307895800092710610e4) * r + 2.1213794301586595867e4) * r
        + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
        + 4.2313330701600911252e1) * r + 1.0);
  }
  double r = sqrt(-log(q < 0 ? p : 1 - p)), v;
  if (r <= 5) {
    r -= 1.6;
    v = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r
        + 2.41780725177450611770e-1) * r + 1.27045825245236838258e0) * r
        + 3.64784832476320460504e0) * r + 5.76949722146069140550e0) * r
        + 4.63033784615654529590e0) * r + 1.42343711074968357734e0)
        / (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r
        + 1.51986665636164571966e-2) * r + 1.48103976427480074590e-1) * r
        + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0) * r
        + 2.05319162663775882187e0) * r + 1.0);
  } else {
    r -= 5;
    v = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r
        + 1.24266094738807843860e-3) * r + 2.65321895265761230930e-2) * r
        + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0) * r
        + 5.46378491116411436990e0) * r + 6.65790464350110377720e0)
        / (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r
        + 1.84631831751005468180e-5) * r + 7.86869131145613259100e-4) * r
        + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
        + 5.99832206555887937690e-1) * r + 1.0);
  }
  return q < 0 ? -v : v;
}
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
inline double normcdf(double v) { return 0.5 * erfc(-v * 0.70710678118654752440); }
inline float normcdff(float v) { return static_cast<float>(normcdf(v)); }

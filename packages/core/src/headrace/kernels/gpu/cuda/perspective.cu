// Images looked up where a projective map says: the device's side of kernels/cpu/perspective.py.
#include "looked_up.cuh"
#include "strided_copy_blocks.cuh"

constexpr int THREADS = 256;

#include "perspective:Seen"

__device__ void find_map(const Seen& image, bool corners, bool inverse, double* m) {
  for (int k = 0; k < 9; k++) m[k] = image.matrix[k];
  if (image.given) {
    const float* const given = reinterpret_cast<const float*>(image.given);
    for (int k = 0; k < 9; k++) m[k] = given[k];
    if (corners) {
      for (int row = 0; row < 3; row++) m[3 * row + 2] += 0.5 * (m[3 * row] + m[3 * row + 1]);
      for (int k = 0; k < 6; k++) m[k] -= 0.5 * m[6 + k % 3];
    }
  }
  if (inverse) return;
  const double a = m[4] * m[8] - m[5] * m[7], b = m[5] * m[6] - m[3] * m[8];
  const double c = m[3] * m[7] - m[4] * m[6], determinant = m[0] * a + m[1] * b + m[2] * c;
  const double scale = determinant != 0 ? 1 / determinant : 0;
  const double turned[9] = {a, m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                            b, m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                            c, m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  for (int k = 0; k < 9; k++) m[k] = turned[k] * scale;
}

template <typename T, int KIND>
__global__ void warp_perspective(const uint8* records, uint32 pitch, uint32 count, uint32 uniform,
                                 int32 border, int32 corners, int32 inverse, int32 planar) {
  const Share share = share_of({records, pitch, count, uniform}, blockIdx.x);
  const Seen& image = *reinterpret_cast<const Seen*>(share.record);
  __shared__ double m[9];  // the same for all threads: one computes it
  if (threadIdx.x == 0) find_map(image, corners, inverse, m);
  __syncthreads();
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= image.out_width * image.out_height) return;
  const auto place = divided(uint64(pixel), uint64(image.out_width));
  const double column = double(place.rest), row = double(place.whole);
  double depth = m[6] * column + m[7] * row + m[8];
  depth = depth != 0 ? 1 / depth : 0;
  const double x = (m[0] * column + m[1] * row + m[2]) * depth;
  const double y = (m[3] * column + m[4] * row + m[5]) * depth;
  const int64 apart = planar ? image.out_height * image.out_width : 1;
  T* const out = reinterpret_cast<T*>(image.out) + pixel * (planar ? 1 : image.channels);
  look_up<T, KIND>({image.source, image.height, image.width, image.channels, planar != 0},
                   border, image.fill, x, y, out, apart);
}

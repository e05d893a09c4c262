// Matrices that are on the device already, put into the descriptors of samples: the device's side of
// `inverted` in kernels/cpu/affine.py, to the last bit.
#include "warp_sample.cuh"

// From (rows, columns) to the map that undoes it; false if there is none.
template <int Rank>
__device__ __forceinline__ bool invert(const float (&given)[Rank][Rank + 1],
                                       float (&out)[Rank][Rank + 1]) {
  if constexpr (Rank == 2) {
    const float a = given[0][0], b = given[0][1], c = given[1][0], d = given[1][1];
    const float determinant = a * d - b * c;
    if (determinant == 0) return false;
    out[0][0] = d / determinant, out[0][1] = -b / determinant;
    out[1][0] = -c / determinant, out[1][1] = a / determinant;
  } else {
    float left[Rank][Rank];
    for (int i = 0; i < Rank; i++)
      for (int j = 0; j < Rank; j++) left[i][j] = given[i][j], out[i][j] = i == j;
    for (int k = 0; k < Rank; k++) {
      int pivot = k;
      for (int i = k + 1; i < Rank; i++)
        if (fabsf(left[i][k]) > fabsf(left[pivot][k])) pivot = i;
      if (left[pivot][k] == 0) return false;
      for (int j = 0; j < Rank; j++) {
        const float l = left[k][j], o = out[k][j];
        left[k][j] = left[pivot][j], left[pivot][j] = l;
        out[k][j] = out[pivot][j], out[pivot][j] = o;
      }
      const float factor = 1.0f / left[k][k];
      for (int j = 0; j < Rank; j++) left[k][j] *= factor, out[k][j] *= factor;
      for (int i = 0; i < Rank; i++) {
        if (i == k) continue;
        const float times = left[i][k];
        for (int j = 0; j < Rank; j++) {
          left[i][j] -= times * left[k][j];
          out[i][j] -= times * out[k][j];
        }
      }
    }
  }
  for (int i = 0; i < Rank; i++) {
    float total = out[i][0] * given[0][Rank];
    for (int k = 1; k < Rank; k++) total += out[i][k] * given[k][Rank];
    out[i][Rank] = -total;
  }
  return true;
}

// `pointers`: where the matrix of each sample is. `singular`: an int32 for the number of the first
// sample whose matrix has no inverse; null where matrices are taken as they are.
template <int Rank>
__global__ void warp_matrices(Sample* samples, const uint64* __restrict__ pointers, uint32 count,
                              int32* singular) {
  const uint32 number = blockIdx.x * blockDim.x + threadIdx.x;
  if (number >= count) return;
  const float* const from = reinterpret_cast<const float*>(pointers[number]);
  float given[Rank][Rank + 1], wanted[Rank][Rank + 1];
  for (int i = 0; i < Rank; i++)
    for (int j = 0; j <= Rank; j++) wanted[i][j] = given[i][j] = __ldg(from + i * (Rank + 1) + j);
  if (singular != nullptr && !invert<Rank>(given, wanted)) {
    atomicMin(singular, int32(number));
    return;  // the sample keeps the zeros that it has
  }
  Sample& sample = samples[number];
  for (int i = 0; i < Rank; i++) {
    for (int j = 0; j < Rank; j++) sample.matrix[i][j] = wanted[i][j];
    sample.matrix[i][3] = wanted[i][Rank];
  }
}

// Colours of a Bayer mosaic: means of neighbours, and green along the smoother axis.
#include "strided_copy_blocks.cuh"

#include "records:THREADS"
#include "debayer:Mosaic"

// A mosaic of even extents, reflected at its borders, which keeps the colours in place.
template <typename T>
struct Pixels {
  const T* source;
  int64 height, width;

  static __device__ __forceinline__ int64 inside(int64 k, int64 size) {
    if (k < 0) k = -k;
    if (k >= size) k = 2 * (size - 1) - k;
    return k < 0 ? -k : k;  // two pixels beyond a border, where there are but two
  }
  __device__ __forceinline__ int operator()(int64 y, int64 x) const {
    return source[inside(y, height) * width + inside(x, width)];
  }
  __device__ __forceinline__ int across(int64 y, int64 x, int far) const {
    return ((*this)(y, x - far) + (*this)(y, x + far)) / 2;
  }
  __device__ __forceinline__ int along(int64 y, int64 x, int far) const {
    return ((*this)(y - far, x) + (*this)(y + far, x)) / 2;
  }
};

__device__ __forceinline__ int distance(int a, int b) { return a < b ? b - a : a - b; }

template <typename T>
__global__ void __launch_bounds__(THREADS)
debayer(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Mosaic& mosaic = *reinterpret_cast<const Mosaic*>(share.record);
  const Pixels<T> at{reinterpret_cast<const T*>(mosaic.source), mosaic.height, mosaic.width};
  const int64 pixel = int64(share.block) * THREADS + threadIdx.x;
  if (pixel >= at.height * at.width) return;
  const int64 y = pixel / at.width, x = pixel % at.width;
  const bool red_row = y % 2 == mosaic.red_row, red_column = x % 2 == mosaic.red_column;
  const int own = at(y, x);
  int here, other, green;  // red or blue, the other of them
  bool is_red;             // whether `here` is red
  if (red_row == red_column) {
    is_red = red_row;
    here = own;
    other = (at(y - 1, x - 1) + at(y - 1, x + 1) + at(y + 1, x - 1) + at(y + 1, x + 1)) / 4;
    const int sideways = distance(own, at.across(y, x, 2)), down = distance(own, at.along(y, x, 2));
    if (sideways < down) {
      green = at.across(y, x, 1);
    } else if (sideways > down) {
      green = at.along(y, x, 1);
    } else {
      green = (at(y, x - 1) + at(y, x + 1) + at(y - 1, x) + at(y + 1, x)) / 4;
    }
  } else {
    is_red = red_row;  // of the neighbours in this row
    here = at.across(y, x, 1);
    other = at.along(y, x, 1);
    green = own;
  }
  T* const out = reinterpret_cast<T*>(mosaic.out) + pixel * 3;
  out[0] = T(is_red ? here : other);
  out[1] = T(green);
  out[2] = T(is_red ? other : here);
}

// The loop around generated functions of elements; ../pointwise_text.py writes the struct `Body`.
#pragma once
#include "arithmetic.cuh"
#include "cast.cuh"
#include "pointwise.cuh"
#include "sample_search.cuh"

#include "records:THREADS"

// What one access of memory brings.
template <int size> struct Word;
template <> struct Word<2> { using type = uint16; };
template <> struct Word<4> { using type = uint32; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<16> { using type = uint4; };

template <typename T, int count> struct Vector {
  T values[count];
  using Words = typename Word<count * sizeof(T)>::type;
};

// The intrinsics say that the address is in global memory, which a pointer out of a table does not.
template <int count, typename T>
__device__ __forceinline__ Vector<T, count> vector_at(const T* address) {
  using Words = typename Vector<T, count>::Words;
  const Words words = __ldg(reinterpret_cast<const Words*>(address));
  Vector<T, count> vector;
  memcpy(&vector, &words, sizeof(words));
  return vector;
}

template <typename T> __device__ __forceinline__ T element_at(const T* address) {
  if constexpr (same<T, bool>) return __ldg(reinterpret_cast<const uint8*>(address));
  else return __ldg(address);
}

template <int count, typename T>
__device__ __forceinline__ void put_vector(T* address, const Vector<T, count>& vector) {
  typename Vector<T, count>::Words words;
  memcpy(&words, &vector, sizeof(words));
  __stwb(reinterpret_cast<decltype(words)*>(address), words);
}

template <int count, typename T> __device__ __forceinline__ bool aligned(const T* address) {
  return reinterpret_cast<uint64>(address) % (sizeof(T) * count) == 0;
}

// Where an element is in a sample of several axes; moves on element by element.
template <typename Index, int axes> struct Position {
  Index extents[axes];
  Index at[axes];

  __device__ __forceinline__ Position(const Index (&extents_)[axes], Index element) {
#pragma unroll
    for (int axis = axes - 1; axis > 0; --axis) {
      extents[axis] = extents_[axis];
      const Index whole = element / extents[axis];
      at[axis] = element - whole * extents[axis];
      element = whole;
    }
    at[0] = element;
  }

  __device__ __forceinline__ void advance() {
#pragma unroll
    for (int axis = axes - 1; axis > 0; --axis) {
      if (++at[axis] != extents[axis]) return;
      at[axis] = 0;
    }
    ++at[0];
  }
};

// Computes the output of one tile of one sample. `Body` has
//   Sample                  a row of the table: out, size, first_tile, shift, and what it adds
//   length, count           elements of a vector, and vectors of a thread
//   Body(row, sample, faults)
//   aligned()               whether vectors of the sources begin where memory lets them
//   read(at)                the sources' vectors from element number `at`
//   compute(vectors, at)    the output's vector
//   compute(at)             one element of the output
// The first vector begins `shift` elements before the sample, so that the output's are aligned.
template <typename Body>
__global__ void __launch_bounds__(THREADS)
pointwise(const typename Body::Sample* samples, int32 count, uint32 tiles_each, int32* faults) {
  constexpr int length = Body::length;
  constexpr int tile = THREADS * length * Body::count;
  // Samples of one shape have `tiles_each` tiles; for others that is 0.
  const uint32 sample =
      tiles_each ? blockIdx.x / tiles_each
                 : sample_of(uint32(count), blockIdx.x,
                             [&](uint32 sample) { return samples[sample].first_tile; });
  const Body body(samples[sample], int32(sample), faults);
  auto* const out = body.sample.out;
  const int64 size = body.sample.size;
  const int64 first =
      static_cast<int64>(blockIdx.x - body.sample.first_tile) * tile - body.sample.shift;

  if (!body.aligned()) {
#pragma unroll 1
    for (int i = threadIdx.x; i < tile; i += THREADS) {
      const int64 at = first + i;
      if (at >= 0 && at < size) out[at] = body.compute(at);
    }
    return;
  }
  const int64 start = first + static_cast<int>(threadIdx.x) * length;
  if (first >= 0 && first + tile <= size) {
    typename Body::Vectors vectors[Body::count];
    // All reads are under way before the first result is needed.
#pragma unroll
    for (int k = 0; k < Body::count; ++k) vectors[k] = body.read(start + k * THREADS * length);
#pragma unroll
    for (int k = 0; k < Body::count; ++k) {
      const int64 at = start + k * THREADS * length;
      put_vector(out + at, body.compute(vectors[k], at));
    }
    return;
  }
#pragma unroll 1
  for (int k = 0; k < Body::count; ++k) {
    const int64 at = start + k * THREADS * length;
    if (at >= 0 && at + length <= size) {
      put_vector(out + at, body.compute(body.read(at), at));
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < length; ++i) {
      if (at + i >= 0 && at + i < size) out[at + i] = body.compute(at + i);
    }
  }
}

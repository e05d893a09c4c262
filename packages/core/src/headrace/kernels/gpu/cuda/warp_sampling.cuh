// What an element of a warped image or volume is made of: the nearest element or its neighbours.
// Points are coordinates (x, y[, z]) of the input, whose elements' centres lie at halves.
#pragma once
#include "as_float.cuh"

template <typename In> struct Source {
  const In* elements;  // (depth, height, width, channels)
  int depth, height, width, channels;
};

template <typename Out, typename In> __device__ __forceinline__ Out moved(In value) {
  return saturated<Out>(as_float(value));
}
template <> __device__ __forceinline__ uint8 moved<uint8>(uint8 value) { return value; }
template <> __device__ __forceinline__ int16 moved<int16>(int16 value) { return value; }
template <> __device__ __forceinline__ int32 moved<int32>(int32 value) { return value; }

// The two neighbours of a point along one axis.
struct Neighbours {
  int low, high;            // positions, moved inside
  bool has_low, has_high;   // whether they are inside
  float weight;             // of the upper one
};

__device__ __forceinline__ Neighbours neighbours(float at, int extent) {
  at -= 0.5f;
  const float floor = floorf(at);
  // Far outside is as good as just outside; an integer could not hold any number.
  const int low = static_cast<int>(fminf(fmaxf(floor, -2.0f), static_cast<float>(extent)));
  Neighbours found;
  found.has_low = low >= 0 && low < extent;
  found.has_high = low >= -1 && low + 1 < extent;
  found.low = min(max(low, 0), extent - 1);
  found.high = min(max(low + 1, 0), extent - 1);
  found.weight = at - floor;
  return found;
}

template <bool Inside, typename In>
__device__ __forceinline__ float neighbour(const In* at, bool inside, float fill) {
  if constexpr (!Inside) {
    if (!inside) return fill;
  }
  return as_float(*at);
}

// The value in one plane; `Inside` says that all four neighbours are. Rows of volumes are weighted in
// another way than those of images.
template <bool Inside, int Rank, typename In>
__device__ __forceinline__ float blended(const In* top, const In* bottom, int left, int right,
                                         const Neighbours& x, const Neighbours& y, bool has_plane,
                                         float fill) {
  const float left_weight = 1.0f - x.weight;
  const bool has_top = y.has_low && has_plane, has_bottom = y.has_high && has_plane;
  const float a = neighbour<Inside>(top + left, has_top && x.has_low, fill) * left_weight +
                  neighbour<Inside>(top + right, has_top && x.has_high, fill) * x.weight;
  const float b = neighbour<Inside>(bottom + left, has_bottom && x.has_low, fill) * left_weight +
                  neighbour<Inside>(bottom + right, has_bottom && x.has_high, fill) * x.weight;
  if constexpr (Rank == 3) return a * (1.0f - y.weight) + b * y.weight;
  return a + (b - a) * y.weight;
}

template <bool Inside, int Rank, int Channels, typename Out, typename In, typename Put>
__device__ __forceinline__ void blend(const Source<In>& source, const Neighbours (&n)[Rank],
                                      float fill, const Put& put) {
  const int channels = Channels ? Channels : source.channels;
  const int64 pitch = int64(source.width) * channels;
  const int left = n[0].low * channels, right = n[0].high * channels;
  const In* top = source.elements + n[1].low * pitch;
  const In* bottom = source.elements + n[1].high * pitch;
  if constexpr (Rank == 2) {
#pragma unroll
    for (int c = 0; c < channels; c++) {
      const float value =
          blended<Inside, Rank>(top + c, bottom + c, left, right, n[0], n[1], true, fill);
      put(c, saturated<Out>(value));
    }
  } else {
    const int64 front = n[2].low * (pitch * source.height);
    const int64 back = n[2].high * (pitch * source.height);
#pragma unroll
    for (int c = 0; c < channels; c++) {
      const float before = blended<Inside, Rank>(top + front + c, bottom + front + c, left, right, n[0],
                                           n[1], n[2].has_low, fill);
      const float behind = blended<Inside, Rank>(top + back + c, bottom + back + c, left, right, n[0],
                                           n[1], n[2].has_high, fill);
      put(c, saturated<Out>(before + (behind - before) * n[2].weight));
    }
  }
}

// Hands over the weighted mean of the 4 (8) neighbours of a point, channel by channel: `put(c, value)`.
// Those outside are the nearest inside with `clamp`, else they are `fill`.
template <int Rank, int Channels, typename Out, typename In, typename Put>
__device__ __forceinline__ void interpolate(const Source<In>& source, const float (&point)[Rank],
                                            bool clamp, float fill, const Put& put) {
  const int extent[3] = {source.width, source.height, source.depth};
  Neighbours n[Rank];
  bool all = true, none = false;
#pragma unroll
  for (int axis = 0; axis < Rank; axis++) {
    n[axis] = neighbours(point[axis], extent[axis]);
    all = all && n[axis].has_low && n[axis].has_high;
    none = none || !(n[axis].has_low || n[axis].has_high);
  }
  if (all || clamp) {
    blend<true, Rank, Channels, Out>(source, n, fill, put);
  } else if (none) {
    const int channels = Channels ? Channels : source.channels;
    for (int c = 0; c < channels; c++) put(c, saturated<Out>(fill));
  } else {
    blend<false, Rank, Channels, Out>(source, n, fill, put);
  }
}

// Hands over the element that a point falls into; `fill` outside, unless `clamp` repeats the border.
template <int Rank, int Channels, typename Out, typename In, typename Put>
__device__ __forceinline__ void take_nearest(const Source<In>& source, const float (&point)[Rank],
                                             bool clamp, Out fill, const Put& put) {
  const int extent[3] = {source.width, source.height, source.depth};
  const int channels = Channels ? Channels : source.channels;
  int64 index = 0;
  bool inside = true;
#pragma unroll
  for (int axis = Rank - 1; axis >= 0; axis--) {
    const float end = static_cast<float>(extent[axis]);
    const int at = static_cast<int>(fminf(fmaxf(floorf(point[axis]), -1.0f), end));
    inside = inside && at >= 0 && at < extent[axis];
    index = index * extent[axis] + min(max(at, 0), extent[axis] - 1);
  }
  const In* const element = source.elements + index * channels;
#pragma unroll
  for (int c = 0; c < channels; c++) {
    put(c, inside || clamp ? moved<Out>(element[c]) : fill);
  }
}

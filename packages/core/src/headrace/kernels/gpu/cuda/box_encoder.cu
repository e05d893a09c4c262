// What default boxes stand for: matching by intersection over union.
#include "common.cuh"
#include "strided_copy_blocks.cuh"

#include "records:THREADS"

#include "box_encoder:Boxes"

__device__ __forceinline__ float overlap(const float* box, const float* anchor) {
  const float width = fminf(box[2], anchor[2]) - fmaxf(box[0], anchor[0]);
  const float height = fminf(box[3], anchor[3]) - fmaxf(box[1], anchor[1]);
  const float common = __fmul_rn(fmaxf(width, 0.0f), fmaxf(height, 0.0f));
  const float area = __fmul_rn(box[2] - box[0], box[3] - box[1]);
  const float own = __fmul_rn(anchor[2] - anchor[0], anchor[3] - anchor[1]);
  return common / __fsub_rn(__fadd_rn(area, own), common);
}

// The anchor that overlaps a box most, of equal ones the last: one block for each box.
__global__ void __launch_bounds__(THREADS)
find_best(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform,
          const float* anchors, int32 count) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Boxes& sample = *reinterpret_cast<const Boxes*>(share.record);
  const float* const box = reinterpret_cast<const float*>(sample.boxes) + 4 * int64(share.block);
  __shared__ float largest[THREADS];
  __shared__ int32 places[THREADS];
  float own = -1.0f;
  int32 place = -1;
  for (int32 a = threadIdx.x; a < count; a += THREADS) {
    const float found = overlap(box, anchors + 4 * a);
    if (found >= own) own = found, place = a;
  }
  largest[threadIdx.x] = own;
  places[threadIdx.x] = place;
  __syncthreads();
  for (uint32 half = THREADS / 2; half; half /= 2) {
    if (threadIdx.x < half) {
      const uint32 other = threadIdx.x + half;
      const bool later = places[other] > places[threadIdx.x];
      if (largest[other] > largest[threadIdx.x] ||
          (largest[other] == largest[threadIdx.x] && later)) {
        largest[threadIdx.x] = largest[other];
        places[threadIdx.x] = places[other];
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) reinterpret_cast<int32*>(sample.best)[share.block] = places[0];
}

__global__ void __launch_bounds__(THREADS)
encode(const uint8* records, uint32 pitch, uint32 samples, uint32 uniform, const float* anchors,
       int32 count, float criteria, float scale, int32 offset) {
  const Share share = share_of({records, pitch, samples, uniform}, blockIdx.x);
  const Boxes& sample = *reinterpret_cast<const Boxes*>(share.record);
  const int32 a = share.block * THREADS + threadIdx.x;
  if (a >= count) return;
  const float* const boxes = reinterpret_cast<const float*>(sample.boxes);
  const int32* const best = reinterpret_cast<const int32*>(sample.best);
  float* const out = reinterpret_cast<float*>(sample.encoded) + 4 * int64(a);
  const float* const middle = anchors + 4 * (count + a);
  const float* const means = anchors + 8 * count;
  const float* const stds = means + 4;
  float largest = -1.0f;
  int32 match = 0;
  for (int32 b = 0; b < sample.count; b++) {
    const float found = best[b] == a ? 2.0f : overlap(boxes + 4 * b, anchors + 4 * a);
    if (found >= largest) largest = found, match = b;
  }
  const bool matched = largest > criteria;
  reinterpret_cast<int32*>(sample.classes)[a] =
      matched ? reinterpret_cast<const int32*>(sample.labels)[match] : 0;
  if (!matched) {
    for (int32 k = 0; k < 4; k++) out[k] = offset ? 0.0f : middle[k];
    return;
  }
  const float* const box = boxes + 4 * match;
  float found[4] = {(box[0] + box[2]) * 0.5f, (box[1] + box[3]) * 0.5f, box[2] - box[0],
                    box[3] - box[1]};
  for (int32 k = 0; k < 4; k++) {
    if (offset) {
      const float extent = __fmul_rn(middle[2 + k % 2], scale), own = __fmul_rn(found[k], scale);
      found[k] = k < 2 ? __fsub_rn(own, __fmul_rn(middle[k], scale)) / extent : logf(own / extent);
      found[k] = __fsub_rn(found[k], means[k]) / stds[k];
    }
    out[k] = found[k];
  }
}

// Windows of affine warps of images of bytes: warp_bytes_placed.cuh without anything generated.
#include "warp_bytes_placed.cuh"

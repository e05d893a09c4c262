// Windows of affine warps: warp_placed.cuh without anything that is generated.
#include "warp_placed.cuh"

// Windows of affine warps whose elements go through functions: ../warp_chain.py writes them.
#include "arithmetic.cuh"
#include "cast.cuh"
#include "pointwise.cuh"
#include "warp_placed.cuh"

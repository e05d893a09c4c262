// Windows of affine warps of images of bytes whose elements go through functions: ../warp_chain.py
// writes them.
#include "arithmetic.cuh"
#include "cast.cuh"
#include "pointwise.cuh"
#include "warp_bytes_placed.cuh"

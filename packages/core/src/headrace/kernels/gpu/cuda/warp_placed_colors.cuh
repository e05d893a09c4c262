// Windows of affine warps whose elements go through functions: ../color_text.py writes them.
#include "color_functions.cuh"
#include "warp_placed.cuh"

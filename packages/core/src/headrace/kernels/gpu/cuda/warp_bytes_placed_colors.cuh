// Windows of affine warps of images of bytes whose elements go through functions:
// ../color_text.py writes them.
#include "color_functions.cuh"
#include "warp_bytes_placed.cuh"

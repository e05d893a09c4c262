// normalize_pixels.cu with functions of pixels on the way.
#pragma once
#include "normalize_pixels.cu"
#include "color_functions.cuh"

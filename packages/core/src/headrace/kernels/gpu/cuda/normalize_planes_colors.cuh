// normalize_planes.cu with functions of pixels on the way.
#pragma once
#include "normalize_planes.cu"
#include "color_functions.cuh"

// What generated functions of pixels call, and what kernels are without them.
#pragma once
#include "arithmetic.cuh"
#include "cast.cuh"
#include "color.cuh"
#include "pointwise.cuh"

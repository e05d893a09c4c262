// CUDA C++ on the CPU: what a program for NVRTC needs in order to be built by g++.
//
// Blocks run one after the other, and the threads of a block too, on one thread of the host. Where a
// thread waits for others, at a barrier or in a shuffle, it is put aside and the others go on
// (cuda_on_cpu/block.h). What a GPU would not forgive ends the launch with a message: misaligned
// accesses, indices beyond a shared array, divergent barriers, division by zero.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __constant__ static const
// One launch runs at a time, and one block of it: what a block shares can be static.
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))

#include "cuda_on_cpu/vectors.h"
#include "cuda_on_cpu/half.h"
#include "cuda_on_cpu/block.h"
#include "cuda_on_cpu/warp.h"
#include "cuda_on_cpu/conversions.h"
#include "cuda_on_cpu/arithmetic.h"
#include "cuda_on_cpu/functions.h"
#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/launch.h"

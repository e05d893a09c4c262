// One sample of a warp.
#pragma once
#include "common.cuh"

#include "warp:Sample"

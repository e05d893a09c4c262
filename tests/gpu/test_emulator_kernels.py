"""Programs for the GPU, run by the CPU: intrinsics, barriers, shuffles, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace.kernels.gpu.program import program
from tests.support.gpu.cpu_functions import KernelError, cpu_function

COMMON = program("common.cuh")
ONE = (1, 1, 1)


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing is queued here."""


def address(array: np.ndarray) -> np.uint64:
    return np.uint64(array.ctypes.data)


def run(body: str, out: np.ndarray, threads: int = 1, blocks: int = 1, shared: int = 0) -> None:
    """Run a kernel of this body, with ``T* out``, in `blocks` blocks."""
    element = {"f": "float", "i": "int", "I": "unsigned", "q": "long long"}
    element |= {"d": "double", "Q": "unsigned long long", "l": "long long", "L": "uint64"}
    source = f"{COMMON}\n__global__ void tested({element[out.dtype.char]}* out) {{\n{body}\n}}\n"
    cpu_function(source, "tested")((blocks, 1, 1), (threads, 1, 1), (address(out),), shared)


def test_conversions_keep_the_limits() -> None:
    out = np.empty(8, np.int32)
    run(
        """out[0] = __float2int_rn(2.5f), out[1] = __float2int_rn(-3.5f);
        out[2] = __float2int_rd(-0.5f), out[3] = __float2int_ru(1.1f);
        out[4] = __float2int_rz(-1.9f), out[5] = __float2int_rn(3e9f);
        out[6] = __float2int_rn(-3e9f), out[7] = __float2int_rn(nanf(""));""",
        out,
    )
    assert out.tolist() == [2, -4, -1, 2, -1, 2**31 - 1, -(2**31), 0]
    wide = np.empty(4, np.int64)
    run(
        """out[0] = __float2ll_rn(1e19f), out[1] = __double2ll_rz(-2.9);
        out[2] = __float2ll_rn(nanf("")), out[3] = (long long)__float2ull_rn(-1.0f);""",
        wide,
    )
    assert wide.tolist() == [2**63 - 1, -2, -(2**63), 0]


def test_half_is_rounded_to_nearest_even() -> None:
    values = np.array([1.0, 1.0004883, 1.0014648, 65519.0, 65520.0, 6e-8, -0.1], np.float32)
    source = (
        f"{COMMON}\n__global__ void tested(const float* in, half* out, float* back) {{"
        "const int i = threadIdx.x;"
        "out[i] = __float2half_rn(in[i]); back[i] = __half2float(out[i]); }"
    )
    out, back = np.empty(7, np.float16), np.empty(7, np.float32)
    cpu_function(source, "tested")(ONE, (7, 1, 1), (address(values), address(out), address(back)))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out, values.astype(np.float16))
    np.testing.assert_array_equal(back, out.astype(np.float32))


def test_bits() -> None:
    out = np.empty(9, np.uint32)
    run(
        "out[0] = __popc(255u); out[1] = __clz(1); out[2] = __ffs(8); out[3] = __brev(1u);"
        "out[4] = __byte_perm(0x33221100u, 0x77665544u, 0x7610u); out[5] = __umulhi(1u << 31, 6u);"
        "out[6] = __float_as_uint(1.0f); out[7] = __funnelshift_r(1u, 2u, 1u);"
        "out[8] = (unsigned)__mul64hi(1ll << 62, -8ll);",
        out,
    )
    assert out.tolist() == [8, 31, 4, 1 << 31, 0x77661100, 3, 0x3F800000, 0, 2**32 - 2]


def test_functions() -> None:
    out = np.empty(6, np.float64)
    run(
        "out[0] = normcdfinv(0.975); out[1] = normcdfinv(1e-300); out[2] = cospi(0.5);"
        "out[3] = sinpi(-0.75); out[4] = normcdfinvf(0.5f);"
        "double s, c; sincospi(1e15 + 0.25, &s, &c); out[5] = s;",
        out,
    )
    expected = [1.959963984540054, -37.0471, 0, -math.sqrt(0.5), 0, math.sqrt(0.5)]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    assert out[2] == 0
    assert abs(out[0] - expected[0]) < 1e-14


def test_smallest_and_largest() -> None:
    out = np.empty(4, np.float32)
    run(
        'out[0] = min(1, 2u); out[1] = max(nanf(""), 3.0f); out[2] = min(-1ll, 5ll);'
        'out[3] = __saturatef(nanf(""));',
        out,
    )
    assert out.tolist() == [1, 3, -1, 0]


def test_block_sum_by_shuffles_and_a_barrier() -> None:
    body = """
      __shared__ unsigned part[32];
      unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
      for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
      __syncthreads();
      if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
        if (threadIdx.x == 0) atomicAdd(&out[0], v);
      }"""
    out = np.zeros(1, np.uint32)
    run(body, out, threads=256, blocks=3)
    assert out[0] == sum(range(768))


def test_votes_and_partial_warps() -> None:
    body = """
      const int lane = threadIdx.x;
      if (lane < 12) {
        const unsigned mask = 0xfffu;
        const unsigned odd = __ballot_sync(mask, lane & 1);
        const int first = __shfl_sync(mask, lane * 10, 3, 4);
        const int up = __shfl_up_sync(mask, lane, 1);
        out[lane] = (int)odd + first * 10000 + up * 10000000 + __any_sync(mask, lane == 11);
      } else {
        __syncwarp(0xff000u);
        out[lane] = -1;
      }
      __syncthreads();
      if (__all_sync(0xfffffu, out[lane] != 0)) out[lane] += 100000000;"""
    out = np.zeros(20, np.int32)
    run(body, out, threads=20)
    expected = [
        0xAAA + (lane // 4 * 4 + 3) * 100000 + max(lane - 1, 0) * 10000000 + 1 + 100000000
        for lane in range(12)
    ]
    assert out.tolist() == expected + [99999999] * 8


def test_barriers_that_count() -> None:
    body = """
      out[threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0);
      out[threadIdx.x] += 100 * __syncthreads_and(threadIdx.x < 64) + 1000 * __syncthreads_or(0);"""
    out = np.zeros(64, np.int32)
    run(body, out, threads=64)
    assert (out == 122).all()


def test_dynamic_shared_memory_is_not_zero() -> None:
    body = "DYNAMIC_SHARED(unsigned, tile); out[blockIdx.x] = tile[1]; tile[1] = 0;"
    out = np.zeros(2, np.uint32)
    run(body, out, blocks=2, shared=8)
    assert (out == 0xFDFDFDFD).all()


@pytest.mark.parametrize("threads", [64, 1])
def test_a_missing_barrier_shows(threads) -> None:
    body = """
      __shared__ int previous[65];
      previous[threadIdx.x + 1] = blockIdx.x * 100 + threadIdx.x;
      BARRIER
      if (threadIdx.x) out[blockIdx.x * blockDim.x + threadIdx.x] = previous[threadIdx.x];"""
    right, wrong = (np.zeros((2, threads), np.int32) for _ in range(2))
    run(body.replace("BARRIER", "__syncthreads();"), right, threads=threads, blocks=2)
    assert (right[:, 1:] == np.arange(threads - 1) + np.array([[0], [100]])).all()
    run(body.replace("BARRIER", ""), wrong, threads=threads, blocks=2)
    assert threads == 1 or (wrong != right).any()


@pytest.mark.parametrize(
    ("body", "threads", "message"),
    [
        ("if (threadIdx.x < 3) __syncwarp(); else __syncthreads();", 33, "divergent barrier"),
        ("__shfl_sync(1u, 0, 0);", 2, "does not name the lane"),
        ("*(int4*)(out + 1) = make_int4(0, 0, 0, 0);", 1, "line 3.*not aligned to 16 bytes"),
        ("out[0] = 1 / (int)blockIdx.x;", 1, "division by zero"),
        ("out[0] = 1 << (blockDim.x + 31);", 1, "shift by 32 bits"),
        ("__shared__ int t[4]; t[threadIdx.x] = 0; out[0] = t[0];", 5, r"index 4 .*thread 4,0,0"),
        ("__trap();", 1, "__trap"),
    ],
)
def test_what_is_refused(body, threads, message) -> None:
    lines = len(COMMON.splitlines())
    out = np.zeros(8, np.int32)
    with pytest.raises(KernelError, match=message.replace("line 3", f"line {lines + 3}")):
        run(body, out, threads=threads)


def test_arguments_are_checked() -> None:
    source = "__global__ void tested(const int* p, float f, long long n, bool b) {}"
    function = cpu_function(source, "tested")
    assert function.kinds == "pfib"
    right = (np.uint64(0), np.float32(1), np.int64(2), np.bool_(True))
    function(ONE, ONE, right)
    for k, wrong in enumerate((np.int64(0), np.float64(1), np.int32(2), np.int8(1))):
        with pytest.raises(KernelError, match=f"argument {k}: "):
            function(ONE, ONE, (*right[:k], wrong, *right[k + 1 :]))
    with pytest.raises(KernelError, match="no NumPy scalar"):
        function(ONE, ONE, (np.uint64(0), 1.0, *right[2:]))
    with pytest.raises(KernelError, match="4 parameters, got 3"):
        function(ONE, ONE, right[:3])


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [((1, 65536, 1), ONE, 0), (ONE, (1025, 1, 1), 0), (ONE, (32, 64, 1), 0), (ONE, ONE, 1 << 20)],
)
def test_limits_of_launches(grid, block, shared) -> None:
    function = cpu_function("__global__ void tested(int n) {}", "tested")
    with pytest.raises(KernelError):
        function(grid, block, (np.int32(0),), shared)


def test_bounds_of_launches_hold() -> None:
    source = """
    constexpr int WARPS = 2;
    template <typename T>
    __global__ void __launch_bounds__((32 * WARPS), 1)
    tested(T n) {}"""
    function = cpu_function(source, "tested<int>")
    function(ONE, (64, 1, 1), (np.int32(0),))
    with pytest.raises(KernelError, match="65 threads in a block, limit 64"):
        function(ONE, (65, 1, 1), (np.int32(0),))


def test_what_does_not_compile_is_told() -> None:
    with pytest.raises(RuntimeError, match="oops"):
        cpu_function("__global__ void tested(int n) { oops; }", "tested")

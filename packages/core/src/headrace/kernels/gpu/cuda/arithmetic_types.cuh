// What templates ask of element types.
#pragma once
#include "common.cuh"

template <typename A, typename B> constexpr bool same = false;
template <typename A> constexpr bool same<A, A> = true;

template <typename T> constexpr bool is_real = same<T, float> || same<T, double> || same<T, half>;
template <typename T> constexpr bool is_signed = T(-1) < T(0);
template <typename T> constexpr int bits = 8 * sizeof(T);
template <typename T> constexpr T lowest = is_signed<T> ? T(1ull << (bits<T> - 1)) : T(0);
template <typename T> constexpr uint64 highest =
    ~0ull >> (64 - bits<T> + (is_signed<T> ? 1 : 0));

template <int width> struct Register { using type = uint32; };
template <> struct Register<64> { using type = uint64; };

// An unsigned type for arithmetic that wraps around: signed and narrow ones have no such rule.
template <typename T> using Wrapping = typename Register<bits<T>>::type;

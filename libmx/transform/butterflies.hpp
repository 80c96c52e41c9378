// SPDX-License-Identifier: Apache-2.0
// Groups under Sylvester's matrix: butterflies at the distances 1, 2, 4, ..., in loops that
// compilers turn into vectors. T is float on the way there and double on the way back.
#pragma once

#include <cstddef>
#include <type_traits>

namespace mx::transform {

/// N values that lie side by side. Every stage takes neighbours and puts their sums into the first
/// half and their differences into the second, so that the next distance is one of neighbours
/// again: the additions are those in place, and log2 N stages restore the order.
template <typename T, std::size_t N, typename Load, typename Store>
void row_group(Load&& load, Store&& store) {
    T room[2][N];
    T* from = room[0];
    T* to = room[1];
    for (std::size_t i = 0; i < N; ++i) from[i] = load(i);
    for (std::size_t d = 1; d < N; d *= 2) {
        for (std::size_t i = 0; i < N / 2; ++i) {
            const T a = from[2 * i];
            const T b = from[2 * i + 1];
            to[i] = a + b;
            to[i + N / 2] = a - b;
        }
        T* const last = from;
        from = to;
        to = last;
    }
    for (std::size_t i = 0; i < N; ++i) store(i, from[i]);
}

/// Columns worked on side by side.
inline constexpr std::size_t strip = 16;

/// N rows of a strip of columns: load(i, k) and store(i, k, value) for row i, column k < strip.
template <typename T, std::size_t N, typename Load, typename Store>
void column_group(Load&& load, Store&& store) {
    T t[N][strip];
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < strip; ++k) t[i][k] = load(i, k);
    }
    for (std::size_t d = 1; d < N; d *= 2) {
        for (std::size_t i = 0; i < N; i += 2 * d) {
            for (std::size_t j = i; j < i + d; ++j) {
                for (std::size_t k = 0; k < strip; ++k) {
                    const T a = t[j][k];
                    const T b = t[j + d][k];
                    t[j][k] = a + b;
                    t[j + d][k] = a - b;
                }
            }
        }
    }
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < strip; ++k) store(i, k, t[i][k]);
    }
}

/// Calls body with a power of two up to 128 as a constant.
template <typename Body>
void with_size(std::size_t n, Body&& body) {
    switch (n) {
        case 128:
            return body(std::integral_constant<std::size_t, 128>());
        case 64:
            return body(std::integral_constant<std::size_t, 64>());
        case 32:
            return body(std::integral_constant<std::size_t, 32>());
        case 16:
            return body(std::integral_constant<std::size_t, 16>());
        case 8:
            return body(std::integral_constant<std::size_t, 8>());
        case 4:
            return body(std::integral_constant<std::size_t, 4>());
        case 2:
            return body(std::integral_constant<std::size_t, 2>());
        default:
            return body(std::integral_constant<std::size_t, 1>());
    }
}

}  // namespace mx::transform

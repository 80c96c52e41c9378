// SPDX-License-Identifier: Apache-2.0
// Groups under Sylvester's matrix: butterflies at the distances 1, 2, 4, ..., in loops that
// compilers turn into vectors. T is float on the way there and double on the way back.
#pragma once

#include <cstddef>
#include <type_traits>

namespace mx::transform {

/// One stage over `Count` values: sums and differences of neighbours go into the first and the
/// second half, so that the next distance of the stated order is one of neighbours again.
template <std::size_t Count, typename T>
void stage(const T* __restrict from, T* __restrict to) {
    for (std::size_t i = 0; i < Count / 2; ++i) {
        const T a = from[2 * i];
        const T b = from[2 * i + 1];
        to[i] = a + b;
        to[i + Count / 2] = a - b;
    }
}

/// Groups of N values that lie one after the other, `Groups` of them (a power of two) at once, so
/// that loops are long: load(i) and store(i, value) for the i-th of the N * Groups values. The
/// additions are those of each group in place. After log2 N stages, element i of group g is at
/// i * Groups + g.
template <typename T, std::size_t N, std::size_t Groups, typename Load, typename Store>
void row_groups(Load&& load, Store&& store) {
    constexpr std::size_t count = N * Groups;
    alignas(64) T room[2][count];
    for (std::size_t i = 0; i < count; ++i) room[0][i] = load(i);
    std::size_t at = 0;
    for (std::size_t d = 1; d < N; d *= 2, at = 1 - at) stage<count>(room[at], room[1 - at]);
    const T* const done = room[at];
    for (std::size_t g = 0; g < Groups; ++g) {
        for (std::size_t i = 0; i < N; ++i) store(g * N + i, done[i * Groups + g]);
    }
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

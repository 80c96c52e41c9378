// SPDX-License-Identifier: Apache-2.0
// Hadamard rotations, deterministic and with random signs: what is computed, bit for bit.
//
// A run (a row or a column) is cut into groups of `size` neighbours from its start. What is left at
// its end is cut into the largest powers of two that fit, largest first (20 = 16 + 4, 7 = 4 + 2 +
// 1), each a group of its own size n. A group x becomes y = f (H D x):
// - D: the signs of random_hadamard, one per position i of the run: bit 31 of draw i mod `size` of
//   the counter-based generator, set for a minus. They depend on the seed alone, so that the two
//   operands of a product, rotated along their common axis, cancel.
// - H: Sylvester's matrix of +1 and -1, as float32 butterflies (a, b) -> (a + b, a - b) at the
//   distances 1, 2, 4, ..., n/2, in this order.
// - f: the float32 nearest to 1/sqrt(n), one multiplication. Exact for n = 1, 4, 16, 64.
//
// The way back is the inverse of that matrix, D H y / (n f): the same butterflies, and one
// division, in double, rounded once to float32. Where the forward arithmetic was exact (integers of
// few bits with n = 16 or 64) it gives the same bits again; otherwise the group's error is at most
// (log2 n + 2) 2^-24 of its norm.
//
// Zeros come back as +0.
//
// NaN and Inf spread over their group. So does an overflow: |x| beyond 2^128 / n can become Inf. A
// NaN that comes out is the positive quiet one, whatever went in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mx::transform {

enum class kind : std::uint8_t {
    none,
    hadamard,         ///< H / sqrt(n), H the Sylvester matrix
    random_hadamard,  ///< H D / sqrt(n), D a diagonal of random signs
};

/// What is done to a tensor before quantization: `size` neighbours along the block axis are rotated
/// together. Members that cannot matter hold their defaults.
struct rotation {
    kind what = kind::none;
    int size = 0;            ///< 16, 32, 64 or 128; 0 with kind::none
    std::uint64_t seed = 0;  ///< of the signs

    friend bool operator==(const rotation&, const rotation&) = default;
};

inline constexpr int sizes[] = {16, 32, 64, 128};
inline constexpr int largest_size = 128;

/// The float32 nearest to 1/sqrt(n), for n a power of two up to largest_size.
float factor_of(std::size_t n);

/// The signs of positions 0 .. r.size-1 as +1 or -1; all +1 for kind::hadamard.
std::vector<float> signs_of(const rotation& r);

/// Rows of float32 numbers, `stride` from one to the next.
struct float_rows {
    float* data;
    std::size_t rows;
    std::size_t cols;
    std::size_t stride;
};

/// Which runs are rotated.
enum class run : std::uint8_t { row, column };

/// Rotates every run in place. `x` begins at a multiple of r.size from the start of its runs and
/// holds whole groups, or ends where they end. r.what is not none.
void rotate(const rotation& r, const float_rows& x, run along);

/// The way back.
void rotate_back(const rotation& r, const float_rows& x, run along);

}  // namespace mx::transform

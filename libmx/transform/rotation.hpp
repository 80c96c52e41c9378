// SPDX-License-Identifier: Apache-2.0
// Hadamard rotations, deterministic and with random signs, and rotations by a given matrix: what is
// computed, bit for bit.
//
// A run (a row or a column) is cut into groups of `size` neighbours from its start. What is left at
// its end is cut into the largest powers of two that fit, largest first (20 = 16 + 4, 7 = 4 + 2 +
// 1), each a group of its own size n. A group x becomes y = f (H D x):
// - D: the signs of random_hadamard, one per position i of the run: bit 31 of draw i mod `size` of
//   the counter-based generator, set for a minus. They depend on the seed alone, so that the two
//   operands of a product, rotated along their common axis, cancel.
// - H: for n = b 2^k the Kronecker product of Sylvester's matrix of 2^k and, where b is 12 or 20,
//   Paley's of q = b - 1 (construction I: H = I + S, S with rows of ones and of the quadratic
//   characters of j - i modulo q). As float32 sums: each b neighbours times Paley's matrix, terms
//   in ascending order, then butterflies (a, b) -> (a + b, a - b) at the distances b, 2b, ..., n/2.
// - f: the float32 nearest to 1/sqrt(n), one multiplication. Exact for n = 1, 4, 16, 64, 256, 1024.
//
// The inverse is that of the matrix, D H^T y / (n f): butterflies and sums, and one division, in
// double, rounded once to float32. If the forward arithmetic was exact (integers of few bits with n
// = 16 or 64) it gives the same bits again; otherwise the group's error is at most (log2 n + 2)
// 2^-24 of its norm, with b = 12 or 20 at most (log2 n + b) 2^-24.
//
// Under kind::matrix a group becomes M x, the sum of each row in double in ascending order, rounded
// once to float32; the inverse is that of the transposed matrix. The rest at the end of a run does
// not change.
//
// Zeros become +0.
//
// NaN and Inf spread over their group. So does an overflow: |x| beyond 2^128 / n can become Inf. A
// resulting NaN is the positive quiet one, whatever the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mx::transform {

enum class kind : std::uint8_t {
    none,
    hadamard,         ///< H / sqrt(n), H the Sylvester matrix
    random_hadamard,  ///< H D / sqrt(n), D a diagonal of random signs
    matrix,           ///< a matrix from a file
};

/// The rotation of a tensor before quantization: `size` neighbours along the block axis are rotated
/// together. Members that do not matter have their defaults.
struct rotation {
    kind what = kind::none;
    int size = 0;            ///< see is_size; 0 with kind::none
    std::uint64_t seed = 0;  ///< of the signs
    std::string file;        ///< with kind::matrix, see load_matrix

    friend bool operator==(const rotation&, const rotation&) = default;
};

/// Whether neighbours are rotated in groups of `n`: for Hadamard matrices 2 to 1024 by powers of
/// two, and 12 2^k and 20 2^k up to 1280; for a file's up to largest_size.
bool is_size(kind what, int n);
inline constexpr int largest_size = 1280;

/// The float32 nearest to 1/sqrt(n).
float factor_of(std::size_t n);

/// The order b of the matrix that sizes n = b 2^k are made from: 1, 12 or 20; 0 if there is none.
std::size_t base_of(std::size_t n);
/// Row `i`, column `j` of that matrix, 1 or -1.
int base_entry(std::size_t b, std::size_t i, std::size_t j);

/// Reads the matrix of `r` (kind::matrix): a text of r.size rows of r.size numbers, separated by
/// blanks, commas or line ends; '#' begins a comment. Its rows are orthogonal and of one length,
/// within 1e-5, and are divided by that length. Cached: a file is read once. Throws base::error
/// (input) naming the file, and what to do.
std::shared_ptr<const std::vector<double>> load_matrix(const rotation& r);

/// The signs of positions 0 .. r.size-1 as +1 or -1; all +1 but for kind::random_hadamard.
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
/// holds whole groups, or ends where they end. r.what is not none. Throws as load_matrix does.
void rotate(const rotation& r, const float_rows& x, run along);

/// The inverse.
void rotate_back(const rotation& r, const float_rows& x, run along);

}  // namespace mx::transform

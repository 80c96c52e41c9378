// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "libmx/base/simd/targets.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::transform::simd {

/// Whole groups of a Hadamard rotation in all runs of `x`.
struct groups {
    float_rows x;  ///< runs are multiples of `size`
    run along;
    std::size_t size;
    std::size_t base;    ///< 1, 12 or 20: the order of the matrix that `size` is made from
    const float* signs;  ///< of the positions in a group
};

/// Computations in place: of rotation.hpp, the way there and the way back.
struct turns {
    void (*there)(const groups&) = nullptr;
    void (*back)(const groups&) = nullptr;
};

/// For every size, in plain C++; the reference of the others.
extern const turns portable_turns;

/// Kernels for sizes of base 1; null if this build lacks the instruction set.
turns turns_for(base::simd::target t);

}  // namespace mx::transform::simd

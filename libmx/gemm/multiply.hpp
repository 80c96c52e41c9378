// SPDX-License-Identifier: Apache-2.0
// The emulated product: every output is one dot product, independent of all others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/notices.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// The order in which k is walked.
enum class k_order : std::uint8_t { ascending, descending };

/// How the terms of a long dot product are arranged around the fused steps.
struct arrangement {
    k_order order = k_order::ascending;
    /// K is cut into so many slices of equal numbers of steps; each begins at zero, the slices'
    /// sums are added in float32 in ascending order. 1: none. The last slice may be shorter. Like
    /// the order, of no effect on the exact model.
    std::size_t slices = 1;
    /// D = alpha * sum + beta * C in float32 after the sum: beta * C is rounded, alpha * sum fused
    /// onto it. Tensor scales, or those of row and column, are multiplied into alpha, in float32.
    float alpha = 1.0F, beta = 0.0F;
    /// Whether C is the first accumulator (C += A B) instead of entering with beta.
    bool accumulate_c = false;
};

struct backend;

struct multiply_control {
    int threads = 0;
    std::string_view backend;  ///< "": the fastest; "scalar": the plain loop
    /// Who hears that a device without room was replaced with the CPU, not owned; null: that is an
    /// error.
    base::notices* notices = nullptr;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
};

/// D (M x N, float32 bits, or f16 bits of models that give f16) = A times B transposed under
/// `model`. `c` is empty (zeros) or M x N, bits as D's. K that is no multiple of the step's length
/// is filled with zeros. NaN is canonical (0x7fffffff, 0x7fff). Same bits for any number of threads
/// and any backend. Throws base::error (usage) when the model does not take such operands,
/// naming one that does.
std::vector<std::uint32_t> multiply(const operand& a, const operand& b,
                                    std::span<const std::uint32_t> c, const accumulator& model,
                                    const arrangement& how, const multiply_control& control);

/// The same by `by`, whatever `control` names.
std::vector<std::uint32_t> multiply_by(const backend& by, const operand& a, const operand& b,
                                       std::span<const std::uint32_t> c, const accumulator& model,
                                       const arrangement& how, const multiply_control& control);

}  // namespace mx::gemm

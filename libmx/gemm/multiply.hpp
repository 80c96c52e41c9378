// SPDX-License-Identifier: Apache-2.0
// The emulated product: every output is an independent dot product.
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

/// The order of k.
enum class k_order : std::uint8_t { ascending, descending };

/// How the terms of a long dot product are arranged in fused steps.
struct arrangement {
    k_order order = k_order::ascending;
    /// K is divided into this many slices with equal numbers of steps (the last may be shorter).
    /// Each slice starts at zero, and the sums of slices are added in float32 in ascending order.
    /// 1: no slices. Like the order, has no effect on the exact model.
    std::size_t slices = 1;
    /// D = alpha * sum + beta * C in float32 after the sum: beta * C is rounded, and alpha * sum
    /// added with a fused multiply-add. Tensor scales, or those of row and column, are multiplied
    /// into alpha, in float32.
    float alpha = 1.0F, beta = 0.0F;
    /// Whether C is the first accumulator (C += A B); otherwise it enters with beta.
    bool accumulate_c = false;
};

struct backend;

struct multiply_control {
    int threads = 0;
    std::string_view backend;  ///< "": the fastest; "scalar": the plain loop
    /// Called if the CPU replaces a device that lacks memory; non-owning. Null: that is an error.
    base::notices* notices = nullptr;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
};

/// D (M x N, float32 bits, or f16 bits for models that give f16) = A times B transposed under
/// `model`. `c` is empty (zeros) or M x N, in the format of D. If K is not a multiple of the step
/// length, it is padded with zeros. NaN is canonical (0x7fffffff, 0x7fff). The bits do not depend
/// on threads or the backend. Throws base::error (usage) if the model does not take such operands,
/// with the name of one that does.
std::vector<std::uint32_t> multiply(const operand& a, const operand& b,
                                    std::span<const std::uint32_t> c, const accumulator& model,
                                    const arrangement& how, const multiply_control& control);

/// The same with backend `by`, whatever `control` names.
std::vector<std::uint32_t> multiply_by(const backend& by, const operand& a, const operand& b,
                                       std::span<const std::uint32_t> c, const accumulator& model,
                                       const arrangement& how, const multiply_control& control);

}  // namespace mx::gemm

// SPDX-License-Identifier: Apache-2.0
// Runs a sequence of products with one progress display for all of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/studies/products/operand_forms.hpp"

namespace mx::products {

/// The largest number of elements of a product: it is held in memory.
inline constexpr std::uint64_t largest_product = std::uint64_t{1} << 31;

/// Multiplies operands under models and hands out float32 values.
class product_runner {
  public:
    /// `total`: multiply-adds of all products, for the progress.
    product_runner(const engine::run_control& control, std::string_view backend,
                   std::uint64_t total)
        : control_(control), backend_(backend), total_(total) {}

    /// D in float32. `c`: empty, or the values of C. Throws as gemm::multiply does, and base::error
    /// (usage) for a product larger than largest_product.
    std::vector<float> multiply(const gemm::operand& a, const gemm::operand& b,
                                std::span<const float> c, const gemm::accumulator& model,
                                const gemm::arrangement& how);

    /// The exact product of the same operands, rounded once, with the same alpha, beta and C.
    std::vector<float> exact(const gemm::operand& a, const gemm::operand& b,
                             std::span<const float> c, const gemm::arrangement& how);

  private:
    const engine::run_control& control_;
    std::string backend_;
    std::uint64_t total_;
    std::uint64_t done_ = 0;
};

}  // namespace mx::products

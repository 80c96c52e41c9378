// SPDX-License-Identifier: Apache-2.0
// Measures how quantization affects the three products of a linear layer in training.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/products/error_spread.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/stage_list.hpp"

namespace mx::products {

struct stages_request {
    /// By stage and operand.
    std::array<std::array<operand_recipe, 2>, stage_rows.size()> recipes;
    /// Transforms by name; the others are compared with the first one. Empty: those of the recipes.
    std::vector<std::string> transforms;
    int transform_size = 0;  ///< neighbours rotated together; 0: the recipe's default
    /// Also measure operands that are quantized a second time: the transposed ones, made from the
    /// copies that Fprop and Dgrad quantized along the other axis.
    bool requantize = true;
    /// Empty: the operands' native model, then exact.
    std::vector<gemm::accumulator> models;
    gemm::arrangement how;
    std::string backend;
};

/// One product of one layer.
struct stage_result {
    std::size_t stage = 0;     ///< of stage_rows
    std::string transform;     ///< "" where the recipes decide, or have no blocks to rotate
    bool requantized = false;  ///< operands quantized twice
    std::array<operand_recipe, 2> recipes;
    gemm::accumulator model;
    std::size_t m = 0, n = 0, k = 0;
    std::array<value_errors, 2> operands;  ///< of what was multiplied against the tensors
    product_figures errors;
    std::optional<double> gain_error;  ///< standard error of the gain of errors.total
    /// The error divided by that of the stage's first result; nullopt for that result itself, and
    /// if it has no error.
    std::optional<error_ratio> over_first;

    /// |g_mx - g| / |g| of a gradient (Su et al., arXiv 2506.20752); nullopt for Fprop.
    std::optional<double> zeta() const;
    /// The relative error of the product if the operands' errors were independent: sqrt(a^2 + b^2 +
    /// a^2 b^2), where a and b are their relative errors.
    std::optional<double> expected_nrmse() const;
};

/// The tensors of a layer; without dY, only Fprop is computed.
struct layer_tensors {
    const matrix* x = nullptr;
    const matrix* w = nullptr;
    const matrix* dy = nullptr;
    const matrix& of(layer_tensor t) const;
};

/// Results by stage, transform, source (original, then requantized) and model. Throws base::error
/// (usage) if shapes, rotations or models do not fit.
std::vector<stage_result> study_stages(const layer_tensors& layer, const stages_request& request,
                                       const engine::run_control& control);

/// `m` with rows and columns exchanged.
matrix transposed(const matrix& m);

/// The meaning of a ratio of errors: "same" within 2 % of 1, "unsure" within twice its standard
/// error of 1, else "helps" or "harms". Without a standard error, only the 2 % apply.
std::string_view change_word(const error_ratio& r);

/// The stages with unacceptable errors, elements that are not finite, the effect of rotations, and
/// multiplicative bias, a sentence each.
std::vector<std::string> sentences_of(const std::vector<stage_result>& results);

report::record stage_record(const stage_result& r);
/// A tensor of the layer.
report::record tensor_record(const io::tensor_info& t);
/// The schema mx.layer/1.
report::document_schema stages_schema();

}  // namespace mx::products

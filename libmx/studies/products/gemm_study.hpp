// SPDX-License-Identifier: Apache-2.0
// Compares one product under several accumulator models: the error of each, and their differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/products/matrix.hpp"
#include "libmx/studies/products/operand_recipe.hpp"
#include "libmx/studies/products/value_errors.hpp"

namespace mx::products {

struct gemm_request {
    operand_recipe recipe_a, recipe_b;
    reduction over_a = reduction::last;   ///< A is M x K
    reduction over_b = reduction::first;  ///< B is K x N
    /// Empty: the operands' native model, float32 fused multiply-adds, and exact.
    std::vector<gemm::accumulator> models;
    gemm::arrangement how;
    bool growth = false;  ///< also after K/8, K/4 and K/2
    std::string backend;  ///< of the products; "": the fastest
};

/// Two errors with different references.
struct product_figures {
    value_errors accumulation;  ///< against the exact product of the operands the model was given
    value_errors total;         ///< against the exact product of the values before quantization
};

struct model_product {
    gemm::accumulator model;
    std::string form_a, form_b;                  ///< how the operands were handed over
    std::uint64_t inexact_a = 0, inexact_b = 0;  ///< values that this changed
    std::vector<float> d;                        ///< M x N
    product_figures errors;
};

/// The difference between the products of two models.
struct model_difference {
    std::size_t first = 0, second = 0;  ///< places in gemm_study::products
    value_errors errors;                ///< of the second against the first
};

/// A model's errors after the first `depth` elements of K.
struct growth_point {
    std::size_t product = 0;
    std::size_t depth = 0;
    product_figures errors;
};

struct gemm_study {
    std::size_t m = 0, n = 0, k = 0;
    value_errors a, b;  ///< of the quantized operands
    std::vector<model_product> products;
    std::vector<model_difference> differences;
    std::vector<growth_point> growth;
};

/// Throws base::error (usage) unless A (M x K), B (K x N) and C (M x N, or nullptr) fit.
void require_shapes(const matrix& a, const matrix& b, const matrix* c, reduction over_a,
                    reduction over_b);

/// Multiplies. `c`: M x N or nullptr. Exact products use the same alpha, beta and C. Throws
/// base::error (usage) if shapes, rotations or models do not fit.
gemm_study study_gemm(const matrix& a, const matrix& b, const matrix* c,
                      const gemm_request& request, const engine::run_control& control);

/// Members of the errors, and their declarations.
void append_figures(report::record& r, const product_figures& f);
void add_figures(report::member_list& to);

/// The error of quantization, the error that summing adds, and the models that differ most, a
/// sentence each.
std::vector<std::string> sentences_of(const gemm_study& s);

/// The schema mx.gemm/1.
report::document_schema gemm_schema();

/// One record per model.
report::record product_record(const gemm_study& s, const gemm_request& request,
                              const model_product& p);
report::record difference_record(const gemm_study& s, const model_difference& d);
report::record growth_record(const gemm_study& s, const growth_point& p);

/// An operand and the errors of its quantization.
report::record operand_record(const matrix& m, reduction over, const operand_recipe& recipe,
                              const value_errors& errors);

}  // namespace mx::products

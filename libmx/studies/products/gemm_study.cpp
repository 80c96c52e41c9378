// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/gemm_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "libmx/base/status.hpp"
#include "libmx/studies/products/conversions.hpp"
#include "libmx/studies/products/products.hpp"
#include "libmx/studies/products/quantized_operand.hpp"

namespace mx::products {
namespace {

// Depths at which growth is measured consist of whole fused steps, scale blocks and rotated groups.
constexpr std::size_t growth_unit = 128;
constexpr std::size_t growth_parts[] = {8, 4, 2};

std::vector<std::size_t> growth_depths(std::size_t k) {
    std::vector<std::size_t> depths;
    for (const std::size_t part : growth_parts) {
        const std::size_t depth = (k / part + growth_unit - 1) / growth_unit * growth_unit;
        if (depth < k && (depths.empty() || depths.back() != depth)) depths.push_back(depth);
    }
    return depths;
}

// The same product at several depths; each exact product is computed once.
class workshop {
  public:
    workshop(const matrix& a, const matrix& b, const matrix* c, const gemm_request& request,
             const engine::run_control& control)
        : request_(request),
          rotate_(common_rotation(request.recipe_a, request.recipe_b)),
          a_(quantize_operand(a, request.over_a, request.recipe_a, rotate_, control)),
          b_(quantize_operand(b, request.over_b, request.recipe_b, rotate_, control)),
          c_(c == nullptr ? std::span<const float>() : std::span<const float>(c->values)),
          models_(request.models.empty() ? default_models() : request.models),
          plain_a_(plain(a, request.over_a)),
          plain_b_(plain(b, request.over_b)),
          runner_(control, request.backend, work()) {}

    gemm_study study() {
        gemm_study s;
        s.m = a_.rows;
        s.n = b_.rows;
        s.k = a_.depth;
        s.a = a_.error;
        s.b = b_.error;
        std::vector<form_pair> forms;  // all forms first, so that unsupported ones fail at once
        for (const gemm::accumulator& m : models_) forms.push_back(forms_for(m, a_, b_));
        for (std::size_t i = 0; i < models_.size(); ++i) {
            const auto& [as_a, as_b] = forms[i];
            model_product p{models_[i], as_a.words, as_b.words, as_a.inexact, as_b.inexact, {}, {}};
            p.errors = product(models_[i], forms[i], s.k, p.d);
            s.products.push_back(std::move(p));
        }
        for (std::size_t i = 0; i < s.products.size(); ++i) {
            for (std::size_t j = i + 1; j < s.products.size(); ++j) {
                s.differences.push_back({i, j, compare_values(s.products[i].d, s.products[j].d)});
            }
        }
        if (!request_.growth) return s;
        for (const std::size_t depth : growth_depths(s.k)) {
            exact_.clear();
            for (std::size_t i = 0; i < models_.size(); ++i) {
                std::vector<float> d;
                s.growth.push_back({i, depth, product(models_[i], forms[i], depth, d)});
            }
        }
        for (std::size_t i = 0; i < s.products.size(); ++i) {
            s.growth.push_back({i, s.k, s.products[i].errors});
        }
        return s;
    }

  private:
    std::vector<gemm::accumulator> default_models() const {
        std::vector<gemm::accumulator> models{native_model(a_, b_)};
        for (const gemm::algorithm how : {gemm::algorithm::fma_chain, gemm::algorithm::exact}) {
            const gemm::accumulator& m = model_with(how);
            if (m.name != models.front().name) models.push_back(m);
        }
        return models;
    }

    static gemm::operand plain(const matrix& m, reduction over) {
        return values_operand("f32", reduction_last(m.values, m.rows, m.cols, over),
                              operand_rows(m, over), operand_depth(m, over));
    }

    // Multiply-adds of all products at every depth: those of a model, an exact one for comparison,
    // and the exact one of the values.
    std::uint64_t work() const {
        std::uint64_t depth = a_.depth;
        if (request_.growth) {
            for (const std::size_t d : growth_depths(a_.depth)) depth += d;
        }
        return std::uint64_t{a_.rows} * b_.rows * depth * (2 * models_.size() + 1);
    }

    const std::vector<float>& exact(const std::string& key, const gemm::operand& a,
                                    const gemm::operand& b) {
        const auto known = exact_.find(key);
        if (known != exact_.end()) return known->second;
        return exact_.emplace(key, runner_.exact(a, b, c_, request_.how)).first->second;
    }

    product_figures product(const gemm::accumulator& model, const form_pair& forms,
                            std::size_t depth, std::vector<float>& d) {
        const gemm::operand a = first_of(forms.first.operand, depth);
        const gemm::operand b = first_of(forms.second.operand, depth);
        d = runner_.multiply(a, b, c_, model, request_.how);
        const std::string key = forms.first.words + " x " + forms.second.words;
        const std::vector<float>& given = exact(key, a, b);
        product_figures f;
        f.accumulation = compare_values(given, d);
        f.total = compare_values(
            exact("values", first_of(plain_a_, depth), first_of(plain_b_, depth)), d);
        return f;
    }

    const gemm_request& request_;
    transform::rotation rotate_;
    quantized_operand a_, b_;
    std::span<const float> c_;
    std::vector<gemm::accumulator> models_;
    gemm::operand plain_a_, plain_b_;
    product_runner runner_;
    std::map<std::string, std::vector<float>> exact_;
};

}  // namespace

void require_shapes(const matrix& a, const matrix& b, const matrix* c, reduction over_a,
                    reduction over_b) {
    const std::size_t ka = operand_depth(a, over_a);
    const std::size_t kb = operand_depth(b, over_b);
    if (ka != kb) {
        const bool other = operand_rows(b, over_b) == ka;
        const char* hint = "";
        if (other && over_b == reduction::first) hint = "; --transpose-b fits: B is NxK";
        if (other && over_b == reduction::last) hint = "; without --transpose-b it fits";
        base::refuse("A is {}x{} and B is {}x{}, so K would be {} and {}{}", a.rows, a.cols, b.rows,
                     b.cols, ka, kb, hint);
    }
    const std::size_t m = operand_rows(a, over_a);
    const std::size_t n = operand_rows(b, over_b);
    if (c != nullptr && (c->rows != m || c->cols != n)) {
        base::refuse("C is {}x{}, the product {}x{}", c->rows, c->cols, m, n);
    }
}

gemm_study study_gemm(const matrix& a, const matrix& b, const matrix* c,
                      const gemm_request& request, const engine::run_control& control) {
    require_shapes(a, b, c, request.over_a, request.over_b);
    return workshop(a, b, c, request, control).study();
}

}  // namespace mx::products

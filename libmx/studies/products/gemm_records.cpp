// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/accumulators.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/gemm_study.hpp"

namespace mx::products {
namespace {

void append_figures(report::record& r, const product_figures& f) {
    append_errors(r, "accumulation_", f.accumulation);
    append_errors(r, "total_", f.total);
}

std::string name_of(const gemm_study& s, std::size_t product) {
    return gemm::to_string(s.products[product].model);
}

}  // namespace

report::record product_record(const gemm_study& s, const gemm_request& request,
                              const model_product& p) {
    report::record r{{"model", gemm::to_string(p.model)},
                     {"instruction", std::string(p.model.instruction)},
                     {"recipe_a", to_string(request.recipe_a)},
                     {"recipe_b", to_string(request.recipe_b)},
                     {"m", report::tally(s.m)},
                     {"n", report::tally(s.n)},
                     {"k", report::tally(s.k)},
                     {"form_a", p.form_a},
                     {"form_b", p.form_b},
                     {"inexact_a", report::tally(p.inexact_a)},
                     {"inexact_b", report::tally(p.inexact_b)}};
    append_figures(r, p.errors);
    return r;
}

report::record difference_record(const gemm_study& s, const model_difference& d) {
    report::record r{{"model", name_of(s, d.first)}, {"other", name_of(s, d.second)}};
    append_errors(r, "", d.errors);
    r.emplace_back("differing_share", report::share(d.errors.differing, d.errors.counted()));
    return r;
}

report::record growth_record(const gemm_study& s, const growth_point& p) {
    report::record r{{"model", name_of(s, p.product)}, {"k", report::tally(p.depth)}};
    append_figures(r, p.errors);
    return r;
}

report::record operand_record(const matrix& m, reduction over, const operand_recipe& recipe,
                              const value_errors& errors) {
    report::record r{{"file", m.file},
                     {"tensor", m.name},
                     {"dtype", std::string(tensor::row_of(m.type).name)},
                     {"shape", report::to_list(m.shape)},
                     {"recipe", to_string(recipe)},
                     {"rows", report::tally(operand_rows(m, over))},
                     {"depth", report::tally(operand_depth(m, over))},
                     {"inexact", report::tally(m.inexact)}};
    append_errors(r, "", errors);
    return r;
}

}  // namespace mx::products

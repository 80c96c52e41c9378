// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "libmx/base/decibels.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/gemm_study.hpp"

namespace mx::products {
namespace {

struct shown_product {
    const gemm_study& s;
    const gemm_request& request;
    const model_product& p;
};
constexpr std::array product_members = std::to_array<report::declared<shown_product>>({
    {"model", "string", "", [](auto& x) { return gemm::to_string(x.p.model); }},
    {"instruction", "string", "empty: software", [](auto& x) { return x.p.model.instruction; }},
    {"recipe_a", "string", "", [](auto& x) { return to_string(x.request.recipe_a); }},
    {"recipe_b", "string", "", [](auto& x) { return to_string(x.request.recipe_b); }},
    {"m", "count", "rows", [](auto& x) { return x.s.m; }},
    {"n", "count", "columns", [](auto& x) { return x.s.n; }},
    {"k", "count", "depth", [](auto& x) { return x.s.k; }},
    {"form_a", "string", "what the model was given of A", [](auto& x) { return x.p.form_a; }},
    {"form_b", "string", "", [](auto& x) { return x.p.form_b; }},
    {"inexact_a", "count", "values of A that this changed", [](auto& x) { return x.p.inexact_a; }},
    {"inexact_b", "count", "", [](auto& x) { return x.p.inexact_b; }},
});

struct shown_difference {
    const gemm_study& s;
    const model_difference& d;
};
std::string name_of(const gemm_study& s, std::size_t product) {
    return gemm::to_string(s.products[product].model);
}
constexpr std::array models_members = std::to_array<report::declared<shown_difference>>({
    {"model", "string", "", [](auto& x) { return name_of(x.s, x.d.first); }},
    {"other", "string", "", [](auto& x) { return name_of(x.s, x.d.second); }},
});
constexpr std::array share_members = std::to_array<report::declared<value_errors>>({
    {"differing_share", "share?", "",
     [](auto& e) { return report::share(e.differing, e.counted()); }},
});

struct shown_growth {
    const gemm_study& s;
    const growth_point& p;
};
constexpr std::array growth_members = std::to_array<report::declared<shown_growth>>({
    {"model", "string", "", [](auto& x) { return name_of(x.s, x.p.product); }},
    {"k", "count", "", [](auto& x) { return x.p.depth; }},
});

struct shown_operand {
    const matrix& m;
    reduction over;
    const operand_recipe& recipe;
};
constexpr std::array operand_members = std::to_array<report::declared<shown_operand>>({
    {"file", "@members#file", "", [](auto& x) { return x.m.file; }},
    {"tensor", "@members#tensor", "", [](auto& x) { return x.m.name; }},
    {"dtype", "@members#dtype", "", [](auto& x) { return tensor::row_of(x.m.type).name; }},
    {"shape", "@members#shape", "",
     [](auto& x) { return report::value(report::to_list(x.m.shape)); }},
    {"recipe", "string", "", [](auto& x) { return to_string(x.recipe); }},
    {"rows", "count", "rows that are not summed over",
     [](auto& x) { return operand_rows(x.m, x.over); }},
    {"depth", "count", "elements that are summed over",
     [](auto& x) { return operand_depth(x.m, x.over); }},
    {"inexact", "count", "values rounded to float32 when read",
     [](auto& x) { return x.m.inexact; }},
});

}  // namespace

void append_figures(report::record& r, const product_figures& f) {
    report::append(r, error_members, f.accumulation, "accumulation_");
    report::append(r, error_members, f.total, "total_");
}
void add_figures(report::member_list& to) {
    to.add(error_members, "accumulation_").add(error_members, "total_");
}

report::record product_record(const gemm_study& s, const gemm_request& request,
                              const model_product& p) {
    report::record r = report::written(product_members, {s, request, p});
    append_figures(r, p.errors);
    return r;
}

report::record difference_record(const gemm_study& s, const model_difference& d) {
    report::record r = report::written(models_members, {s, d});
    report::append(r, error_members, d.errors);
    report::append(r, share_members, d.errors);
    return r;
}

report::record growth_record(const gemm_study& s, const growth_point& p) {
    report::record r = report::written(growth_members, {s, p});
    append_figures(r, p.errors);
    return r;
}

report::record operand_record(const matrix& m, reduction over, const operand_recipe& recipe,
                              const value_errors& errors) {
    report::record r = report::written(operand_members, {m, over, recipe});
    report::append(r, error_members, errors);
    return r;
}

std::vector<std::string> sentences_of(const gemm_study& s) {
    std::vector<std::string> lines;
    for (const model_product& p : s.products) {
        const double error = p.errors.total.nrmse().value_or(0);
        const double summing = p.errors.accumulation.nrmse().value_or(0);
        const std::string adds = summing > 0 ? fmt::format("summing alone gives {:.3g}", summing)
                                             : std::string("summing is exact");
        lines.push_back(
            error > 0 ? fmt::format("{}: the error is {:.3g} of the product ({} dB); {}.",
                                    gemm::to_string(p.model), error,
                                    report::fixed_text(base::decibels_of_root(error), 2), adds)
                      : fmt::format("{}: exact.", gemm::to_string(p.model)));
    }
    const model_difference* most = nullptr;
    for (const model_difference& d : s.differences) {
        if (most == nullptr || d.errors.differing > most->errors.differing) most = &d;
    }
    if (most != nullptr && most->errors.differing == 0) {
        lines.push_back("All models agree in every element.");
    } else if (most != nullptr) {
        const report::record r = difference_record(s, *most);
        lines.push_back(fmt::format(
            "{} and {} differ most: in {} % of the elements, by at most {} ulps of float32.",
            report::text_of(r, "model"), report::text_of(r, "other"),
            report::percent_text(report::number_of(r, "differing_share").value_or(0)),
            report::grouped(report::whole(report::number_of(r, "max_ulp").value_or(0)))));
    }
    return lines;
}

report::document_schema gemm_schema() {
    report::member_list product, difference, growth, operand;
    add_figures(product.add(product_members));
    difference.add(models_members).add(error_members).add(share_members);
    add_figures(growth.add(growth_members));
    operand.add(operand_members).add(error_members);
    return report::document_schema(
               "mx.gemm/1", "mx gemm",
               "A matrix product under models of matrix units, and its error. Members that begin "
               "with accumulation_ are against the exact product of the operands as given to the "
               "model, those that begin with total_ against that of the values before "
               "quantization.")
        .member({"verdict", "[string]", "what the command says, a sentence each"})
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"a", "#operand", "A, M x K"})
        .member({"b", "#operand", "B, K x N"})
        .member({"arrangement", "@common#arrangement", ""})
        .member({"results", "[#product]", "a model each"})
        .member({"differences", "[#difference]", "two models each: the second against the first"})
        .member({"growth", "[#growth]", "with --growth: a model's errors over the first k each"})
        .define("product", product)
        .define("difference", difference)
        .define("growth", growth)
        .define("operand", operand);
}

}  // namespace mx::products

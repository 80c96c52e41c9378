// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/product_check.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/sum_interval.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/operand_terms.hpp"
#include "libmx/studies/products/products.hpp"

namespace mx::products {
namespace {

constexpr std::string_view any_order = "any-order-f32";
constexpr std::string_view any_order_faithful = "any-order-f32-faithful";

// The wide format of D's values.
std::string_view output_format(const matrix& d) {
    switch (d.type) {
        case tensor::dtype::f32:
            return "f32";
        case tensor::dtype::bf16:
            return "bf16";
        case tensor::dtype::f16:
            return "f16";
        default:
            base::refuse("D is {}; outputs of F32, BF16 or F16 can be checked",
                         tensor::row_of(d.type).name);
    }
}

// The conforming outputs after the sum was rounded to D's format.
void round_ends(std::string_view format, gemm::sum_interval& r) {
    if (format == "f32" || r.nan) return;
    float ends[] = {static_cast<float>(r.low), static_cast<float>(r.high)};
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (static_cast<double>(ends[0]) < r.low) ends[0] = std::nextafter(ends[0], infinity);
    if (static_cast<double>(ends[1]) > r.high) ends[1] = std::nextafter(ends[1], -infinity);
    format::round_to_wide(format, ends);
    r.low = static_cast<double>(ends[0]);
    r.high = static_cast<double>(ends[1]);
}

class product_checker {
  public:
    product_checker(const matrix& d, const matrix& a, const matrix& b, const matrix* c,
                    const check_request& request, const engine::run_control& control)
        : d_(d),
          c_(c),
          request_(request),
          control_(control),
          format_(output_format(d)),
          of_(a, b, request, control) {
        if (d.rows != of_.a.rows || d.cols != of_.b.rows) {
            base::refuse("D is {}x{}, the product {}x{}", d.rows, d.cols, of_.a.rows, of_.b.rows);
        }
    }

    product_check run() {
        product_check all;
        all.m = of_.a.rows;
        all.n = of_.b.rows;
        all.k = of_.a.depth;
        if (request_.of.unit) multiply();
        std::vector<product_check> by_row(all.m);
        base::parallel_for(all.m, control_.threads, control_.cancel, [&](std::uint64_t r, int) {
            check_row(static_cast<std::size_t>(r), by_row[r]);
        });
        for (product_check& row : by_row) {
            all.outside += row.outside;
            all.single += row.single;
            all.unbounded += row.unbounded;
            all.widest = std::max(all.widest, row.widest);
            all.used = std::max(all.used, row.used);
            const std::size_t room = request_.show - all.first.size();
            row.first.resize(std::min(room, row.first.size()));
            all.first.insert(all.first.end(), row.first.begin(), row.first.end());
        }
        return all;
    }

  private:
    void multiply() {
        const form_pair forms = forms_for(*request_.of.unit, of_.a, of_.b);
        gemm::arrangement how = request_.of.how;
        how.accumulate_c = c_ != nullptr;
        product_runner runner(control_, request_.backend,
                              std::uint64_t{of_.a.rows} * of_.b.rows * of_.a.depth);
        expected_ = runner.multiply(forms.first.operand, forms.second.operand,
                                    c_ == nullptr ? std::span<const float>() : c_->values,
                                    *request_.of.unit, how);
    }

    gemm::sum_interval conforming(std::size_t row, std::size_t col, std::vector<double>& terms) {
        gemm::sum_interval r;
        if (!expected_.empty()) {
            r.exact = static_cast<double>(expected_[row * of_.b.rows + col]);
            r.nan = std::isnan(r.exact);
            r.low = r.high = r.exact;
            return r;
        }
        of_.terms(of_.x.data() + row * of_.a.depth, row, col, terms);
        if (c_ != nullptr) {
            terms[of_.a.depth] = static_cast<double>(c_->values[row * of_.b.rows + col]);
        }
        return interval_of_sum(terms, of_.how);
    }

    void check_row(std::size_t row, product_check& to) {
        std::vector<double> terms(of_.a.depth + (c_ != nullptr ? 1 : 0));
        for (std::size_t col = 0; col < of_.b.rows; ++col) {
            gemm::sum_interval r = conforming(row, col, terms);
            round_ends(format_, r);
            to.unbounded += r.unbounded ? 1 : 0;
            to.single += !r.unbounded && (r.nan || r.low == r.high) ? 1 : 0;
            const float got = d_.values[row * of_.b.rows + col];
            if (r.contains(static_cast<double>(got))) {
                note_share(r, static_cast<double>(got), to);
                continue;
            }
            ++to.outside;
            if (to.first.size() < request_.show) {
                constexpr double nan = std::numeric_limits<double>::quiet_NaN();
                to.first.push_back({row, col, got, r.nan ? nan : r.low, r.nan ? nan : r.high});
            }
        }
    }

    static void note_share(const gemm::sum_interval& r, double got, product_check& to) {
        if (r.unbounded || r.nan || r.low == r.high) return;
        to.widest = std::max({to.widest, r.high - r.exact, r.exact - r.low});
        const double side = got < r.exact ? r.exact - r.low : r.high - r.exact;
        if (side > 0) to.used = std::max(to.used, std::abs(got - r.exact) / side);
    }

    const matrix& d_;
    const matrix* c_;
    const check_request& request_;
    const engine::run_control& control_;
    std::string_view format_;
    operand_terms of_;
    std::vector<float> expected_;
};

constexpr std::array check_members = std::to_array<report::declared<product_check>>({
    {"m", "count", "rows", [](auto& p) { return p.m; }},
    {"n", "count", "columns", [](auto& p) { return p.n; }},
    {"k", "count", "depth", [](auto& p) { return p.k; }},
    {"outputs", "count", "", [](auto& p) { return p.outputs(); }},
    {"outside", "count", "outputs that no kernel of the class gives",
     [](auto& p) { return p.outside; }},
    {"single", "count", "outputs for which only one value conforms",
     [](auto& p) { return p.single; }},
    {"unbounded", "count", "outputs for which every value conforms, as some order can overflow",
     [](auto& p) { return p.unbounded; }},
    {"widest", "amount", "the largest distance from the exact sum that conforms",
     [](auto& p) { return p.widest; }},
    {"used", "share", "the largest share of that distance that an output inside has",
     [](auto& p) { return p.used; }},
});
constexpr std::array outside_members = std::to_array<report::declared<output_outside>>({
    {"row", "count", "", [](auto& o) { return o.row; }},
    {"column", "count", "", [](auto& o) { return o.column; }},
    {"got", "number?", "null: not finite", [](auto& o) { return static_cast<double>(o.got); }},
    {"low", "number?", "the least value that conforms; null: NaN or Inf alone does",
     [](auto& o) { return o.low; }},
    {"high", "number?", "", [](auto& o) { return o.high; }},
});

}  // namespace

kernel_class parse_kernel_class(const std::string& text) {
    kernel_class k;
    k.faithful = text == any_order_faithful;
    if (k.faithful || text == any_order) return k;
    if (text.starts_with("any")) {
        base::refuse("unknown class '{}'; give {}, {} or an accumulator (mx explain accumulators)",
                     text, any_order, any_order_faithful);
    }
    k.unit = gemm::parse_accumulator(text);
    return k;
}

product_check check_product(const matrix& d, const matrix& a, const matrix& b, const matrix* c,
                            const check_request& request, const engine::run_control& control) {
    require_shapes(a, b, c, request.over_a, request.over_b);
    return product_checker(d, a, b, c, request, control).run();
}

report::record check_record(const product_check& p) { return report::written(check_members, p); }

report::record outside_record(const output_outside& o) {
    return report::written(outside_members, o);
}

report::document_schema product_check_schema() {
    return report::document_schema("mx.product-check/1", "mx verify --class",
                                   "A product against what kernels of a class can give.")
        .member({"inputs", "[@common#input]", "files that were read: A, B, C and D"})
        .member({"class", "string", "any-order-f32, any-order-f32-faithful, or an accumulator"})
        .member({"recipe_a", "string", ""})
        .member({"recipe_b", "string", ""})
        .member({"results", "[#result]", "the product"})
        .member({"differences", "[#difference]", "the first outputs outside, --top of them"})
        .define("result", check_members)
        .define("difference", outside_members);
}

}  // namespace mx::products

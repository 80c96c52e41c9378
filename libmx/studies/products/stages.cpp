// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/products/conversions.hpp"
#include "libmx/studies/products/products.hpp"

namespace mx::products {
namespace {

void require_shapes(const layer_tensors& layer) {
    const matrix& x = *layer.x;
    const matrix& w = *layer.w;
    if (x.cols != w.cols) {
        base::refuse("X is {}x{} (tokens x in) and W {}x{} (out x in){}", x.rows, x.cols, w.rows,
                     w.cols, x.cols == w.rows ? "; --transpose-w fits: W is in x out" : "");
    }
    if (layer.dy == nullptr) return;
    const matrix& dy = *layer.dy;
    if (dy.rows != x.rows || dy.cols != w.rows) {
        base::refuse("dY is {}x{}; X ({}x{}) and W ({}x{}) ask for {}x{}", dy.rows, dy.cols, x.rows,
                     x.cols, w.rows, w.cols, x.rows, w.rows);
    }
}

matrix with_values(const matrix& m, std::vector<float> values) {
    return {m.file, m.name, m.type, m.shape, m.rows, m.cols, std::move(values)};
}

class layer_study {
  public:
    layer_study(const layer_tensors& layer, const stages_request& request,
                const engine::run_control& control)
        : layer_(layer),
          request_(request),
          control_(control),
          runner_(control, request.backend, work()) {}

    std::vector<stage_result> run() {
        for (std::size_t s = 0; s < stages(); ++s) {
            const stage_row& row = stage_rows[s];
            const gemm::operand a = plain(row.operands[0]);
            const gemm::operand b = plain(row.operands[1]);
            const std::vector<float> truth = runner_.exact(a, b, {}, request_.how);
            for (const stage_case& c : cases(s)) product(s, c.transform, c.again, truth);
        }
        return std::move(results_);
    }

  private:
    std::size_t stages() const { return layer_.dy == nullptr ? 1 : stage_rows.size(); }

    struct stage_case {
        std::string transform;
        bool again;
        bool operator==(const stage_case&) const = default;
    };

    // Operands are rotated if one of the two has blocks.
    bool rotates(std::size_t s) const {
        return request_.recipes[s][0].blocks || request_.recipes[s][1].blocks;
    }
    bool rotates_copies(std::size_t s) const {
        return std::ranges::any_of(stage_rows[s].operands, [&](const stage_operand& o) {
            return o.over == reduction::first && rotates(first_use(o.tensor)[0]);
        });
    }

    // Cases that a transform does not change are measured once, like the recipes.
    std::vector<stage_case> cases(std::size_t s) const {
        std::vector<std::string> transforms = request_.transforms;
        if (transforms.empty()) transforms = {""};
        std::vector<stage_case> all;
        const auto add = [&](const std::string& transform, bool rotated, bool again) {
            const stage_case c{rotated ? transform : "", again};
            if (std::ranges::find(all, c) == all.end()) all.push_back(c);
        };
        for (const std::string& transform : transforms) {
            add(transform, rotates(s), false);
            if (request_.requantize && can_requantize(stage_rows[s])) {
                add(transform, rotates(s) || rotates_copies(s), true);
            }
        }
        return all;
    }

    static bool can_requantize(const stage_row& row) {
        return row.operands[0].over == reduction::first || row.operands[1].over == reduction::first;
    }

    std::uint64_t work() const {
        std::uint64_t sum = 0;
        for (std::size_t s = 0; s < stages(); ++s) {
            const stage_row& row = stage_rows[s];
            const auto size = [&](const stage_operand& o) {
                return std::uint64_t{operand_rows(layer_.of(o.tensor), o.over)};
            };
            const std::uint64_t one =
                size(row.operands[0]) * size(row.operands[1]) *
                operand_depth(layer_.of(row.operands[0].tensor), row.operands[0].over);
            const std::size_t models = request_.models.empty() ? 2 : request_.models.size();
            sum += one * (1 + cases(s).size() * (models + 1));
        }
        return sum;
    }

    gemm::operand plain(const stage_operand& o) const {
        const matrix& m = layer_.of(o.tensor);
        return values_operand("f32", reduction_last(m.values, m.rows, m.cols, o.over),
                              operand_rows(m, o.over), operand_depth(m, o.over));
    }

    std::array<operand_recipe, 2> recipes(std::size_t s, const std::string& transform) const {
        std::array<operand_recipe, 2> r = request_.recipes[s];
        if (transform.empty()) return r;
        for (operand_recipe& one : r) one = with_transform(one, transform, request_.transform_size);
        return r;
    }

    // The operand of stage `s`. If quantized twice, a transposed one is made from the results of
    // its first use, which were rotated back: it is a copy of the tensor like any other.
    quantized_operand quantized(std::size_t s, std::size_t i, const std::string& transform,
                                bool again) const {
        const stage_operand& o = stage_rows[s].operands[i];
        const std::array<operand_recipe, 2> r = recipes(s, transform);
        const transform::rotation rotate = common_rotation(r[0], r[1]);
        const matrix& m = layer_.of(o.tensor);
        if (!again || o.over == reduction::last) {
            return quantize_operand(m, o.over, r[i], rotate, control_);
        }
        const std::array<std::size_t, 2> use = first_use(o.tensor);
        const quantized_operand before = quantized(use[0], use[1], transform, false);
        const matrix copy = with_values(m, values_as_stored(before, reduction::last));
        quantized_operand twice = quantize_operand(copy, o.over, r[i], rotate, control_);
        twice.error = compare_values(m.values, values_as_stored(twice, o.over));
        return twice;
    }

    void product(std::size_t s, const std::string& transform, bool again,
                 const std::vector<float>& truth) {
        const quantized_operand a = quantized(s, 0, transform, again);
        const quantized_operand b = quantized(s, 1, transform, again);
        std::vector<gemm::accumulator> models = request_.models;
        if (models.empty()) models = {native_model(a, b), model_with(gemm::algorithm::exact)};
        std::vector<form_pair> forms;
        for (const gemm::accumulator& m : models) forms.push_back(forms_for(m, a, b));
        std::map<std::string, std::vector<float>> exact;
        for (std::size_t i = 0; i < models.size(); ++i) {
            const gemm::operand& x = forms[i].first.operand;
            const gemm::operand& y = forms[i].second.operand;
            const std::string key = forms[i].first.words + " x " + forms[i].second.words;
            if (!exact.contains(key)) exact[key] = runner_.exact(x, y, {}, request_.how);
            const std::vector<float> d = runner_.multiply(x, y, {}, models[i], request_.how);
            stage_result r;
            r.stage = s;
            r.transform = transform;
            r.requantized = again;
            r.recipes = recipes(s, transform);
            r.model = models[i];
            r.m = a.rows;
            r.n = b.rows;
            r.k = a.depth;
            r.operands = {a.error, b.error};
            r.errors = {compare_values(exact[key], d), compare_values(truth, d)};
            error_sums sums = sums_by_row_and_column(truth, d, r.m);
            r.gain_error = gain_standard_error(sums);
            if (results_.empty() || results_.back().stage != s) {
                first_ = std::move(sums);
            } else {
                r.over_first = ratio_of_errors(sums, first_);
            }
            results_.push_back(std::move(r));
        }
    }

    const layer_tensors& layer_;
    const stages_request& request_;
    const engine::run_control& control_;
    product_runner runner_;
    std::vector<stage_result> results_;
    error_sums first_;  // of the first result of the current stage
};

}  // namespace

const matrix& layer_tensors::of(layer_tensor t) const {
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): only dy may be null
    return t == layer_tensor::x ? *x : t == layer_tensor::w ? *w : *dy;
}

matrix transposed(const matrix& m) {
    matrix t = with_values(m, reduction_last(m.values, m.rows, m.cols, reduction::first));
    t.inexact = m.inexact;
    std::swap(t.rows, t.cols);
    t.shape = {t.rows, t.cols};
    return t;
}

std::optional<double> stage_result::zeta() const {
    return stage_rows[stage].gradient ? errors.total.nrmse() : std::nullopt;
}

std::optional<double> stage_result::expected_nrmse() const {
    const std::optional<double> a = operands[0].nrmse(), b = operands[1].nrmse();
    if (!a || !b) return {};
    return std::sqrt(*a * *a + *b * *b + *a * *a * *b * *b);
}

std::vector<stage_result> study_stages(const layer_tensors& layer, const stages_request& request,
                                       const engine::run_control& control) {
    require_shapes(layer);
    return layer_study(layer, request, control).run();
}

namespace {

constexpr std::array stage_members =
    std::to_array<report::declared<stage_result>>(
        {
            {"stage", "fprop|dgrad|wgrad", "", [](auto& r) { return stage_rows[r.stage].name; }},
            {"product", "string", "", [](auto& r) { return stage_rows[r.stage].product; }},
            {"transform", "string?", "null: neither operand can be rotated",
             [](auto& r) {
                 return r.transform.empty() ? report::value() : report::value(r.transform);
             }},
            {"source", "original|requantized",
             "requantized: from a copy quantized along the other axis",
             [](auto& r) { return r.requantized ? "requantized" : "original"; }},
            {"recipe_a", "string", "", [](auto& r) { return to_string(r.recipes[0]); }},
            {"recipe_b", "string", "", [](auto& r) { return to_string(r.recipes[1]); }},
            {"model", "string", "", [](auto& r) { return gemm::to_string(r.model); }},
            {"m", "count", "rows", [](auto& r) { return r.m; }},
            {"n", "count", "columns", [](auto& r) { return r.n; }},
            {"k", "count", "depth", [](auto& r) { return r.k; }},
            {"nrmse_a", "amount?", "error of the first operand",
             [](auto& r) { return r.operands[0].nrmse(); }},
            {"nrmse_b", "amount?", "", [](auto& r) { return r.operands[1].nrmse(); }},
            {"gain_a", "number?", "", [](auto& r) { return r.operands[0].gain(); }},
            {"gain_b", "number?", "", [](auto& r) { return r.operands[1].gain(); }},
            {"expected_nrmse", "amount?", "if the errors of the operands were independent",
             [](auto& r) { return r.expected_nrmse(); }},
            {"zeta", "amount?", "of gradients: error over norm", [](auto& r) { return r.zeta(); }},
            {"gain_standard_error", "amount?",
             "of total_gain, over rows and columns; null: fewer than two of either",
             [](auto& r) { return r.gain_error; }},
            {"over_first", "amount?",
             "total_nrmse over that of the stage's first result; null: it is the first",
             [](auto& r) {
                 return r.over_first ? report::to_value(r.over_first->value) : report::value();
             }},
            {"over_first_standard_error", "amount?", "of this ratio, over rows and columns",
             [](auto& r) {
                 return r.over_first ? report::to_value(r.over_first->standard_error)
                                     : report::value();
             }},
        });

constexpr std::array tensor_members = std::to_array<report::declared<io::tensor_info>>({
    {"file", "@members#file", "", [](auto& t) { return t.file; }},
    {"tensor", "@members#tensor", "", [](auto& t) { return t.name; }},
    {"dtype", "@members#dtype", "", [](auto& t) { return tensor::row_of(t.type).name; }},
    {"shape", "@members#shape", "",
     [](auto& t) { return report::value(report::to_list(t.shape)); }},
});

constexpr std::array layer_members{
    report::member_type{"x", "#tensor", "activations, tokens x in"},
    report::member_type{"w", "#tensor", "weights, out x in"},
    report::member_type{"dy", "#tensor", "gradients of the output, tokens x out", false},
};

}  // namespace

report::record tensor_record(const io::tensor_info& t) {
    return report::written(tensor_members, t);
}

report::record stage_record(const stage_result& r) {
    report::record out = report::written(stage_members, r);
    append_figures(out, r.errors);
    return out;
}

report::document_schema stages_schema() {
    report::member_list result;
    result.add({"layer", "string", "of a dump: its name", false});
    add_figures(result.add(stage_members));
    return report::document_schema(
               "mx.layer/1", "mx layer",
               "What quantization does to the three products of a linear layer. Members that begin "
               "with accumulation_ are against the exact product of the operands as given to the "
               "model, those that begin with total_ against that of the values before "
               "quantization.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"layer", "#layer", "the tensors; of a dump there are several", false})
        .member({"arrangement", "@common#arrangement", ""})
        .member({"results", "[#result]", "a product, transform, source of operands and model each"})
        .member({"verdict", "[string]", "sentences"})
        .define("layer", layer_members)
        .define("tensor", tensor_members)
        .define("result", result);
}

}  // namespace mx::products

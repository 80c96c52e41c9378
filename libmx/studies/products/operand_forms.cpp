// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/operand_forms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/studies/products/conversions.hpp"

namespace mx::products {
namespace {

constexpr std::size_t models_named = 5;

// Formats of dequantized values, the exact one first.
constexpr std::array value_formats{"f32", "tf32", "bf16", "f16"};

bool is_plain(const quantized_operand& q, std::string_view name) {
    return q.recipe.plain != nullptr && q.recipe.plain->name == name;
}

std::string_view value_format(const gemm::accumulator& model, const quantized_operand& a,
                              const quantized_operand& b) {
    if (model.enters == gemm::intake::bfloat16) return "bf16";
    const auto has = [&](std::string_view name) {
        return (model.operands & gemm::find_operand_format(name)->member) != 0;
    };
    const bool half = is_plain(a, "f16") || is_plain(b, "f16");
    const bool brain = is_plain(a, "bf16") || is_plain(b, "bf16");
    if (!has("f32") && half && !brain && has("f16")) return "f16";
    for (const std::string_view name : value_formats) {
        if (has(name)) return name;
    }
    return {};
}

std::string operand_text(const gemm::operand& x) {
    std::string words = fmt::format("{} codes", x.format->name);
    for (const gemm::operand_scale& s : gemm::operand_scales) {
        if (s.bit == x.scaling) words += fmt::format(", {} per {}", s.format, s.block);
    }
    if (x.tensor_scale != 1.0f) words += ", tensor scale";
    if (!x.row_scales.empty()) words += ", row scales";
    return words;
}

operand_form codes_of(const quantized_operand& q) { return {q.coded, operand_text(q.coded), 0}; }

operand_form values_of(const quantized_operand& q, std::string_view format) {
    std::vector<float> x = q.values;
    operand_form form;
    form.inexact = format::round_to_wide(format, x);
    form.operand = values_operand(format, x, q.rows, q.depth);
    form.words = fmt::format("{} values", format);
    return form;
}

// "sm100" of "sm100.mxf4".
std::string_view chip_of(std::string_view name) { return name.substr(0, name.find('.')); }

std::string fitting_models(const gemm::accumulator& near, const quantized_operand& a,
                           const quantized_operand& b) {
    std::vector<const gemm::accumulator*> fit;
    for (const gemm::accumulator& m : gemm::accumulators()) {
        if (takes_codes(m, a, b) || takes_values(m)) fit.push_back(&m);
    }
    // Models of the same chip first; those for codes before the others.
    const auto rank = [&](const gemm::accumulator* m) {
        return (chip_of(m->name) == chip_of(near.name) ? 0 : 2) + (takes_codes(*m, a, b) ? 0 : 1);
    };
    std::ranges::stable_sort(fit, [&](const auto* x, const auto* y) { return rank(x) < rank(y); });
    if (fit.size() > models_named) fit.resize(models_named);
    std::vector<std::string_view> names;
    for (const gemm::accumulator* m : fit) names.push_back(m->name);
    return base::joined(names, ", ");
}

// A model with codes applies outer scales to the sums.
void refuse_scaled_along_k(const gemm::accumulator& model, const quantized_operand& a,
                           const quantized_operand& b) {
    if (!a.scaled_along_k && !b.scaled_along_k) return;
    base::refuse(
        "recipe '{}': its outer scales differ along K, so {}, which multiplies codes, cannot apply "
        "them to the sums; give outer=row or outer=tensor, or a model that multiplies values: {} "
        "(mx explain accumulators)",
        to_string((a.scaled_along_k ? a : b).recipe), gemm::to_string(model),
        fitting_models(model, a, b));
}

}  // namespace

bool takes_codes(const gemm::accumulator& model, const quantized_operand& a,
                 const quantized_operand& b) {
    const gemm::operand& x = a.coded;
    const gemm::operand& y = b.coded;
    if (x.format == nullptr || y.format == nullptr) return false;
    // Values that such a model rounds on input are rounded here, so that the rounding is counted.
    if (model.enters == gemm::intake::bfloat16) return false;
    const bool one_kind = x.scaling == y.scaling || x.scaling == 0 || y.scaling == 0;
    return one_kind && gemm::takes(model, *x.format, *y.format, x.scaling | y.scaling);
}

bool takes_values(const gemm::accumulator& model) {
    constexpr std::uint32_t wide =
        gemm::takes_f32 | gemm::takes_tf32 | gemm::takes_bf16 | gemm::takes_f16;
    return (model.operands & wide) != 0;
}

form_pair forms_for(const gemm::accumulator& model, const quantized_operand& a,
                    const quantized_operand& b) {
    if (takes_codes(model, a, b)) return {codes_of(a), codes_of(b)};
    if (!takes_values(model)) {
        refuse_scaled_along_k(model, a, b);
        base::refuse("{} does not multiply {} by {}; models that do: {} (mx explain accumulators)",
                     gemm::to_string(model), to_string(a.recipe), to_string(b.recipe),
                     fitting_models(model, a, b));
    }
    const std::string_view format = value_format(model, a, b);
    return {values_of(a, format), values_of(b, format)};
}

const gemm::accumulator& native_model(const quantized_operand& a, const quantized_operand& b) {
    const gemm::accumulator* best = nullptr;
    for (const gemm::accumulator& m : gemm::accumulators()) {
        if (m.known_from == gemm::evidence::definition || gemm::gives_f16(m)) continue;
        if ((m.operands & gemm::takes_f32) != 0 || !takes_codes(m, a, b)) continue;
        if (best == nullptr) best = &m;
        // 4-bit operands have separate units, with one for each kind of scales.
        const bool own = m.how == gemm::algorithm::grouped && best->how != m.how;
        if (own && chip_of(m.name) == chip_of(best->name)) best = &m;
    }
    if (best != nullptr) return *best;
    if (is_plain(a, "f32") && is_plain(b, "f32")) return model_with(gemm::algorithm::fma_chain);
    for (const gemm::accumulator& m : gemm::accumulators()) {
        if (m.enters == gemm::intake::bfloat16) return m;
    }
    return model_with(gemm::algorithm::fma_chain);
}

const gemm::accumulator& model_with(gemm::algorithm how) {
    for (const gemm::accumulator& m : gemm::accumulators()) {
        if (m.how == how) return m;
    }
    throw base::error(base::error_kind::unavailable, "no accumulator model sums like this");
}

gemm::operand first_of(const gemm::operand& x, std::size_t depth) {
    if (depth >= x.depth) return x;
    gemm::operand y = x;
    y.depth = depth;
    y.codes.resize(x.rows * depth);
    for (std::size_t r = 0; r < x.rows; ++r) {
        std::copy_n(x.codes.begin() + static_cast<std::ptrdiff_t>(r * x.depth), depth,
                    y.codes.begin() + static_cast<std::ptrdiff_t>(r * depth));
    }
    if (x.scale_block == 0) return y;
    const std::size_t before = (x.depth + x.scale_block - 1) / x.scale_block;
    const std::size_t after = (depth + x.scale_block - 1) / x.scale_block;
    y.scales.resize(x.rows * after);
    for (std::size_t r = 0; r < x.rows; ++r) {
        std::copy_n(x.scales.begin() + static_cast<std::ptrdiff_t>(r * before), after,
                    y.scales.begin() + static_cast<std::ptrdiff_t>(r * after));
    }
    return y;
}

}  // namespace mx::products

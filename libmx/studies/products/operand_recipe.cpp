// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/operand_recipe.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/format/wide_formats.hpp"

namespace mx::products {
namespace {

constexpr plain_format element_row(std::string_view name, std::string_view summary) {
    return {name, summary, format::find_element_format(name)};
}

constexpr std::array plain_rows{
    plain_format{"f32", "the values as they are"},
    plain_format{"tf32", "float32 whose low 13 bits the multiplier drops"},
    plain_format{"bf16", "bfloat16, to nearest even"},
    plain_format{"f16", "binary16, to nearest even, Inf beyond"},
    element_row("e4m3", "FP8, to nearest even, saturating"),
    element_row("e5m2", "FP8, to nearest even, saturating"),
    element_row("e3m2", "FP6, to nearest even, saturating"),
    element_row("e2m3", "FP6, to nearest even, saturating"),
    element_row("e2m1", "FP4, to nearest even, saturating"),
};

const std::vector<plain_format>& rows() {
    static const auto all = [] {
        std::vector<plain_format> v(plain_rows.begin(), plain_rows.end());
        for (const format::shared_format& f : format::shared_formats()) {
            v.push_back({f.element.name, f.element.summary});
        }
        return v;
    }();
    return all;
}

const plain_format* find_plain(std::string_view name) {
    // Also spelt none, fp32 and fp16.
    const format::element_format* wide = format::find_wide_format(name);
    return base::find_named(rows(), wide != nullptr ? wide->name : name);
}

std::vector<std::string_view> known_names() {
    std::vector<std::string_view> names = base::names_of(format::block_formats);
    names.emplace_back("none");
    for (const plain_format& p : rows()) names.push_back(p.name);
    return names;
}

void require_fitting(const codec::recipe& r) {
    const std::string text = codec::to_string(r);
    if (r.axis.what != codec::axis_choice::kind::last) {
        base::refuse(
            "recipe '{}': blocks of a product lie along the axis that is summed over; leave axis "
            "out",
            text);
    }
    codec::refuse_scale_files(r);
    if (codec::bumps_positions(r)) {
        base::refuse(
            "recipe '{}': its scale differs inside a block, so that no product has such operands; "
            "choose another rule (mx explain rules)",
            text);
    }
}

}  // namespace

std::span<const plain_format> plain_formats() { return rows(); }

operand_recipe parse_operand_recipe(const std::string& text) {
    operand_recipe r;
    const std::string name = text.substr(0, text.find(':'));
    const bool channels = codec::has_channel_scale(text);
    if (!channels) r.plain = find_plain(name);
    if (r.plain == nullptr) {
        if (!channels && format::find_block_format(name) == nullptr) {
            base::refuse(base::unknown("recipe", name, known_names()));
        }
        return operand_recipe_of(codec::parse_recipe(text));
    }
    for (const codec::recipe_setting& s : codec::recipe_settings(text)) {
        if (s.key != "scale" || s.value != "tensor" || r.plain->element == nullptr) {
            base::refuse(
                "recipe '{}': {}", text,
                r.plain->element == nullptr
                    ? "a format without blocks takes no keys"
                    : "the only key of an operand without blocks is scale=tensor or scale=channel");
        }
        r.tensor_scaled = true;
    }
    return r;
}

operand_recipe operand_recipe_of(const codec::recipe& r) {
    if (!codec::has_blocks(r)) return parse_operand_recipe(codec::to_string(r));
    require_fitting(r);
    operand_recipe o;
    o.blocks = r;
    return o;
}

std::string to_string(const operand_recipe& r) {
    if (r.blocks) return codec::to_string(*r.blocks);
    return std::string(r.plain->name) + std::string(r.tensor_scaled ? ":scale=tensor" : "");
}

operand_recipe with_transform(const operand_recipe& r, std::string_view name, int size) {
    if (!r.blocks) return r;
    codec::recipe plain = *r.blocks;
    plain.rotate = {};
    std::string text = codec::to_string(plain);
    text += fmt::format("{}transform={}", text.find(':') == std::string::npos ? ':' : ',', name);
    if (size != 0 && name != "none") text += fmt::format(",transform_size={}", size);
    operand_recipe out = r;
    out.blocks = codec::parse_recipe(text);
    return out;
}

transform::rotation common_rotation(const operand_recipe& a, const operand_recipe& b) {
    if (!a.blocks) return b.rotation();
    if (!b.blocks) return a.rotation();
    if (!(a.rotation() == b.rotation())) {
        base::refuse(
            "'{}' and '{}': the operands of a product are rotated alike or not at all, else the "
            "rotations do not cancel; give both the same transform, transform_size and "
            "transform_seed",
            to_string(a), to_string(b));
    }
    return a.rotation();
}

}  // namespace mx::products

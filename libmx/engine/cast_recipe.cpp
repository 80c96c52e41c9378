// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/cast_recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "libmx/base/suggest.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/wide_formats.hpp"

namespace mx::engine {
namespace {

constexpr std::array<std::string_view, 2> own_keys{"dialect", "saturate"};

std::string_view name_of(std::string_view text) { return text.substr(0, text.find(':')); }

bool is_true(std::string_view value) {
    if (value != "true" && value != "false") {
        base::refuse(base::unknown("value for saturate:", value, {"true", "false"}));
    }
    return value == "true";
}

}  // namespace

std::vector<std::string_view> cast_formats() {
    std::vector<std::string_view> names = base::names_of(format::wide_formats);
    for (const format::element_format& f : format::element_formats) names.push_back(f.name);
    for (const format::scale_format& f : format::scale_formats) {
        if (f.has_codes()) names.push_back(f.name);
    }
    return names;
}

bool is_cast_recipe(std::string_view text) {
    const std::string_view name = name_of(text);
    if (name != "none" && std::ranges::count(cast_formats(), name) == 0) return false;
    return !codec::has_channel_scale(text);
}

cast_recipe parse_cast_recipe(std::string_view text) {
    const std::string_view name = name_of(text);
    if (!is_cast_recipe(text)) base::refuse(base::unknown("format", name, cast_formats()));
    const auto settings = codec::recipe_settings(text);
    cast_recipe c;
    c.element = name;
    if (const format::element_format* wide = format::find_wide_format(name)) {
        c.element = wide->name;
        if (settings.empty()) return c;
    }
    // Codes of scale formats have the keys of any element format but scale=tensor.
    const format::element_format* const element = codec::find_format(name);
    codec::recipe numbers =
        codec::format_recipe(element != nullptr ? *element : format::element_formats.front());
    bool has_round = false, has_saturate = false;
    for (const codec::recipe_setting& s : settings) {
        if (s.key == "dialect") {
            c.by = codec::find_dialect(s.value);
            if (c.by == nullptr) {
                base::refuse(base::unknown("dialect", s.value, base::names_of(codec::dialects())));
            }
        } else if (s.key == "saturate") {
            c.saturate = is_true(s.value);
            has_saturate = true;
        } else if (s.key == "scale" && element == nullptr) {
            base::refuse("recipe '{}': a scale format has no scale of its own", text);
        } else {
            try {
                codec::set_without_blocks(numbers, s, own_keys);
            } catch (const base::error& e) {
                base::refuse("recipe '{}': {}", text, e.message());
            }
            has_round = has_round || s.key == "round";
            if (s.key == "random_bits") c.random_bits = numbers.random_bits;
            if (s.key == "int_min") c.minimum = numbers.minimum;
        }
    }
    c.tensor_scaled = numbers.scope == codec::scale_scope::tensor;
    c.round =
        has_round ? numbers.round : format::find_rounding(codec::first_of(c.by->roundings))->id;
    c.ties = numbers.ties;
    c.seed = numbers.seed;
    if (!has_saturate) c.saturate = codec::saturates(*c.by);
    return c;
}

}  // namespace mx::engine

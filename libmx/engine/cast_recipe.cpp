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

// Keys of block recipes that conversions of single values have as well.
constexpr std::array shared_keys{"round", "ties", "random_bits", "seed", "int_min"};

std::string_view name_of(std::string_view text) { return text.substr(0, text.find(':')); }

bool is_true(std::string_view value) {
    if (value != "true" && value != "false") {
        base::refuse(base::unknown("value for saturate:", value, {"true", "false"}));
    }
    return value == "true";
}

}  // namespace

float cast_scale(const format::element_format& f, float amax) {
    if (amax == 0) return 1;
    return std::max(amax / format::decode(f, f.max_code()), 0x1p-126f);
}

std::vector<std::string_view> cast_formats() {
    std::vector<std::string_view> names{format::wide_formats.begin(), format::wide_formats.end()};
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
    if (const std::string_view wide = format::find_wide_format(name); !wide.empty()) {
        c.element = wide;
        if (settings.empty()) return c;
        base::refuse("recipe '{}': a format without blocks and codes takes no keys", text);
    }
    // The members that keys of block recipes set.
    codec::recipe numbers;
    if (const auto* element = format::find_element_format(name)) numbers.element = element;
    bool has_round = false, has_saturate = false;
    for (const auto& [key, value] : settings) {
        if (key == "dialect") {
            c.by = codec::find_dialect(value);
            if (c.by == nullptr) {
                base::refuse(base::unknown("dialect", value, base::names_of(codec::dialects())));
            }
        } else if (key == "scale" && value == "tensor" && format::find_element_format(name)) {
            c.tensor_scaled = true;
        } else if (key == "scale") {
            base::refuse(
                "recipe '{}': without blocks an element format has scale=tensor, "
                "scale=channel or none",
                text);
        } else if (key == "saturate") {
            c.saturate = is_true(value);
            has_saturate = true;
        } else if (std::ranges::count(shared_keys, key) != 0) {
            const auto row = std::ranges::find(codec::recipe_keys(), key, &codec::recipe_key::name);
            row->set(numbers, value);
            has_round = has_round || key == "round";
            if (key == "random_bits") c.random_bits = numbers.random_bits;
            if (key == "int_min") c.minimum = numbers.minimum;
        } else {
            std::vector<std::string_view> known(shared_keys.begin(), shared_keys.end());
            known.insert(known.end(), {"dialect", "saturate", "scale"});
            base::refuse("recipe '{}': {}", text, base::unknown("key without blocks", key, known));
        }
    }
    c.round =
        has_round ? numbers.round : format::find_rounding(codec::first_of(c.by->roundings))->id;
    c.ties = numbers.ties;
    c.seed = numbers.seed;
    if (!has_saturate) c.saturate = codec::saturates(*c.by);
    return c;
}

}  // namespace mx::engine

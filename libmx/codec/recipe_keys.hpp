// SPDX-License-Identifier: Apache-2.0
// THE LIST of recipe keys: parsing, printing, and when a key has an effect.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

struct recipe_key {
    std::string_view name;
    std::string_view values;   ///< what it takes, for help
    std::string_view summary;  ///< one line
    /// Parses `value` into the recipe. Throws base::error (usage) if that is not possible.
    void (*set)(recipe&, std::string_view value);
    /// The value as parse_recipe reads it back.
    std::string (*get)(const recipe&);
};

/// A key and its value, as given.
struct recipe_setting {
    std::string_view key, value;
};

/// The settings behind the colon of `text`, in the order given. Throws base::error (usage) if they
/// are not key=value, separated by commas, each key once.
std::vector<recipe_setting> recipe_settings(std::string_view text);

/// Whether `text` is an element format with a scale for each row: FORMAT:scale=channel[,...].
bool has_channel_scale(std::string_view text);

/// The element or wide format of this name that a recipe without blocks may have, or nullptr.
const format::element_format* find_format(std::string_view name);

/// The recipe of a format without blocks and scale. tf32 drops low bits, the others round to
/// nearest even.
recipe format_recipe(const format::element_format& f);

/// The keys that block recipes share with those without blocks.
std::span<const std::string_view> keys_without_blocks();

/// Sets a key of a recipe without blocks: one of keys_without_blocks, or scale=tensor. Throws
/// base::error (usage) for others, with the nearest of these and of `also`.
void set_without_blocks(recipe& r, const recipe_setting& s,
                        std::span<const std::string_view> also = {});

/// The canonical spelling of a recipe without blocks.
std::string format_string(const recipe& r);

/// Every key in the order of the canonical spelling.
std::span<const recipe_key> recipe_keys();

/// Sets members without effect to their defaults, and equal block descriptions to one form. Throws
/// base::error (usage) for contradictory combinations (a tile with an axis).
void normalize(recipe& r);

/// The default scale rule of a dialect for a scale format: its first one; nullptr if there is none.
const scale::scale_rule* default_rule(const dialect& by, std::string_view scale_format);

/// The recipe of a preset. Throws base::error (usage) with the nearest preset.
recipe preset_recipe(std::string_view name);

}  // namespace mx::codec

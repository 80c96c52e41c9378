// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/shared_formats.hpp"

namespace mx::codec {
namespace {

[[noreturn]] void fail(std::string_view recipe_text, std::string_view message) {
    throw base::error(base::error_kind::usage,
                      fmt::format("recipe '{}': {}", recipe_text, message));
}

const recipe_key& find_key(std::string_view text, std::string_view name) {
    std::vector<std::string_view> names;
    for (const recipe_key& key : recipe_keys()) {
        if (key.name == name) return key;
        names.push_back(key.name);
    }
    fail(text, base::unknown("key", name, names));
}

// Keys that determine the defaults of others (block: transform_size), in the order in which they
// are set.
constexpr std::string_view deciding[] = {"scale_format", "element", "dialect", "block"};
constexpr int deciding_keys = 4;

// The index of a key in the order of setting.
int decides_defaults(std::string_view key) {
    for (int i = 0; i < deciding_keys; ++i) {
        if (key == deciding[i]) return i;
    }
    return deciding_keys;
}

// Users write "scale=even, block=1x16", and line breaks in tables split recipes at such spaces.
std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(at);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

// The preset before the colon, in any case: papers write MXFP4.
recipe read_preset(std::string_view written) {
    std::string name(trimmed(written));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::size_t end = name.find_first_of(",; ");
    if (end != std::string::npos && format::find_block_format(name.substr(0, end)) != nullptr) {
        const std::string rest(trimmed(std::string_view(name).substr(end + 1)));
        if (rest.find('=') != std::string::npos) {
            base::refuse("keys follow a colon: {}:{}", name.substr(0, end), rest);
        }
        base::refuse("give one recipe at a time, as in -r {} -r {}", name.substr(0, end), rest);
    }
    return preset_recipe(name);
}

// A format without blocks, with or without scale=tensor; nothing if `text` begins otherwise.
std::optional<recipe> read_format(std::string_view text) {
    std::string name(trimmed(text.substr(0, text.find(':'))));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const format::element_format* f = find_format(name);
    if (f == nullptr) return std::nullopt;
    recipe r = format_recipe(*f);
    for (const recipe_setting& s : recipe_settings(text)) set_without_blocks(r, s);
    normalize(r);
    return r;
}

}  // namespace

namespace {

// "int8:scale=channel" as blocks: rows with a float32 scale each.
constexpr std::string_view channel_preset = "fp8_1x128";
constexpr block_shape channel_block{1, max_block_elements};

std::string with_channel_blocks(std::string_view text) {
    std::string blocks =
        fmt::format("{}:element={},block={}x{}", channel_preset, text.substr(0, text.find(':')),
                    channel_block.rows, channel_block.cols);
    for (const recipe_setting& s : recipe_settings(text)) {
        if (s.key != "scale") blocks += fmt::format(",{}={}", s.key, s.value);
    }
    return blocks;
}

}  // namespace

bool is_channel_scaled(const recipe& r) {
    return r.rule->id == scale::rule_id::amax && r.block == channel_block;
}

std::vector<recipe_setting> recipe_settings(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return {};
    std::vector<recipe_setting> settings;
    for (const std::string_view spaced : split(text.substr(colon + 1), ',')) {
        const std::string_view part = trimmed(spaced);
        // The text after outer=given may be a path.
        const bool path = part.substr(0, 12) == "outer=given:";
        if (!path && part.find(':') != std::string_view::npos) {
            fail(text, fmt::format("'{}': keys are separated by commas, not by ':'", part));
        }
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            const char* const key = scale::find_scale_rule(part) != nullptr  ? "scale"
                                    : format::find_rounding(part) != nullptr ? "round"
                                                                             : nullptr;
            fail(text,
                 fmt::format("'{}' is not key=value{}", part,
                             key == nullptr ? std::string()
                                            : fmt::format("; did you mean '{}={}'?", key, part)));
        }
        const std::string_view name = trimmed(part.substr(0, equals));
        if (std::ranges::count(settings, name, &recipe_setting::key) != 0) {
            fail(text, fmt::format("key '{}' is given twice", name));
        }
        settings.push_back({name, trimmed(part.substr(equals + 1))});
    }
    return settings;
}

bool has_channel_scale(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (format::find_element_format(text.substr(0, colon)) == nullptr) return false;
    return std::ranges::any_of(recipe_settings(text), [](const recipe_setting& s) {
        return s.key == "scale" && s.value == "channel";
    });
}

recipe parse_recipe(std::string_view text) {
    const base::floating_point_environment ours;
    try {
        if (has_channel_scale(text)) return parse_recipe(with_channel_blocks(text));
        if (const auto r = read_format(text)) return *r;
        recipe r = read_preset(text.substr(0, text.find(':')));
        std::vector<std::pair<const recipe_key*, std::string_view>> settings;
        for (const auto& [name, value] : recipe_settings(text)) {
            settings.emplace_back(&find_key(text, name), value);
        }
        if (settings.empty()) return r;
        // Keys that determine defaults of others come first, regardless of their position.
        std::stable_sort(settings.begin(), settings.end(), [](const auto& a, const auto& b) {
            return decides_defaults(a.first->name) < decides_defaults(b.first->name);
        });
        for (const auto& [key, value] : settings) key->set(r, value);
        normalize(r);
        return r;
    } catch (const base::error& e) {
        if (e.message().rfind("recipe '", 0) == 0) throw;
        fail(text, e.message());
    }
}

void require_files_inside(const recipe& r) {
    for (const std::string* file : {&r.rotate.file, &r.outer.file}) {
        if (file->empty() || base::stays_inside(*file)) continue;
        base::refuse(
            "recipe '{}': '{}' is not below this folder, and a recipe in a file may name no other",
            to_string(r), *file);
    }
}

void require_blocks(const recipe& r) {
    if (has_blocks(r)) return;
    const std::string_view name = r.element->name;
    if (format::find_shared_format(name) != nullptr) {
        fail(name, "analyses and products take it; mx has no codes of it, which are needed here");
    }
    const auto row = std::ranges::find(format::block_formats, name, &format::block_format::element);
    fail(to_string(r), fmt::format("it has no blocks, which are needed here{}",
                                   row == format::block_formats.end()
                                       ? std::string()
                                       : fmt::format("; did you mean '{}' or '{}:scale=channel'?",
                                                     row->name, name)));
}

recipe parse_block_recipe(std::string_view text) {
    recipe r = parse_recipe(text);
    require_blocks(r);
    return r;
}

std::vector<recipe> parse_recipes(const std::vector<std::string>& texts) {
    std::vector<recipe> recipes;
    for (const std::string& text : texts) {
        const recipe r = parse_recipe(text);
        if (std::find(recipes.begin(), recipes.end(), r) == recipes.end()) recipes.push_back(r);
    }
    return recipes;
}

std::vector<recipe> parse_block_recipes(const std::vector<std::string>& texts) {
    std::vector<recipe> recipes = parse_recipes(texts);
    std::ranges::for_each(recipes, require_blocks);
    return recipes;
}

int bits_per_block(const recipe& r) {
    if (const format::shared_format* const f = format::find_shared_format(r.element->name)) {
        return f->bits_per_block;
    }
    if (!has_blocks(r)) return 0;
    return r.scale_format->bits() + (r.offset == offset_kind::fp16 ? 16 : 0);
}

double bits_per_element(const recipe& r) {
    return r.element->bits() +
           bits_per_block(r) / (static_cast<double>(r.block.rows) * r.block.cols);
}

std::string to_string(const recipe& r, std::string_view stated) {
    const base::floating_point_environment ours;
    if (!has_blocks(r)) return format_string(r);
    // Omits the defaults that follow from the preset, the element, the dialect and the block.
    recipe plain = preset_recipe(r.preset);
    for (int rank = 0; rank < deciding_keys; ++rank) {
        for (const recipe_key& key : recipe_keys()) {
            if (decides_defaults(key.name) == rank) key.set(plain, key.get(r));
        }
    }
    const recipe bare = preset_recipe(r.preset);
    const bool channels = is_channel_scaled(r);
    std::string out =
        channels ? fmt::format("{}:scale=channel", r.element->name) : std::string(r.preset);
    char separator = channels ? ',' : ':';
    for (const recipe_key& key : recipe_keys()) {
        const std::string value = key.get(r);
        if (channels && (key.name == "element" || key.name == "block")) continue;
        // scale= implies it.
        if (key.name == "outer" && r.outer.what == outer_choice::kind::by_rule) continue;
        const recipe& base = decides_defaults(key.name) < deciding_keys ? bare : plain;
        if (value == key.get(base) && key.name != stated) continue;
        out += fmt::format("{}{}={}", separator, key.name, value);
        separator = ',';
    }
    return out;
}

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/vector_recipe.hpp"

#include <fmt/format.h>

#include <array>

#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"

namespace mx::conformance::verify {
namespace {

// Words of vector files with another name in mx.
struct spelling {
    std::string_view key;
    std::string_view theirs;
    std::string_view ours;
};
constexpr std::array spellings{
    spelling{"format", "nvfp4-ue5m3", "nvfp4:scale_format=ue5m3"},
    spelling{"scale", "ue4m3-single-level", "single-level"},
    spelling{"scale", "ue5m3-single-level", "single-level"},
    spelling{"scale", "ue5m3-two-level", "two-level"},
    spelling{"scale", "row-scaled two-level", "two-level,outer=row"},
    spelling{"scale", "four-over-six", "two-level"},
    spelling{"candidates", "fp32", "exact"},
    spelling{"element", "e4m3-no-nan-max480", "e4m3"},
    spelling{"round", "trunc", "zero"},
    spelling{"round", "nearest", "away"},
};

std::string spelled(std::string_view key, const std::string& word) {
    for (const spelling& s : spellings) {
        if (s.key == key && s.theirs == word) return std::string(s.ours);
    }
    return word;
}

// A metadata key and whether it is optional.
struct recipe_part {
    std::string_view key;
    bool required;
};
constexpr std::array parts{
    recipe_part{"element", true},
    recipe_part{"scale", true},
    recipe_part{"round", true},
    recipe_part{"block", true},
    recipe_part{"dialect", true},
    recipe_part{"int_min", false},
    recipe_part{"flush_subnormals", false},
    recipe_part{"four_over_six", false},
    recipe_part{"bound", false},
    recipe_part{"candidates", false},
};

// Searched scales do not depend on a dialect, so the recipe names none. If they are below a tensor
// scale, the file contains the tensor scale.
std::string searched_text(const vector_file& file, std::string_view measure) {
    const bool alone = !file.has("per_tensor_scale") && file.at("scale_format") != "e8m0";
    return fmt::format("{}:scale={},search={},round={},block={}", file.at("format"),
                       alone ? "search-single-level" : "search", measure, file.at("round"),
                       file.at("block"));
}

std::string recipe_text(const vector_file& file) {
    if (const std::string* whole = file.find("recipe")) return *whole;
    const std::string* format = file.find("format");
    std::string text = format == nullptr ? "mxfp8" : spelled("format", *format);
    char separator = text.find(':') == std::string::npos ? ':' : ',';
    for (const recipe_part& part : parts) {
        const std::string* value = part.required ? &file.at(part.key) : file.find(part.key);
        if (value == nullptr) continue;
        text += fmt::format("{}{}={}", separator, part.key, spelled(part.key, *value));
        separator = ',';
    }
    // Releases whose results are known bit for bit have a name with the version.
    if (const std::string* version = file.find("dialect_version")) {
        const std::string& name = file.at("dialect");
        const std::string versioned = fmt::format("{}@{}", name, *version);
        const std::size_t at = text.find("dialect=" + name) + std::string_view("dialect=").size();
        text.replace(at, name.size(), versioned);
    }
    return text;
}

codec::recipe recipe_in(const vector_file& file, const std::string& text) {
    try {
        codec::recipe r = codec::parse_block_recipe(text);
        codec::require_files_inside(r);
        vectors::require_blocks_alone(r);
        return r;
    } catch (const base::error& e) {
        file.fail("its metadata describes a {}", e.message());
    }
}

}  // namespace

codec::recipe recipe_of(const vector_file& file) { return recipe_in(file, recipe_text(file)); }

bool is_searched(const vector_file& file) {
    const std::string* scale = file.find("scale");
    return scale != nullptr && *scale == "search" && file.find("recipe") == nullptr;
}

codec::recipe searched_recipe_of(const vector_file& file, std::string_view measure) {
    return recipe_in(file, searched_text(file, measure));
}

std::string element_name(const std::string& word) { return spelled("element", word); }

}  // namespace mx::conformance::verify

// SPDX-License-Identifier: Apache-2.0
// Files of kind `scales`: for a list of block maxima (`amax`), the scale of each implementation in
// DIALECT.RULE.FORMAT, as E8M0 codes or as the implementation's float32.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/conformance/verify/verify.hpp"

namespace mx::conformance::verify {
namespace {

// The content of a tensor.
enum class scale_content : std::uint8_t {
    codes,       // E8M0 codes
    scales,      // float32 scales
    raw_scales,  // float32 scales before zeros are replaced
    raw_codes,   // float32 codes before any cast: possibly negative or infinite
};

// Names that are not DIALECT.RULE.FORMAT; RULE if the name omits it.
struct scale_name {
    std::string_view prefix;  // of the tensor's name; the format (or an alias) follows
    std::string_view dialect;
    std::string_view rule;
    scale_content holds;
};
constexpr std::array scale_names{
    scale_name{"cuda.rp_satfinite_of_division.", "nvidia", "rceil", scale_content::codes},
    scale_name{"tetrajet.scale_f32.", "tetrajet", "ceil-div-max", scale_content::scales},
    scale_name{"quark.enhanced.scale_f32.", "quark", "enhanced", scale_content::raw_scales},
    scale_name{"quark.even.scale_f32.", "quark", "even", scale_content::scales},
    scale_name{"compressed-tensors.", "compressed-tensors", "even", scale_content::raw_codes},
};

// Aliases of formats.
struct format_alias {
    std::string_view word;
    std::string_view element;
};
constexpr std::array format_aliases{
    format_alias{"mx4.f32", "e2m1"},
    format_alias{"mx8.f32", "e4m3"},
};

// The components of a tensor's name.
struct scale_tensor {
    std::string dialect, rule, element;
    scale_content holds = scale_content::codes;
};

scale_tensor meaning_of(const vector_file& file, std::string_view name) {
    for (const scale_name& n : scale_names) {
        if (!name.starts_with(n.prefix)) continue;
        std::string_view element = name.substr(n.prefix.size());
        for (const format_alias& a : format_aliases) {
            if (a.word == element) element = a.element;
        }
        return {std::string(n.dialect), std::string(n.rule), std::string(element), n.holds};
    }
    const auto words = words_of(name, '.');
    if (words.size() != 3) file.fail_in(name, "is not named DIALECT.RULE.FORMAT");
    return {std::string(words[0]), std::string(words[1]), std::string(words[2])};
}

codec::recipe recipe_of(const vector_file& file, std::string_view tensor, const scale_tensor& t) {
    try {
        return codec::parse_block_recipe(
            fmt::format("mxfp8:element={},scale={},dialect={}", t.element, t.rule, t.dialect));
    } catch (const base::error& e) {
        file.fail_in(tensor, "names a {}", e.message());
    }
}

constexpr std::string_view undefined_suffix = ".defined";
constexpr std::string_view undefined_reason = "maxima whose scale is undefined in the original";
constexpr std::string_view raw_reason = "codes outside 0..254, before any cast";

// Whether a scale is part of the contract: X.defined, which must be 0 exactly where the original
// casts a negative number to an unsigned integer (ggml, 0 < amax < 2^-125).
// below zero to an unsigned integer (ggml, 0 < amax < 2^-125).
bool is_defined(std::uint32_t amax) { return amax == 0 || amax >= (2u << 23); }

void compare_defined(const vector_file& file, const std::string& name,
                     const std::vector<std::uint32_t>& amax, comparison& found) {
    const auto expected = file.u8(name, amax.size());
    found.about(name, "ggml");
    for (std::size_t i = 0; i < amax.size(); ++i) {
        found.check_integer({i, {}, {}, amax[i]}, expected[i], is_defined(amax[i]));
    }
}

void compare_codes(const vector_file& file, const std::string& tensor, const codec::block_params& p,
                   const std::vector<std::uint32_t>& amax, comparison& found) {
    const auto expected = file.u8(tensor, amax.size());
    const bool some_undefined = file.has(tensor + std::string(undefined_suffix));
    const code_table codes = e8m0_codes();
    for (std::size_t i = 0; i < amax.size(); ++i) {
        if (some_undefined && !is_defined(amax[i])) {
            found.skip(undefined_reason, 1, 1);
            continue;
        }
        found.check_code({i, {}, {}, amax[i]}, codes, expected[i],
                         codec::dialect_scale(p, amax[i]).code);
    }
}

// The emulator's scale in the representation of the tensor; nullopt if the tensor contains a number
// that never becomes a scale.
std::optional<std::uint32_t> scale_like(scale_content holds, std::uint32_t expected,
                                        const codec::chosen_scale& scale) {
    const float stated = base::float_from_bits(expected);
    switch (holds) {
        case scale_content::codes:
        case scale_content::scales:
            break;
        case scale_content::raw_scales:
            // Quark replaces a zero scale by 2^-23 later.
            if (expected == 0 && scale.value == 0x1p-23f) return expected;
            break;
        case scale_content::raw_codes:
            // If the code is clamped, the number before the cast is out of range.
            if (scale.code == 0 && stated < 0) return std::nullopt;
            if (scale.code >= format::e8m0_max && stated > format::e8m0_max) return std::nullopt;
            return base::bits_of(static_cast<float>(scale.code));
    }
    return base::bits_of(scale.value);
}

void compare_floats(const vector_file& file, const std::string& tensor, scale_content holds,
                    const codec::block_params& p, const std::vector<std::uint32_t>& amax,
                    comparison& found) {
    const auto expected = file.f32(tensor, amax.size());
    for (std::size_t i = 0; i < amax.size(); ++i) {
        const auto got = scale_like(holds, expected[i], codec::dialect_scale(p, amax[i]));
        if (!got) {
            found.skip(raw_reason, 1, 1);
            continue;
        }
        found.check_f32({i, {}, {}, amax[i]}, expected[i], *got);
    }
}

}  // namespace

std::string verify_scales(const vector_file& file, const verify_options&, comparison& found) {
    const auto amax = file.f32("amax", vector_file::any_count);
    for (const std::uint32_t bits : amax) {
        if ((bits & base::f32_sign_mask) != 0) file.fail_in("amax", "holds a negative maximum");
    }
    std::set<std::string> dialects;
    for (const io::tensor_info& info : file.tensors()) {
        const std::string& name = info.name;
        if (name == "amax") continue;
        if (name.ends_with(undefined_suffix)) {
            compare_defined(file, name, amax, found);
            continue;
        }
        const scale_tensor t = meaning_of(file, name);
        const codec::recipe r = recipe_of(file, name, t);
        const codec::block_params p = codec::params_of(r);
        dialects.insert(t.dialect);
        found.about(name, codec::to_string(r));
        if (t.holds == scale_content::codes) {
            compare_codes(file, name, p, amax, found);
        } else {
            compare_floats(file, name, t.holds, p, amax, found);
        }
    }
    return fmt::format("{}", fmt::join(dialects, ", "));
}

}  // namespace mx::conformance::verify

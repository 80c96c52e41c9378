// SPDX-License-Identifier: Apache-2.0
// Files of kind `elements`: conversions of single values to one format, the code of the primary
// implementation for every input, and where other implementations depart from it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/conformance/verify/departures.hpp"
#include "libmx/conformance/verify/element_inputs.hpp"
#include "libmx/conformance/verify/kinds.hpp"

namespace mx::conformance::verify {
namespace {

using format::rounding;

constexpr std::string_view outside_reason = "non-finite inputs outside the contract";
constexpr std::string_view masked_reason = "rows that fp32.finite_mask leaves out";
constexpr std::string_view payload_reason = "NaN into a format without NaN, payload-dependent";

// A tensor of codes for every input of a set: SET.LAST.
struct code_tensor {
    std::string_view last;
    rounding how;
    bool saturate;
};
constexpr std::array code_tensors{
    code_tensor{"code", rounding::rtne, true},
    code_tensor{"code_nosat", rounding::rtne, false},
    code_tensor{"code_ties_away", rounding::away, true},
    code_tensor{"code_toward_zero", rounding::zero, true},
    code_tensor{"code_toward_pos", rounding::up, true},
    code_tensor{"code_toward_neg", rounding::down, true},
};

bool is_finite(std::uint32_t x) { return (x & base::f32_magnitude_mask) < base::f32_infinity; }

// One run over a file.
struct element_file {
    const vector_file& file;
    comparison& found;
    vector_format format;
    input_sets inputs;
    bool finite_only;
    std::set<std::string_view> dialects;

    std::string by(const implementation& who) {
        const std::string_view name = codec::row_of(who.by).name;
        dialects.insert(name);
        return std::string(name);
    }
};

// Who made SET.code. Searches for the nearest value are nobody's implementation: dialect ocp.
implementation primary_of(const vector_file& file) {
    const std::string& text = file.at("primary_oracle");
    if (const implementation* known = find_implementation(text)) return *known;
    if (text.starts_with("exact")) return {"exact", codec::dialect_id::ocp};
    file.fail(fmt::format(
        "its metadata names the primary oracle '{}', which no dialect answers for", text));
}

// Who made the tensors of the other roundings: gfloat, or where a search made SET.code (the
// formats that gfloat lacks) microxcaling.
implementation other_roundings_of(const implementation& primary) {
    const bool searched = primary.by == codec::dialect_id::ocp;
    return *find_implementation(searched ? "microxcaling" : "gfloat");
}

void compare_decode_table(element_file& f) {
    const auto expected = f.file.f32("decode_table", f.format.codes.value.size());
    f.found.about("decode_table", f.format.name);
    for (std::size_t code = 0; code < expected.size(); ++code) {
        f.found.check_f32({code, {}, {}, {}}, expected[code],
                          base::bits_of(f.format.codes.value[code]));
    }
}

// The rows that count for other roundings. microxcaling, where it is the source, gets two kinds of
// input wrong under any rounding to nearest, and they are left out.
bool in_finite_mask(const element_file& f, const implementation& source, std::uint32_t x) {
    if (!is_finite(x)) return false;
    if (source.by != codec::dialect_id::microxcaling) return true;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    const std::uint32_t half = base::bits_of(0.5f * f.format.codes.value[1]);
    return magnitude < 0x7f7ffffeu && magnitude != half - 1;
}

void compare_mask(element_file& f, const implementation& source) {
    const auto& x = f.inputs.of("fp32", "fp32.finite_mask");
    const auto expected = f.file.u8("fp32.finite_mask", x.size());
    f.found.about("fp32.finite_mask", f.format.name);
    for (std::size_t i = 0; i < x.size(); ++i) {
        f.found.check_integer({i, {}, {}, x[i]}, expected[i], in_finite_mask(f, source, x[i]));
    }
}

void compare_codes(element_file& f, const std::string& tensor, std::string_view set,
                   const code_tensor& kind, const implementation& by) {
    const bool masked = kind.how != rounding::rtne;
    const auto& x = f.inputs.of(set, tensor);
    const auto expected = f.file.u8(tensor, x.size());
    const converter convert = converter_of(f.format, by, {kind.how, format::tie_rule::up, 32});
    f.found.about(tensor, f.by(by));
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (masked && !in_finite_mask(f, by, x[i])) {
            f.found.skip(masked_reason, 1, 1);
        } else if (f.finite_only && !is_finite(x[i])) {
            f.found.skip(outside_reason, 1, 1);
        } else {
            f.found.check_code({i, {}, {}, x[i]}, f.format.codes, expected[i],
                               convert(x[i], 0).code);
        }
    }
}

// special.NAME.code and .bits: what +Inf, -Inf, +NaN and -NaN become.
void compare_special(element_file& f, const std::string& tensor, std::string_view last,
                     const implementation& by) {
    constexpr std::uint32_t inputs[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u};
    const std::size_t count = std::size(inputs);
    const converter convert = converter_of(f.format, by, {});
    f.found.about(tensor, f.by(by));
    const auto compare = [&](auto&& check) {
        for (std::size_t i = 0; i < count; ++i) {
            const bool by_payload =
                by.by == codec::dialect_id::torchao && !f.format.has_nan() && i >= 2;
            if (by_payload) {
                f.found.skip(payload_reason, 1, 1);
            } else {
                check(vector_place{i, {}, {}, inputs[i]}, convert(inputs[i], 0));
            }
        }
    };
    if (last == "code") {
        const auto expected = f.file.u8(tensor, count);
        compare([&](const vector_place& at, const codec::converted& got) {
            f.found.check_code(at, f.format.codes, expected[at.index], got.code);
        });
    } else {
        const auto expected =
            last == "bits" ? f.file.u32(tensor, count) : std::vector<std::uint32_t>{};
        if (expected.empty()) f.file.fail("is no vector of special values", tensor);
        compare([&](const vector_place& at, const codec::converted& got) {
            f.found.check_f32(at, expected[at.index], base::bits_of(got.value));
        });
    }
}

const implementation& implementation_of(const element_file& f, std::string_view name,
                                        std::string_view tensor) {
    const implementation* by = find_implementation(name);
    if (by == nullptr) f.file.fail(fmt::format("no dialect answers for '{}'", name), tensor);
    return *by;
}

// What stands between the first and the last part of a tensor's name.
struct name_parts {
    std::string_view first, middle, last;
};
name_parts parts_of(std::string_view name) {
    const std::size_t a = name.find('.');
    const std::size_t b = name.rfind('.');
    if (a == std::string_view::npos) return {name, {}, {}};
    if (a == b) return {name.substr(0, a), {}, name.substr(b + 1)};
    return {name.substr(0, a), name.substr(a + 1, b - a - 1), name.substr(b + 1)};
}

// Other roundings of microxcaling: fp32.MODE.microxcaling.diff_*.
struct mode_prefix {
    std::string_view prefix;
    rounding how;
};
constexpr std::array mode_prefixes{
    mode_prefix{"ties_away.", rounding::away},
    mode_prefix{"toward_zero.", rounding::zero},
};

void compare_departures(element_file& f, const std::string& tensor, const name_parts& part,
                        const implementation& primary) {
    std::string_view who = part.middle;
    implementation from = primary;
    format::rounding_mode mode;
    for (const mode_prefix& m : mode_prefixes) {
        if (!who.starts_with(m.prefix)) continue;
        who.remove_prefix(m.prefix.size());
        mode.how = m.how;
        from = other_roundings_of(primary);
    }
    const implementation& by = implementation_of(f, who, tensor);
    const departure_list list{tensor.substr(0, tensor.rfind('.')), f.by(by),
                              converter_of(f.format, by, mode), converter_of(f.format, from, mode)};
    compare_departure_list(f.file, f.format, f.inputs.of(part.first, tensor), list, f.found);
}

void compare_tensor(element_file& f, const std::string& tensor, const implementation& primary) {
    const name_parts part = parts_of(tensor);
    if (tensor == "fp32.input") return;
    if (tensor == "decode_table") return compare_decode_table(f);
    if (tensor == "fp32.finite_mask") return compare_mask(f, other_roundings_of(primary));
    // Read with the diff_index they belong to.
    if (part.last == "diff_bits" || part.last == "diff_code") {
        const std::string index = fmt::format("{}.{}.diff_index", part.first, part.middle);
        if (!f.file.has(index)) f.file.fail("stands without its diff_index", tensor);
        return;
    }
    if (part.last == "diff_index") return compare_departures(f, tensor, part, primary);
    if (part.first == "special" || (!part.middle.empty() && part.last == "code")) {
        const implementation& by = implementation_of(f, part.middle, tensor);
        if (part.first == "special") return compare_special(f, tensor, part.last, by);
        return compare_codes(f, tensor, part.first, code_tensors[0], by);
    }
    for (const code_tensor& kind : code_tensors) {
        if (!part.middle.empty() || part.last != kind.last) continue;
        implementation by = kind.how == rounding::rtne ? primary : other_roundings_of(primary);
        by.saturate = kind.saturate;
        return compare_codes(f, tensor, part.first, kind, by);
    }
    f.file.fail("is no tensor that this version knows in an elements file", tensor);
}

}  // namespace

std::string verify_elements(const vector_file& file, const verify_options& options,
                            comparison& found) {
    const std::string name =
        options.recipe ? std::string(options.recipe->element->name) : file.at("element");
    const std::string* contract = file.find("contract");
    element_file f{file,
                   found,
                   format_named(file, name),
                   input_sets(file),
                   contract != nullptr && contract->find("finite inputs only") != std::string::npos,
                   {}};
    const implementation primary = primary_of(file);
    for (const io::tensor_info& t : file.tensors()) compare_tensor(f, t.name, primary);
    return fmt::format("{}: {}", f.format.name, fmt::join(f.dialects, ", "));
}

}  // namespace mx::conformance::verify

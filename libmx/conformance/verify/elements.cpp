// SPDX-License-Identifier: Apache-2.0
// Files of kind `elements`: conversions of single values to one format: the code of the primary
// implementation for every input, and the inputs for which other implementations differ.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/conformance/verify/element_inputs.hpp"
#include "libmx/conformance/verify/verify.hpp"

namespace mx::conformance::verify {
namespace {

using format::rounding;

constexpr std::string_view special_inputs = "special.input_bits";
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

// The inputs for which one implementation differs from another: PREFIX.diff_index, .diff_bits and
// .diff_code list every such finite input, its result and its code. Without .diff_bits, all inputs
// are listed and only codes are compared.
struct departure_list {
    std::string prefix;   // "bf16.quark"
    std::string by;       // the dialect that differs
    converter convert;    // the implementation
    converter reference;  // the implementation it is compared with
};

struct departure {
    std::uint64_t index;
    std::uint32_t bits;
    int code;
};

// The relation of a result to the value of the reference code.
enum class agreement : std::uint8_t { same, zero_sign, different };

agreement compare_values(float reference, float result) {
    if (std::isnan(reference) || std::isnan(result)) {
        return std::isnan(reference) == std::isnan(result) ? agreement::same : agreement::different;
    }
    if (reference != result) return agreement::different;
    return std::signbit(reference) == std::signbit(result) ? agreement::same : agreement::zero_sign;
}

// The emulator's own list.
struct own_departures {
    std::vector<departure> list;
    std::uint64_t zero_signs = 0;
};

own_departures departures_of(const vector_format& format, const std::vector<std::uint32_t>& x,
                             const departure_list& list, bool by_code) {
    own_departures own;
    const bool unsigned_format =
        format.number != nullptr && !format.number->has_sign && !format.number->clamps_negative;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (by_code) {
            const codec::converted got = list.convert(x[i], 0);
            if (got.code != list.reference(x[i], 0).code) {
                own.list.push_back({i, base::bits_of(got.value), got.code});
            }
            continue;
        }
        if ((x[i] & base::f32_magnitude_mask) >= base::f32_infinity) continue;
        // If the format has no sign, the sets mean their magnitudes.
        const codec::converted got =
            list.convert(unsigned_format ? x[i] & base::f32_magnitude_mask : x[i], 0);
        // Compares codes, because integers have no negative zero.
        const auto code = static_cast<std::size_t>(list.reference(x[i], 0).code);
        const agreement how = compare_values(format.codes.value.at(code), got.value);
        if (how == agreement::zero_sign) ++own.zero_signs;
        if (how == agreement::different) {
            own.list.push_back({i, base::bits_of(got.value), got.code});
        }
    }
    return own;
}

// Compares the list with the finite inputs `x` for which `convert` and `reference` differ. Results
// that differ only in the sign of zero are not listed; if the metadata contains their number, it is
// compared as well.
void compare_departure_list(const vector_file& file, const vector_format& format,
                            const std::vector<std::uint32_t>& x, const departure_list& list,
                            comparison& found) {
    const std::string index_name = list.prefix + ".diff_index";
    const std::string bits_name = list.prefix + ".diff_bits";
    const std::string code_name = list.prefix + ".diff_code";
    const auto index = file.u32(index_name, vector_file::any_count);
    const bool by_code = !file.has(bits_name) && file.has(code_name);
    const auto bits = by_code ? std::vector<std::uint32_t>{} : file.u32(bits_name, index.size());
    const auto codes =
        file.has(code_name) ? file.u8(code_name, index.size()) : std::vector<std::uint8_t>{};
    const own_departures own = departures_of(format, x, list, by_code);

    // Both lists ascend; an entry in only one of them is a difference.
    const auto input_at = [&](std::uint64_t i) {
        return i < x.size() ? std::optional(x[i]) : std::nullopt;
    };
    std::size_t theirs = 0, ours = 0;
    while (theirs < index.size() || ours < own.list.size()) {
        found.about(index_name, list.by);
        const bool only_theirs = ours == own.list.size() ||
                                 (theirs < index.size() && index[theirs] < own.list[ours].index);
        if (only_theirs) {
            found.check_integer({theirs, {}, {}, input_at(index[theirs])}, index[theirs], {});
            ++theirs;
            continue;
        }
        const departure& d = own.list[ours];
        if (theirs == index.size() || index[theirs] > d.index) {
            found.check_integer({theirs, {}, {}, x[d.index]}, {}, d.index);
            ++ours;
            continue;
        }
        const vector_place at{theirs, {}, {}, x[d.index]};
        found.check_integer(at, index[theirs], d.index);
        if (!by_code) {
            found.about(bits_name, list.by);
            found.check_f32(at, bits[theirs], d.bits);
        }
        if (!codes.empty()) {
            found.about(code_name, list.by);
            found.check_code(at, format.codes, codes[theirs], d.code);
        }
        ++theirs;
        ++ours;
    }

    const std::string count_key = list.prefix + ".zero_sign_only_differences_not_listed";
    if (const std::string* text = file.find(count_key)) {
        found.about("metadata " + count_key, list.by);
        const auto stated = base::parsed<std::uint64_t>(*text);
        if (!stated) file.fail("its metadata '{}' is not a number", count_key);
        found.check_integer({}, *stated, own.zero_signs);
    }
}

// The implementation that made SET.code. A search for the nearest value follows none: dialect ocp.
implementation primary_of(const vector_file& file) {
    const std::string& text = file.at("primary_oracle");
    if (const implementation* known = find_implementation(text)) return *known;
    if (text.starts_with("exact")) return {"exact", codec::dialect_id::ocp};
    file.fail("its metadata names the primary oracle '{}', which no dialect answers for", text);
}

// The implementation that made the tensors of the other roundings: gfloat, or microxcaling if
// SET.code comes from a search (for the formats that gfloat lacks).
implementation other_roundings_of(const implementation& primary) {
    const bool searched = primary.by == codec::dialect_id::ocp;
    return *find_implementation(searched ? "microxcaling" : "gfloat");
}

// Inputs compared for other roundings. Two kinds of input that microxcaling rounds wrongly in every
// nearest mode are excluded if it is the source.
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

// special.NAME.code and .bits: the results for +Inf, -Inf, +NaN and -NaN, or for
// special.input_bits.
void compare_special(element_file& f, const std::string& tensor, std::string_view last,
                     const implementation& by) {
    std::vector<std::uint32_t> inputs{0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u};
    if (f.file.has(special_inputs)) inputs = f.file.u32(special_inputs, vector_file::any_count);
    const converter convert = converter_of(f.format, by, {});
    f.found.about(tensor, f.by(by));
    if (last != "code" && last != "bits") f.file.fail_in(tensor, "is no vector of special values");
    const auto expected = f.file.words(tensor, last == "code" ? 8 : 32, inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const vector_place at{i, {}, {}, inputs[i]};
        const codec::converted got = convert(inputs[i], 0);
        const bool nan = (inputs[i] & base::f32_magnitude_mask) > base::f32_infinity;
        if (by.by == codec::dialect_id::torchao && !f.format.has_nan() && nan) {
            f.found.skip(payload_reason, 1, 1);
        } else if (last == "code") {
            f.found.check_code(at, f.format.codes, expected[i], got.code);
        } else {
            f.found.check_f32(at, expected[i], base::bits_of(got.value));
        }
    }
}

const implementation& implementation_of(const element_file& f, std::string_view name,
                                        std::string_view tensor) {
    const implementation* by = find_implementation(name);
    if (by == nullptr) f.file.fail_in(tensor, "no dialect answers for '{}'", name);
    return *by;
}

// The part of a tensor's name between the first and the last component.
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
    if (tensor == "fp32.input" || tensor == special_inputs) return;
    if (tensor == "decode_table") return compare_decode_table(f.file, f.format, f.found);
    if (tensor == "fp32.finite_mask") return compare_mask(f, other_roundings_of(primary));
    // Compared together with their diff_index.
    if (part.last == "diff_bits" || part.last == "diff_code") {
        const std::string index = fmt::format("{}.{}.diff_index", part.first, part.middle);
        if (!f.file.has(index)) f.file.fail_in(tensor, "stands without its diff_index");
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
    f.file.fail_in(tensor, "is not a tensor that this version knows in an elements file");
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

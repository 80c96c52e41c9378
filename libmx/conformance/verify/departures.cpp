// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/verify/departures.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "libmx/base/bits.hpp"

namespace mx::conformance::verify {
namespace {

struct departure {
    std::uint64_t index;
    std::uint32_t bits;
    int code;
};

// How a result compares with the value that the reference code stands for.
enum class agreement : std::uint8_t { same, zero_sign, different };

agreement compare_values(float reference, float result) {
    if (std::isnan(reference) || std::isnan(result)) {
        return std::isnan(reference) == std::isnan(result) ? agreement::same : agreement::different;
    }
    if (reference != result) return agreement::different;
    return std::signbit(reference) == std::signbit(result) ? agreement::same : agreement::zero_sign;
}

// What the emulator's own list would hold.
struct own_departures {
    std::vector<departure> list;
    std::uint64_t zero_signs = 0;
};

own_departures departures_of(const vector_format& format, const std::vector<std::uint32_t>& x,
                             const departure_list& list) {
    own_departures own;
    const bool unsigned_format = format.number != nullptr && !format.number->has_sign;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if ((x[i] & base::f32_magnitude_mask) >= base::f32_infinity) continue;
        // The sets stand for their magnitudes where the format has no sign.
        const codec::converted got =
            list.convert(unsigned_format ? x[i] & base::f32_magnitude_mask : x[i], 0);
        // By its code, which has no sign of zero in integers.
        const auto code = static_cast<std::size_t>(list.reference(x[i], 0).code);
        const agreement how = compare_values(format.codes.value.at(code), got.value);
        if (how == agreement::zero_sign) ++own.zero_signs;
        if (how == agreement::different) {
            own.list.push_back({i, base::bits_of(got.value), got.code});
        }
    }
    return own;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
    std::uint64_t n = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return n;
}

}  // namespace

void compare_departure_list(const vector_file& file, const vector_format& format,
                            const std::vector<std::uint32_t>& x, const departure_list& list,
                            comparison& found) {
    const std::string index_name = list.prefix + ".diff_index";
    const std::string bits_name = list.prefix + ".diff_bits";
    const std::string code_name = list.prefix + ".diff_code";
    const auto index = file.u32(index_name, vector_file::any_count);
    const auto bits = file.u32(bits_name, index.size());
    const auto codes =
        file.has(code_name) ? file.u8(code_name, index.size()) : std::vector<std::uint8_t>{};
    const own_departures own = departures_of(format, x, list);

    // Both lists ascend; what one has and the other lacks is a difference where it stands.
    const auto input_at = [&](std::uint64_t i) {
        return i < x.size() ? std::optional(x[i]) : std::nullopt;
    };
    std::size_t theirs = 0;
    std::size_t ours = 0;
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
        found.about(bits_name, list.by);
        found.check_f32(at, bits[theirs], d.bits);
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
        const std::optional<std::uint64_t> stated = number_in(*text);
        if (!stated) file.fail(fmt::format("its metadata '{}' is no number", count_key));
        found.check_integer({}, *stated, own.zero_signs);
    }
}

}  // namespace mx::conformance::verify

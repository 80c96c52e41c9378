// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/convert_element.hpp"

#include <fmt/format.h>

#include "libmx/base/status.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {
namespace {

// E4M3 with largest value 480 and no NaN.
void extend_to_480(conversion& c) {
    c.element.nan_code = -1;
    c.element.max_positive = c.element.max_negative = 0x7f;
    c.value[0x7f] = 480.0f;
    c.value[0xff] = -480.0f;
}

}  // namespace

conversion conversion_of(const dialect& by, const format::element_format& f,
                         const format::rounding_mode& mode, bool saturate, bool full_range) {
    const auto require = [&](std::string_view what, std::string_view list, std::string_view name) {
        if (list.empty() || lists(list, name)) return;
        throw base::error(base::error_kind::usage, fmt::format("dialect {} has no {} {}; it has {}",
                                                               by.name, what, name, list));
    };
    if (f.has_sign) require("element format", by.elements, f.name);
    if (!f.has_sign && !lists(by.float_scales, f.name)) {
        throw base::error(base::error_kind::usage,
                          fmt::format("dialect {} has no conversion to {}", by.name, f.name));
    }
    const std::string_view rounding = format::row_of(mode.how).name;
    const bool with_float_scales = lists(by.two_level_roundings, rounding);
    if (f.has_sign && !with_float_scales) require("rounding", by.roundings, rounding);
    const bool full = full_range && by.integers.value != int_range::symmetric;
    conversion c{&by, format::params_of(f, full), mode, saturate, {}};
    for (std::uint32_t code = 0; code < 256; ++code) c.value[code] = format::decode(f, code);
    if (by.e4m3_reaches_480.value && f.name == "e4m3") extend_to_480(c);
    // FBGEMM's table of values has one zero without a sign.
    if (by.arithmetic.value == element_kind::fbgemm) c.value[c.element.max_positive + 1u] = 0.0f;
    return c;
}

void require_e8m0(const dialect& by) {
    if (by.e8m0.value != e8m0_cast::none) return;
    throw base::error(base::error_kind::usage,
                      fmt::format("dialect {} has no conversion to e8m0", by.name));
}

element_cast cast_to_e8m0(const dialect& by, format::rounding how, bool saturate) {
    require_e8m0(by);
    element_cast c{{&by, {}, {}, saturate, {}}, true};
    c.number.mode.how = how;
    for (int code = 0; code < 256; ++code) {
        c.number.value[code] = static_cast<float>(format::decode_e8m0(code));
    }
    return c;
}

}  // namespace mx::codec

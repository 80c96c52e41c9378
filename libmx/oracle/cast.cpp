// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/cast.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/oracle/decode.hpp"

namespace mx::oracle {
namespace {

unsigned code_of(const value_list& list, std::int64_t quanta) {
    const auto entry = std::find_if(list.values.begin(), list.values.end(),
                                    [&](const listed_value& v) { return v.quanta == quanta; });
    return static_cast<unsigned>(entry->code);
}

}  // namespace

unsigned cast(const value_list& list, float x, const rounding_choice& choice, std::uint32_t draw,
              bool saturate) {
    const format::element_format& f = *list.element;
    if (std::isnan(x)) {
        if (list.nan_code >= 0) return static_cast<unsigned>(list.nan_code);
        return f.kind == format::number_kind::fixed ? 0u : code_of(list, list.greatest);
    }
    const bool negative = std::signbit(x) && f.has_sign;
    const unsigned sign = negative ? 1u << (code_bits(f) - 1) : 0u;
    const int spilled = list.infinity_code >= 0 ? list.infinity_code : list.nan_code;
    const auto beyond = [&](unsigned saturated) {
        return saturate || spilled < 0 ? saturated : sign | static_cast<unsigned>(spilled);
    };
    if (std::isinf(x)) return beyond(code_of(list, negative ? list.least : list.greatest));
    const rounded q = round_to(list, ticks_of(f.has_sign ? x : std::fabs(x)), ticks_of_power(0),
                               negative, choice, draw);
    return q.clamped ? beyond(q.code) : q.code;
}

unsigned cast_to_e8m0(float x, bool toward_zero) {
    if (std::isnan(x)) return 255;
    if (std::isinf(x)) return 254;
    if (x == 0.0f) return 0;
    const integer magnitude = ticks_of(std::fabs(x));
    const integer one = ticks_of_power(0);
    const int exponent = toward_zero ? floor_log2(magnitude, one) : ceil_log2(magnitude, one);
    return static_cast<unsigned>(std::clamp(exponent, -127, 127) + 127);
}

}  // namespace mx::oracle

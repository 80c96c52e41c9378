// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialects.hpp"

#include <algorithm>
#include <cmath>

namespace mx::oracle::microxcaling {
namespace {

// floor(log2 x), computed in float32 and stored in the tensor's type.
float floor_log2(const float_kind& kind, float x) {
    if (kind.precision == f32.precision && std::isfinite(x) && x > 0) {
        return static_cast<float>(parts::floor_log2_f32(x));
    }
    return std::floor(to(kind, log2_in(f32, x)));
}

// sign(a) * m; the result is +0 for zeros of either sign.
float with_sign_of(float a, float m) { return a == 0 ? 0.0f : std::copysign(m, a); }

float round_mantissa(const float_kind& kind, float a, format::rounding how) {
    const float magnitude = std::fabs(a);
    if (how == format::rounding::zero) return with_sign_of(a, std::floor(magnitude));
    const float half_up = std::floor(add(kind, magnitude, 0.5f));
    if (how == format::rounding::away) return with_sign_of(a, half_up);
    // Rounding "even": subtract one if magnitude - 0.5 is a multiple of two.
    const float mask = std::fmod(subtract(kind, magnitude, 0.5f), 2.0f) == 0 ? 1.0f : 0.0f;
    return with_sign_of(a, subtract(kind, half_up, mask));
}

}  // namespace

block_scale scale(const float_kind& kind, const recipe& r, const value_list& list,
                  const block_maximum& m) {
    if (m.nan || std::isinf(m.amax)) return parts::nan_scale();
    const float amax = to(kind, m.amax);
    const float shared = floor_log2(kind, amax == 0 ? 0x1p-126f : amax);
    if (std::isinf(shared)) return parts::nan_scale();
    const int exponent = static_cast<int>(shared) - parts::emax(r, list);
    return exponent > 127 ? parts::nan_scale() : parts::power(exponent);
}

element convert(const float_kind& kind, const recipe& r, const value_list& list, float x,
                const block_scale& s) {
    const float a = divide(kind, to(kind, x), s.value);
    if (!std::isfinite(a)) return parts::element_of(list, a);

    const format::element_format& f = *list.element;
    const float lift = std::ldexp(1.0f, f.mantissa_bits);  // bits - 2 mantissa bits
    const float limit = parts::largest(list);
    float out = a;
    if (f.kind == format::number_kind::fixed) {
        out = round_mantissa(kind, multiply(kind, out, lift), r.round.how);
        out = divide(kind, out, lift);
    } else {
        const int min_exp = 2 - (1 << (f.exponent_bits - 1));
        const float found = floor_log2(kind, a == 0 ? 1.0f : std::fabs(a));
        const int exponent = std::max(static_cast<int>(std::min(found, 1000.0f)), min_exp);
        const float unit = power_of_two_in(kind, exponent);
        out = multiply(kind, divide(kind, out, unit), lift);
        out = round_mantissa(kind, out, r.round.how);
        out = multiply(kind, divide(kind, out, lift), unit);
    }
    if (std::isnan(out)) return parts::element_of(list, out);
    const float least = std::ldexp(static_cast<float>(list.least), list.quantum_exponent);
    // The clamp keeps -0.
    if (out > limit) out = limit;
    if (out < least) out = least;
    return parts::element_of(list, out);
}

bool flushes(const block_maximum& m) {
    return m.amax != 0 && parts::floor_log2_f32(m.amax) <= -127;
}

}  // namespace mx::oracle::microxcaling

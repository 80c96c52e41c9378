// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/simd/block_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "libmx/base/bits.hpp"
#include "libmx/codec/dialect_block.hpp"

namespace mx::codec::simd {
namespace {

constexpr float never = std::numeric_limits<float>::infinity();

// Beyond this, float32 arithmetic on the grid of an element format would leave its range.
constexpr double largest_quotient = 0x1p15;

// The smallest float32 >= `b`, or > `b` if `above`; `b` > 0.
float first_float(double b, bool above) {
    if (b > static_cast<double>(std::numeric_limits<float>::max())) return never;
    const auto nearest = static_cast<float>(b);
    const auto value = static_cast<double>(nearest);
    if (value > b || (value == b && !above)) return nearest;
    return base::float_from_bits(base::bits_of(nearest) + 1u);
}

// The largest float32 <= `b`.
float floor_float(double b) {
    if (b >= static_cast<double>(std::numeric_limits<float>::max())) {
        return std::numeric_limits<float>::max();
    }
    const auto nearest = static_cast<float>(b);
    if (static_cast<double>(nearest) <= b) return nearest;
    return base::float_from_bits(base::bits_of(nearest) - 1u);
}

}  // namespace

bool takes_dialect(const block_params& p) {
    const format::element_params& f = p.element;
    if (p.ocp || p.bumps || p.has_offset || !f.has_sign) return false;
    if (f.mantissa_bits == 0 || p.mode.round_fraction) return false;
    const dialect& by = *p.by;
    if (!p.scale_format->power_of_two()) {
        const bool chosen = p.select != four_over_six::none || p.searches;
        if (!f.floating) {
            // dialect_kernel takes only positive elements to be beyond the largest value where
            // negative ones reach further: true under scales that are not rounded to a code.
            const bool even = f.max_negative == f.max_positive;
            return by.two_level.value == two_level_kind::exact && !chosen &&
                   (even || !p.scale_format->has_codes());
        }
        const bool any_rounding = by.two_level.value == two_level_kind::exact && !chosen;
        return by.two_level.value != two_level_kind::ggml &&
               (any_rounding || p.mode.how == format::rounding::rtne);
    }
    const bool searches = p.searches;
    if (p.step.drawn_bits != 0 || (searches && !f.floating)) return false;
    const element_kind element = by.arithmetic.value;
    switch (p.mode.how) {
        case format::rounding::rtne:
            return element == element_kind::exact || element == element_kind::fraction_even;
        case format::rounding::stochastic:
            return false;
        case format::rounding::away:
            // What sets these apart: element_grid::threshold_positive, least_quotient.
            if (element == element_kind::microxcaling || element == element_kind::fbgemm) break;
            [[fallthrough]];
        default:
            if (element != element_kind::exact) return false;
    }
    return !searches;
}

quotient_kind quotient_of(const block_params& p) {
    if (p.scale_format->power_of_two()) {
        const bool nearest = p.mode.how == format::rounding::rtne;
        return nearest ? quotient_kind::product : quotient_kind::exact;
    }
    switch (p.by->two_level.value) {
        case two_level_kind::torchao:
        case two_level_kind::te:
            return quotient_kind::product;
        default:
            return divides_elements(p.by->two_level.value) ? quotient_kind::division
                                                           : quotient_kind::exact;
    }
}

scaling_table::scaling_table(const block_params& p, float target)
    : p_(p),
      source_(source_of(p, target)),
      kind_(quotient_of(p)),
      coded_(p.scale_format->has_codes() && !p.outer_areas),
      largest_value_(static_cast<double>(p.value[p.element.max_positive])) {
    // Half a quantum above the largest value lies the midpoint to the next number; ties go to even
    // codes.
    const int m = p.element.mantissa_bits;
    clamp_value_ = largest_value_ + std::ldexp(1.0, std::ilogb(largest_value_) - m - 1);
    clamps_above_ = (p.element.max_positive & 1u) == 0;
    if (coded_) {
        cells_.resize((base::f32_infinity >> cell_bits) + 1);
        found_.reserve(2 * cells_.size());
    }
    if (p.outer_areas && p.scale_format->is_number()) in_area_.resize(256);
    zero_ = asked(0);
}

scaling_table::source scaling_table::source_of(const block_params& p, float target) {
    return {p.by,
            p.scale_format,
            p.step,
            p.dialect_rule,
            p.searches,
            p.has_tensor_scale,
            p.float_power,
            p.select,
            p.element,
            p.mode,
            p.flush_subnormals,
            p.largest,
            p.tensor.stored,
            p.tensor.decode,
            p.tensor.amax,
            target,
            p.outer_areas};
}

bool scaling_table::is_for(const block_params& p, float target) const {
    return source_ == source_of(p, target);
}

bool scaling_table::enter_area(const block_params& p, float target) {
    source asked_for = source_of(p, target);
    source here = source_;
    here.stored = asked_for.stored;
    here.decode = asked_for.decode;
    here.amax = asked_for.amax;
    if (here != asked_for) return false;
    source_ = here;
    p_.tensor = p.tensor;
    ++area_;
    by_code_.clear();
    in_float_ = {};
    zero_ = asked(0);
    return true;
}

const block_scaling& scaling_table::without_cell(std::uint32_t amax_bits) {
    if (amax_bits == 0) return zero_;
    if (amax_bits >= base::f32_infinity) return left_to_reference;
    if (!in_area_.empty()) return by_area(amax_bits);
    return last_ = asked(amax_bits);
}

// In an area, a code determines the rest.
const block_scaling& scaling_table::by_area(std::uint32_t amax_bits) {
    const float_scale s = choose_scale(p_, amax_bits, source_.target);
    area_entry& e = in_area_[s.code];
    if (e.area != area_) e = {area_, of_number(s)};
    return e.scaling;
}

block_scaling scaling_table::asked(std::uint32_t amax_bits) const {
    return p_.scale_format->power_of_two() ? of_power(amax_bits) : of_number(amax_bits);
}

void scaling_table::set_scale(double scale, block_scaling& to) const {
    to.scale = scale;
    if (scale == 0) return;
    to.inverse = (1.0 + 0x1p-46) / scale;
    to.overflow = first_float(scale * largest_value_, true);
    to.clamp = first_float(scale * clamp_value_, clamps_above_);
}

// Exact sums (product_plan) support elements up to four times the largest value.
void scaling_table::bound(block_scaling& s) const {
    if (s.scale == 0) return;
    s.largest = std::min(s.largest, floor_float(4 * largest_value_ * s.scale));
}

// The power-of-two scale of a dialect.
block_scaling scaling_table::of_power(std::uint32_t amax_bits) const {
    if (dialect_steps::flushed(p_, amax_bits)) return left_to_reference;
    return of_power(dialect_scale(p_, amax_bits));
}

block_scaling scaling_table::of_power(const chosen_scale& s) const {
    const float largest = p_.value[p_.element.max_positive];
    const bool usual = base::is_finite(s.value) && s.value >= 0x1p-127f && !s.nan_quotients &&
                       base::is_finite(s.value * largest);
    const bool by_scale = s.code != 0 || p_.dialect_rule.at_code_0 == s.value;
    if (!usual || !by_scale) return left_to_reference;
    block_scaling out = left_to_reference;
    set_scale(static_cast<double>(s.value), out);
    out.factor = 1.0f / s.value;
    out.largest = floor_float(largest_quotient * out.scale);
    out.code = static_cast<std::uint8_t>(std::max(s.code, 0));
    // The reference does blocks with elements that become NaN.
    if (overflows_to_nan(p_) && out.clamp != never) {
        out.largest = std::min(out.largest, base::float_from_bits(base::bits_of(out.clamp) - 1u));
    }
    bound(out);
    return out;
}

block_scaling scaling_table::of_number(std::uint32_t amax_bits) const {
    return of_number(choose_scale(p_, amax_bits, source_.target));
}

block_scaling scaling_table::of_number(const float_scale& s) const {
    if (base::is_nan(s.value)) return left_to_reference;
    if (kind_ != quotient_kind::exact) {
        const float_scale_decoder decoder(p_, s.value);
        const auto most = static_cast<std::uint8_t>(p_.element.max_positive);
        const bool usual = base::is_finite(s.factor) && s.factor >= 0 &&
                           (s.factor > 0 || kind_ == quotient_kind::product) &&
                           base::is_finite(decoder.decode(most));
        // Under a scale of zero elements saturate.
        if (!usual || (s.value == 0 && s.factor != 0)) return left_to_reference;
    }
    block_scaling out = left_to_reference;
    out.factor = s.factor;
    out.largest = std::numeric_limits<float>::max();
    out.own = s.value;
    out.code = s.code;
    set_scale(float_scale_encoder(p_, s).scale(), out);
    if (kind_ == quotient_kind::exact) {
        // Far from the limits of float32 (sure_quotients).
        const bool usual = out.inverse == 0 || (out.inverse > 0x1p-120 && out.inverse < 0x1p120);
        if (!usual) return left_to_reference;
        out.factor = static_cast<float>(out.inverse);
    }
    const auto factor = static_cast<double>(s.factor);
    if (kind_ == quotient_kind::division) out.largest = floor_float(largest_quotient * factor);
    if (kind_ == quotient_kind::product && factor > 0) {
        out.largest = floor_float(largest_quotient / factor);
    }
    // y of an element must be near x / S, so that non-zero results are large enough for exact sums.
    const double unit = kind_ == quotient_kind::division ? out.scale / factor : out.scale * factor;
    if (kind_ != quotient_kind::exact && out.scale != 0 && std::abs(unit - 1) > 0x1p-8) {
        return left_to_reference;
    }
    bound(out);
    return out;
}

void scaling_table::fill_codes() {
    for (int c = 0; c < 256; ++c) {
        by_code_.push_back(
            p_.scale_format->power_of_two()
                ? of_power(dialect_steps::code_of(c))
                : of_number(float_scale_steps::coded(p_, static_cast<std::uint8_t>(c))));
    }
}

const scaling_table::float32_scales& scaling_table::in_float() {
    if (!in_float_.scale.empty()) return in_float_;
    const bool power = p_.scale_format->power_of_two();
    const int last = power ? format::e8m0_max : static_cast<int>(p_.scale_number.max_positive);
    for (int c = 0; c <= last; ++c) {
        const double s = of_code(c).scale;
        const bool usable = s > 0x1p-100 && s < 0x1p100;
        in_float_.scale.push_back(usable ? static_cast<float>(s) : 0.0f);
        in_float_.inverse.push_back(usable ? static_cast<float>(1 / s) : 0.0f);
        if (!usable) continue;
        if (in_float_.most == 0) in_float_.least = c;
        in_float_.most = c;
    }
    return in_float_;
}

void scaling_table::fill(cell& c, std::uint32_t first) {
    const auto equal = [](const block_scaling& a, const block_scaling& b) {
        return a.code == b.code && a.scale == b.scale && a.largest == b.largest;
    };
    std::uint32_t last = first + (1u << cell_bits) - 1u;
    const block_scaling low = asked(first);
    const block_scaling high = asked(last);
    while (!equal(low, high) && last - first > 1) {
        const std::uint32_t middle = first + (last - first) / 2;
        (equal(asked(middle), low) ? first : last) = middle;
    }
    c.from = last;
    c.either[0] = &found_.emplace_back(low);
    c.either[1] = &found_.emplace_back(high);
}

scaling_table& table_of(const block_params& p, float target) {
    if (p.outer_areas) {
        static thread_local std::unique_ptr<scaling_table> of_area[2];
        std::unique_ptr<scaling_table>& t = of_area[target == p.largest ? 0 : 1];
        if (!t || !t->enter_area(p, target)) t = std::make_unique<scaling_table>(p, target);
        return *t;
    }
    static constexpr std::size_t room = 16;
    static thread_local std::vector<std::unique_ptr<scaling_table>> tables;  // most recent first
    auto at = std::find_if(tables.begin(), tables.end(),
                           [&](const auto& t) { return t->is_for(p, target); });
    if (at == tables.end()) {
        if (tables.size() == room) tables.pop_back();
        tables.push_back(std::make_unique<scaling_table>(p, target));
        at = tables.end() - 1;
    }
    std::rotate(tables.begin(), at, at + 1);
    return *tables.front();
}

}  // namespace mx::codec::simd

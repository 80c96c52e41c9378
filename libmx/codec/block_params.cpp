// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/block_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "libmx/base/status.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {

block_params params_of(const recipe& r, const tensor_facts& facts) {
    const format::element_format& f = *r.element;
    block_params p{};
    p.by = r.by;
    p.plain = r.by->id == dialect_id::ocp && r.scale_format->power_of_two() &&
              !scale::is_search(r.rule->id);
    p.flush_subnormals = r.flush_subnormals;
    p.bumps = bumps_positions(r);
    p.mode = {r.round, r.ties, r.random_bits};
    p.rule = r.rule->id;
    p.facts = scale::rule_facts(f, r.emax);
    p.exponent_bits = f.exponent_bits;
    p.has_offset = r.offset == offset_kind::fp16;
    p.range = r.range;
    p.seed = r.seed;
    p.element = format::params_of(f, r.minimum == int_min::full);
    for (std::uint32_t code = 0; code < 256; ++code) p.value[code] = format::decode(f, code);
    constexpr std::uint32_t quiet_nan = 0x7fc00000u;
    p.poisoned_code =
        static_cast<std::uint8_t>(format::cast_code(p.element, p.mode, quiet_nan, true, 0));
    const bool power_of_two = r.scale_format->power_of_two();
    if (power_of_two) {
        p.conversion =
            conversion_of(*r.by, f, p.mode, true, r.minimum == int_min::full && !f.floating());
        p.element = p.conversion.element;
        std::copy(std::begin(p.conversion.value), std::end(p.conversion.value), p.value);
    } else if (r.by->nan_value.value == nan_element::nan_or_inner) {
        const conversion c = conversion_of(*r.by, f, p.mode, true, false);
        p.poisoned_code = static_cast<std::uint8_t>(convert(c, quiet_nan, 0).code);
    }
    p.scale_format = r.scale_format;
    if (r.scale_format->is_number()) {
        p.scale_number = format::params_of(r.scale_format->number, false);
    }
    p.largest = format::decode(f, f.max_code());
    p.select = r.select;
    p.candidates = r.candidates;
    p.outer_areas = has_outer_areas(r);
    p.measure = r.measure;
    p.reach = r.reach;
    p.tensor = tensor_scale_of(r, facts);
    p.outer = outer_rule_of(r);
    return p;
}

void set_tensor_scale(block_params& p, float stored) {
    if (!std::isfinite(stored) || stored < 0) {
        throw base::error(
            base::error_kind::input,
            fmt::format("a tensor scale of {}: it must be finite and not negative", stored));
    }
    p.tensor = stored_tensor_scale(p.by->two_level.value, stored);
}

}  // namespace mx::codec

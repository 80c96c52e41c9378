// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/recipe_totals.hpp"

#include "libmx/codec/clamp_zone.hpp"

namespace mx::analysis {

metrics::totals empty_totals(const codec::recipe& r) {
    metrics::totals t;
    t.has_subnormals = r.element->has_subnormals();
    t.foreign = r.by->id != codec::dialect_id::ocp;
    t.element_bits = r.element->bits();
    const int offset_bits = r.offset == codec::offset_kind::fp16 ? 16 : 0;
    t.bits_per_block = r.scale_format->bits() + offset_bits;
    const codec::clamp_zone zone = codec::clamp_zone_of(r);
    t.clamp_from = zone.from;
    t.clamp_to = zone.to;
    return t;
}

}  // namespace mx::analysis

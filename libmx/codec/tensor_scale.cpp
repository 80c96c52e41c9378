// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/tensor_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/shared_formats.hpp"

namespace mx::codec {
namespace {

bool has_outer(const recipe& r) {
    return r.scope == scale_scope::tensor || scale::has_tensor_scale(r.rule->id);
}

}  // namespace

bool needs_tensor_facts(const recipe& r) {
    return has_outer(r) && r.outer.what == outer_choice::kind::by_rule;
}

bool has_tensor_scale(const recipe& r) { return has_outer(r) && !has_outer_areas(r); }

bool has_outer_areas(const recipe& r) {
    using kind = outer_choice::kind;
    return r.outer.what == kind::row || r.outer.what == kind::column || r.outer.what == kind::tile;
}

std::string_view area_word(const recipe& r) {
    if (r.outer.what == outer_choice::kind::row) return "row";
    return r.outer.what == outer_choice::kind::column ? "column" : "tile";
}

void refuse_scale_files(const recipe& r) {
    if (r.outer.file.empty()) return;
    throw base::error(
        base::error_kind::usage,
        fmt::format("recipe '{}': its outer scales come from a file, by the names of tensors; here "
                    "give a number, as in outer=given:0.5",
                    to_string(r)));
}

void refuse_outer_areas(const recipe& r, std::string_view why) {
    if (!has_outer_areas(r)) return;
    throw base::error(base::error_kind::usage,
                      fmt::format("recipe '{}': every {} has an outer scale of its own, {}",
                                  to_string(r), area_word(r), why));
}

tensor_scale stored_tensor_scale(two_level_kind convention, float stored) {
    const bool inverse =
        convention == two_level_kind::te || convention == two_level_kind::compressed_tensors;
    return {stored, inverse ? 1.0f / stored : stored, 0};
}

float whole_scale(const format::element_format& f, float amax) {
    if (amax == 0) return 1;
    return std::max(amax / format::decode(f, f.max_code()), 0x1p-126f);
}

outer_rule outer_rule_of(const recipe& r) {
    if (!has_outer(r) || !has_blocks(r)) return {};
    const format::element_format& scale = r.scale_format->number;
    const bool below = r.select != four_over_six::none && r.bound == scale_bound::power_of_two;
    const float largest_scale =
        below ? base::exact_pow2f(scale.emax()) : format::decode(scale, scale.max_code());
    // Exact: the largest values of all formats have few bits.
    return {r.by->two_level.value,
            largest_scale * format::decode(*r.element, r.element->max_code())};
}

tensor_scale outer_scale(const outer_rule& how, float amax) {
    constexpr float largest = std::numeric_limits<float>::max();
    float stored = 1;
    switch (how.convention) {
        case two_level_kind::exact:
            if (amax != 0) stored = std::max(amax / how.range, base::exact_pow2f(-149));
            break;
        case two_level_kind::torchao:
        case two_level_kind::torchao_divides:
        case two_level_kind::modelopt:
            stored = amax / how.range;
            break;
        case two_level_kind::alto:
            stored = std::max(amax / how.range, 1e-30f);
            break;
        case two_level_kind::te:
            if (amax != 0) stored = std::min(how.range / amax, largest);
            break;
        case two_level_kind::compressed_tensors:
            if (std::isfinite(how.range / amax)) stored = how.range / amax;
            break;
        case two_level_kind::quark:
        case two_level_kind::ggml:
        case two_level_kind::none:
            break;
    }
    tensor_scale t = stored_tensor_scale(how.convention, stored);
    t.amax = amax;
    return t;
}

tensor_scale tensor_scale_of(const recipe& r, const tensor_facts& facts) {
    if (!has_tensor_scale(r)) return {};
    if (!has_blocks(r)) {
        const float amax = base::float_from_bits(facts.amax_bits);
        const format::shared_format* const f = format::find_shared_format(r.element->name);
        const float s = f != nullptr ? amax / f->range : whole_scale(*r.element, amax);
        return {s, s, amax};
    }
    const outer_rule how = outer_rule_of(r);
    if (r.outer.what == outer_choice::kind::given) {
        return stored_tensor_scale(how.convention, r.outer.value);
    }
    return outer_scale(how, base::float_from_bits(facts.amax_bits));
}

}  // namespace mx::codec

// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/tensor_scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {

bool needs_tensor_facts(const recipe& r) { return scale::has_tensor_scale(r.rule->id); }

tensor_scale stored_tensor_scale(two_level_kind convention, float stored) {
    const bool inverse =
        convention == two_level_kind::te || convention == two_level_kind::compressed_tensors;
    return {stored, inverse ? 1.0f / stored : stored};
}

tensor_scale tensor_scale_of(const recipe& r, const tensor_facts& facts) {
    if (!needs_tensor_facts(r)) return {};
    const float amax = base::float_from_bits(facts.amax_bits);
    const float largest_scale = r.select == four_over_six::none ? 448.0f : 256.0f;
    // Exact: the largest values of all formats have few bits.
    const float span = largest_scale * format::decode(*r.element, r.element->max_code());
    const two_level_kind convention = r.by->two_level.value;
    float stored = 1;
    switch (convention) {
        case two_level_kind::exact:
            if (amax != 0) stored = std::max(amax / span, base::exact_pow2f(-149));
            break;
        case two_level_kind::torchao:
        case two_level_kind::torchao_divides:
        case two_level_kind::modelopt:
            stored = amax / span;
            break;
        case two_level_kind::te:
            if (amax != 0) stored = std::min(span / amax, std::numeric_limits<float>::max());
            break;
        case two_level_kind::compressed_tensors:
            if (std::isfinite(span / amax)) stored = span / amax;
            break;
        case two_level_kind::ggml:
        case two_level_kind::none:
            break;
    }
    return stored_tensor_scale(convention, stored);
}

}  // namespace mx::codec

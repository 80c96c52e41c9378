// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/verify_build.hpp"

#if defined(MX_HAS_ORACLE)

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/oracle/metrics.hpp"

namespace mx::app {

outcome outcome_by_oracle(const sample& s, const outcome& reference) {
    const std::vector<float> x = prepared(s);
    oracle::recipe r =
        oracle_recipe(s.of, base::float_from_bits(conformance::vectors::facts_of(x).amax_bits));
    const oracle::tensor tensor{x, 1, s.rows, s.cols, base::tensor_id("input")};
    std::vector<float> values;
    outcome o;
    for (const oracle::quantized_block& b : oracle::measure(tensor, r).blocks) {
        o.scales.push_back(bits_of(b.scale_code == 255 ? base::quiet_nan() : b.scale));
        if (s.of.offset != codec::offset_kind::none) o.offsets.push_back(b.offset);
        for (std::size_t i = 0; i < b.codes.size(); ++i) {
            const std::size_t at = values.size();
            const bool known = b.coded[i] || at >= reference.codes.size();
            o.codes.push_back(known ? b.codes[i] : reference.codes[at]);
            values.push_back(oracle::dequantized_f32(b, i));
        }
    }
    o.values = returned(s, std::move(values));
    // Codes tell the signs of zeros, which the oracle's values do not have.
    for (std::size_t i = 0; i < o.values.size(); ++i) {
        const std::uint32_t both = o.values[i] | reference.values[i];
        if ((both & base::f32_magnitude_mask) == 0) o.values[i] = reference.values[i];
    }
    if (reference.codes.empty()) o.codes.clear(), o.scales.clear();
    return o;
}

}  // namespace mx::app

#else

namespace mx::app {

outcome outcome_by_oracle(const sample&, const outcome& reference) { return reference; }

}  // namespace mx::app

#endif

// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/quantile_table.hpp"

#include <vector>

namespace mx::synth {

quantile_table::quantile_table(const law_row& row) : segments_{} {
    for (std::uint32_t end = 0; end < 2; ++end) {
        const tail side = end == 0 ? tail::upper : tail::lower;
        cubic* out = &segments_[std::size_t{end} * per_end];
        for (int octave = 0; octave < 31; ++octave) {
            for (int eighth = 0; eighth < 8; ++eighth) *out++ = fit(row, side, octave, eighth);
        }
        // Words that round up to 2^31 exactly.
        *out = {{static_cast<float>(magnitude_quantile(row, side, 0.5)), 0.0f, 0.0f, 0.0f}};
    }
}

quantile_table::cubic quantile_table::fit(const law_row& row, tail end, int octave, int eighth) {
    // Interpolation at the four Chebyshev points of the segment t in [0, 1/8].
    constexpr double outer = 0.92387953251128675613;
    constexpr double inner = 0.38268343236508977173;
    constexpr double points[4] = {-outer, -inner, inner, outer};
    const double unit = base::exact_pow2(octave - 32);
    double t[4];
    double d[4];
    for (int i = 0; i < 4; ++i) {
        t[i] = (1.0 + points[i]) / 16.0;
        const double p = unit * (1.0 + eighth / 8.0 + t[i]);
        d[i] = magnitude_quantile(row, end, p);
    }
    for (int level = 1; level < 4; ++level) {
        for (int i = 3; i >= level; --i) d[i] = (d[i] - d[i - 1]) / (t[i] - t[i - level]);
    }
    // Newton's form to powers of t.
    double c[4] = {d[3], 0.0, 0.0, 0.0};
    for (int i = 2; i >= 0; --i) {
        for (int k = 3; k >= 1; --k) c[k] = c[k - 1] - t[i] * c[k];
        c[0] = d[i] - t[i] * c[0];
    }
    return {{static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]),
             static_cast<float>(c[3])}};
}

const quantile_table& table_of(law id) {
    static const std::vector<quantile_table> tables = [] {
        std::vector<quantile_table> built;
        built.reserve(laws.size());
        for (const law_row& row : laws) built.emplace_back(row);
        return built;
    }();
    return tables[static_cast<std::size_t>(id)];
}

}  // namespace mx::synth

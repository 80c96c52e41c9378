// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/class_trades.hpp"

#include <limits>

#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {

class_trades trades_of(const std::string& role, const review_data& e,
                       const std::vector<std::size_t>& among) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    class_trades all{role, {}, among};
    const compare::ranking ranks =
        compare::rank(e.table, e.plan, among, 0, compare::pooling::equal_rms);
    for (std::size_t cell = 0; cell < e.plan.cells.size(); ++cell) {
        for (const compare::standing& s : ranks.cells) {
            if (s.cell != cell || s.tensors == 0) continue;
            const double sqnr = s.sqnr_db ? s.sqnr_db->mean : s.exact ? infinite : -infinite;
            all.candidates.push_back({cell, s.bits_per_element, sqnr, s.rates});
        }
    }
    return all;
}

}  // namespace mx::pages

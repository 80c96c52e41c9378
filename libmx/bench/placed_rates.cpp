// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/placed_rates.hpp"

#include <algorithm>

namespace mx::bench {

const roof_row& row_of(roof r) {
    return *std::find_if(roofs.begin(), roofs.end(),
                         [r](const roof_row& row) { return row.which == r; });
}

placed_rate rate_below(double of_roof, double bytes, placed_rate r) {
    const double moved = bytes + (r.writes == pass_output::codes ? 1 : 0);
    r.bytes_per_second = r.elements_per_second * moved;
    r.fraction = r.bytes_per_second / of_roof;
    return r;
}

}  // namespace mx::bench

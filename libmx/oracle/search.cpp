// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::oracle {
namespace {

namespace mp = boost::multiprecision;

// The error sum of the block under the scale `s` (in ticks), elements rounded to nearest, and
// whether every non-zero element is clamped.
struct searched_error {
    integer total = 0;
    bool all_clamped = true;
};

searched_error error_under(const recipe& r, const value_list& list, std::span<const float> x,
                           const integer& s) {
    const integer one = ticks_of_power(0);
    searched_error e;
    for (const float v : x) {
        if (v == 0) continue;
        const rounded q = round_to(list, ticks_of(v) * one, s * one, std::signbit(v), {}, 0);
        e.all_clamped = e.all_clamped && q.beyond;
        const integer d = s * q.quanta * ticks_of_power(list.quantum_exponent) / one;
        const integer off = mp::abs(integer(d - ticks_of(v)));
        e.total += r.search == selection::mse ? integer(off * off) : off;
    }
    return e;
}

}  // namespace

int searched_code(const recipe& r, const value_list& list, std::span<const float> x,
                  const std::vector<integer>& scales, int first) {
    int low = 0, high = static_cast<int>(scales.size()) - 1;
    while (scales[static_cast<std::size_t>(low)] == 0) ++low;
    first = std::clamp(first, low, high);
    if (r.reach >= 0) {
        low = std::max(low, first - r.reach);
        high = std::min(high, first + r.reach);
    }
    // The error is constant over codes under which all elements become zero because twice the
    // largest is below the quantum; while all elements are clamped, it grows with every lower code.
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::fabs(v));
    const integer quantum = ticks_of_power(list.quantum_exponent);
    int best = high;
    integer least = error_under(r, list, x, scales[static_cast<std::size_t>(high)]).total;
    for (int code = high - 1; code >= low; --code) {
        const integer& s = scales[static_cast<std::size_t>(code)];
        if (2 * ticks_of(largest) * ticks_of_power(0) < s * quantum) continue;
        const searched_error e = error_under(r, list, x, s);
        if (e.total < least) {
            least = e.total;
            best = code;
        }
        if (e.all_clamped) break;
    }
    return best;
}

}  // namespace mx::oracle

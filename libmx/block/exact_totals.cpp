// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/exact_totals.hpp"

namespace mx::block {

void exact_totals::merge(const exact_totals& other) {
    each_exact_sum([](base::exact_sum& to, const base::exact_sum& from) { to.merge(from); }, *this,
                   other);
}

base::exact_sum exact_totals::error2() const {
    base::exact_sum sum = d2;
    sum.subtract(xd);
    sum.subtract(xd);
    sum.merge(x2);
    return sum;
}

base::exact_sum exact_totals::error() const {
    base::exact_sum sum = d;
    sum.subtract(x);
    return sum;
}

base::exact_sum exact_totals::grid() const {
    base::exact_sum sum = error2();
    sum.subtract(clamp);
    sum.subtract(underflow);
    return sum;
}

bool operator==(const exact_totals& a, const exact_totals& b) {
    bool equal = true;
    each_exact_sum([&](const base::exact_sum& s, const base::exact_sum& t) { equal &= s == t; }, a,
                   b);
    return equal;
}

void round_to(const exact_totals& from, block_sums& to) {
    to.error2 = from.error2().value();
    to.x2 = from.x2.value();
    to.xd = from.xd.value();
    to.d2 = from.d2.value();
    to.error = from.error().value();
}

}  // namespace mx::block

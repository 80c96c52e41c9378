// SPDX-License-Identifier: Apache-2.0
// Lists as members of records.
#pragma once

#include "libmx/pages/views/values.hpp"
#include "libmx/report/record.hpp"

namespace mx::documents {

/// make(x) of every x of a range, in a record.
template <typename Range, typename Make>
report::list list_of(const Range& range, Make make) {
    report::list list;
    for (const auto& x : range) list.emplace_back(make(x));
    return list;
}
template <typename Range>
report::list integers_of(const Range& range) {
    return list_of(range, [](auto n) { return pages::integer(n); });
}

}  // namespace mx::documents

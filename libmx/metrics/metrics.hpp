// SPDX-License-Identifier: Apache-2.0
// THE LIST of metrics: names, units, definitions, and how each is finished from the totals.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// What a metric has to be asked for with: nothing, `--decompose`, `--histograms`.
enum class when : std::uint8_t { always, decompose, histograms };

/// One metric. `finish` gives null (monostate) where the metric is undefined.
struct metric {
    std::string_view name;        ///< as in JSON
    std::string_view unit;        ///< "", "dB", "bits", "share", "count"
    std::string_view definition;  ///< one line, as in the design, section 4
    when collected;
    report::value (*finish)(const totals&);
};

/// Every metric in output order.
std::span<const metric> all();

/// The row named `name`, or nullptr.
const metric* find(std::string_view name);

}  // namespace mx::metrics

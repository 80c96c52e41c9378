// SPDX-License-Identifier: Apache-2.0
// THE LIST of metrics: names, units, definitions, and where each comes from.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/metrics/row.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// What a metric has to be asked for with: nothing, `--decompose`, `--histograms`.
enum class when : std::uint8_t { always, decompose, histograms };

struct metric {
    std::string_view name;        ///< as in JSON and of the member
    std::string_view unit;        ///< "", "dB", "bits", "share", "count"
    std::string_view definition;  ///< one line
    double row::*member = nullptr;
    when collected = when::always;
    report::value (*finish)(const totals&) = nullptr;  ///< where it is no member of row

    constexpr metric(std::string_view n, std::string_view u, std::string_view d, double row::*m)
        : name(n), unit(u), definition(d), member(m) {}
    constexpr metric(std::string_view n, std::string_view u, std::string_view d, when w,
                     report::value (*f)(const totals&))
        : name(n), unit(u), definition(d), collected(w), finish(f) {}

    /// The figure of `r`, of which it is a member: null (monostate) where it is undefined.
    report::value value_of(const row& r) const;
};

/// Every metric in output order.
std::span<const metric> all();

/// The row named `name`, or nullptr.
const metric* find(std::string_view name);

}  // namespace mx::metrics

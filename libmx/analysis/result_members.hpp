// SPDX-License-Identifier: Apache-2.0
// The members of mx.analysis/1 that are not metrics, for its JSON Schema.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mx::analysis {

enum class member_type : std::uint8_t {
    text,
    extents,         ///< list of counts
    count,           ///< whole number, not negative
    optional_count,  ///< or null
    figure,          ///< number or null
    contraction,     ///< object or null
};

struct member_facts {
    std::string_view name;
    member_type type;
    std::string_view definition;  ///< one line
    bool always = true;           ///< every result has it
};

/// The members of results that are not metrics, in output order: those of groups come last, after
/// the metrics.
std::vector<member_facts> result_members();

}  // namespace mx::analysis

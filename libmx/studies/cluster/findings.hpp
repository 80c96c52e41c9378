// SPDX-License-Identifier: Apache-2.0
// A tensor in danger under a recipe: what happens to its blocks, and what would mend it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/record.hpp"
#include "libmx/studies/cluster/mends.hpp"

namespace mx::cluster {

/// How an ailment is told: "1 of 8 blocks saturates", "2 of 8 blocks saturate".
struct ailment_words {
    std::string_view one, many;
};
const ailment_words& words_of(ailment a);

struct finding {
    engine::tensor_ref tensor{};
    codec::recipe recipe;
    ailment what = ailment::saturation;  ///< the worst of those above the limit
    block_survey survey;
    report::value collapsed_block_rate, nrmse;
    std::vector<measured_mend> mends;
    std::size_t mend = 0;  ///< index of the one to recommend
};

/// The worst ailment of which at least danger_share of the eligible blocks suffer.
std::optional<ailment> danger_of(const block_survey& s);

/// Whether `a` is more severe than `b`: by what they suffer from, by the share of the blocks that
/// do, and by nrmse.
bool more_severe(const finding& a, const finding& b);

/// The finding as an element of the JSON list `findings`.
report::record finding_record(const finding& f, const engine::role_finder& roles);

}  // namespace mx::cluster

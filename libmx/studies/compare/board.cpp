// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/board.hpp"

#include <unordered_map>

#include "libmx/report/members.hpp"

namespace mx::compare {
namespace {

figures figures_of(const report::record& r) {
    const auto count = [&](std::string_view name) {
        return report::number_of(r, name).value_or(0);
    };
    figures f;
    f.rmse = report::number_of(r, "rmse");
    f.nrmse = report::number_of(r, "nrmse");
    f.sqnr_db = report::number_of(r, "sqnr_db");
    f.crest_factor = report::number_of(r, "crest_factor");
    f.elements = count("elements");
    f.counted = f.elements - count("nan") - count("inf") - count("poisoned");
    f.eligible = count("eligible_blocks");
    f.rms = count("rms");
    f.bits_per_element = count("bits_per_element");
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        f.rates[i] = report::number_of(r, pooled_rates[i].name);
    }
    return f;
}

tensor_row row_of(const report::record& r, std::size_t cells) {
    tensor_row row{report::text_of(r, "file"),
                   report::text_of(r, "tensor"),
                   report::text_of(r, "role"),
                   report::text_of(r, "dtype"),
                   {},
                   {}};
    if (const auto layer = report::number_of(r, "layer")) row.layer = report::whole(*layer);
    row.at.resize(cells);
    return row;
}

}  // namespace

board arrange(const report::record_list& results, const std::vector<std::string>& runs,
              std::size_t phases) {
    board b{runs.size(), phases, {}};
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < runs.size(); ++i) places.emplace(runs[i], i);
    for (const report::record& r : results) {
        const auto run = places.find(report::text_of(r, "recipe"));
        if (run == places.end()) continue;
        // The results of a tensor follow one another.
        const bool same = !b.tensors.empty() &&
                          b.tensors.back().tensor == report::text_of(r, "tensor") &&
                          b.tensors.back().file == report::text_of(r, "file");
        if (!same) b.tensors.push_back(row_of(r, runs.size() * phases));
        const auto phase =
            static_cast<std::uint64_t>(report::whole(report::number_of(r, "phase").value_or(0)));
        if (phase >= phases) continue;
        b.tensors.back().at[run->second * phases + phase] = figures_of(r);
    }
    return b;
}

}  // namespace mx::compare

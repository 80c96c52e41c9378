// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/board.hpp"

#include <unordered_map>

namespace mx::compare {

const analysis::result& board::of(std::size_t tensor, std::size_t run, std::size_t phase) const {
    static const analysis::result left_out;
    const analysis::result* r = tensors[tensor].at[run * phases + phase];
    return r == nullptr ? left_out : *r;
}

board arrange(const std::vector<analysis::result>& results, const std::vector<std::string>& runs,
              std::size_t phases) {
    board b{runs.size(), phases, {}};
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < runs.size(); ++i) places.emplace(runs[i], i);
    for (const analysis::result& r : results) {
        const auto run = places.find(r.under->name);
        if (run == places.end()) continue;
        // The results of a tensor follow one another.
        const bool same = !b.tensors.empty() && b.tensors.back().of->tensor == r.of->tensor &&
                          b.tensors.back().of->file == r.of->file;
        if (!same) {
            b.tensors.push_back({r.of, std::vector<const analysis::result*>(runs.size() * phases)});
        }
        const auto phase = static_cast<std::uint64_t>(r.phase.value_or(0));
        if (phase < phases) b.tensors.back().at[run->second * phases + phase] = &r;
    }
    return b;
}

}  // namespace mx::compare

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/results_table.hpp"

#include <algorithm>
#include <map>

#include "libmx/base/text_tables.hpp"
#include "libmx/engine/roles.hpp"

namespace mx::compare {

analysis::result results_table::of(std::size_t tensor, std::size_t run, std::size_t phase) const {
    const tensor_row::place at = tensors[tensor].at[run * phases + phase];
    return at.list == tensor_row::place::nowhere ? analysis::result() : lists[at.list][at.index];
}

std::vector<analysis::result> results_table::all_of(std::size_t tensor) const {
    std::vector<analysis::result> all;
    for (std::size_t run = 0; run < runs; ++run) {
        if (tensors[tensor].at[run * phases].list == tensor_row::place::nowhere) continue;
        all.push_back(of(tensor, run));
    }
    return all;
}

results_table arrange(const analysis::result_list& results, const std::vector<std::string>& runs,
                      std::size_t phases) {
    results_table b{runs.size(), phases, {}, {results}};
    base::text_map<std::size_t> places;
    for (std::size_t i = 0; i < runs.size(); ++i) places.emplace(runs[i], i);
    std::uint32_t next = 0;
    for (const analysis::result& r : results) {
        const std::uint32_t index = next++;
        const auto run = places.find(r.under->name);
        if (run == places.end()) continue;
        // The results of a tensor are consecutive.
        const bool same = !b.tensors.empty() && b.tensors.back().of->tensor == r.of->tensor &&
                          b.tensors.back().of->file == r.of->file;
        if (!same) {
            b.tensors.push_back({r.of, std::vector<tensor_row::place>(runs.size() * phases)});
        }
        const auto phase = static_cast<std::uint64_t>(r.phase.value_or(0));
        if (phase < phases) b.tensors.back().at[run->second * phases + phase] = {0, index};
    }
    return b;
}

std::vector<layer_series> find_series(const results_table& b) {
    std::vector<layer_series> all;
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    for (std::size_t t = 0; t < b.tensors.size(); ++t) {
        const analysis::tensor_identity& of = *b.tensors[t].of;
        const auto place = engine::layer_of(of.tensor);
        // The name of a group of tensors of several layers can contain another number.
        if (!place || !of.layer) continue;
        const auto [at, added] = places.emplace(std::pair(of.file, place->series), all.size());
        if (added) all.push_back({of.file, place->series, of.role, {}});
        all[at->second].tensors.push_back(t);
    }
    std::erase_if(all, [](const layer_series& s) { return s.tensors.size() < 2; });
    for (layer_series& s : all) {
        std::ranges::stable_sort(s.tensors, {},
                                 [&](std::size_t t) { return b.tensors[t].of->layer; });
    }
    return all;
}

}  // namespace mx::compare

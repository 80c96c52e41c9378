// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/series.hpp"

#include <algorithm>
#include <map>

#include "libmx/engine/roles.hpp"

namespace mx::compare {

std::vector<layer_series> find_series(const analysis::results_table& b) {
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

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/series.hpp"

#include <algorithm>
#include <map>

#include "libmx/engine/roles.hpp"

namespace mx::compare {

std::vector<layer_series> find_series(const board& b) {
    std::vector<layer_series> all;
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    for (std::size_t t = 0; t < b.tensors.size(); ++t) {
        const tensor_row& row = b.tensors[t];
        const auto place = engine::layer_of(row.tensor);
        if (!place) continue;
        const auto [at, added] = places.emplace(std::pair(row.file, place->series), all.size());
        if (added) all.push_back({row.file, place->series, row.role, {}});
        all[at->second].tensors.push_back(t);
    }
    all.erase(std::remove_if(all.begin(), all.end(),
                             [](const layer_series& s) { return s.tensors.size() < 2; }),
              all.end());
    for (layer_series& s : all) {
        std::stable_sort(s.tensors.begin(), s.tensors.end(), [&](std::size_t x, std::size_t y) {
            return b.tensors[x].layer < b.tensors[y].layer;
        });
    }
    return all;
}

std::optional<double> figure_of(const board& b, std::size_t tensor, const cell& c,
                                const series_figure& what) {
    double sum = 0;
    for (const std::size_t run : c.runs) {
        const std::optional<double> value = what.get(b.of(tensor, run));
        if (!value) return {};
        sum += *value;
    }
    return sum / static_cast<double>(c.runs.size());
}

}  // namespace mx::compare

// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/measurements.hpp"

#include <algorithm>

#include "libmx/policy/normal.hpp"
#include "libmx/policy/operands.hpp"

namespace mx::policy {

measurements::measurements(const measured_model& m, bool whole_blocks)
    : of_(m), whole_blocks_(whole_blocks) {
    for (std::size_t c = 0; c < m.table.recipes.size(); ++c) {
        columns_[recipe_key(m.table.recipes[c].recipe)].push_back(c);
    }
}

std::optional<std::size_t> measurements::find(std::size_t tensor, const std::string& key,
                                              bool any) const {
    const auto at = columns_.find(key);
    if (at == columns_.end()) return {};
    for (const std::size_t c : at->second) {
        if (!of_.table.has(tensor, c)) continue;
        if (any || !whole_blocks_ ||
            holds_whole_blocks(of_.tensors[tensor], of_.table.recipes[c].recipe)) {
            return c;
        }
    }
    return {};
}

std::map<std::string, codec::recipe> measurements::recipes(std::span<const std::size_t> of) const {
    std::map<std::string, codec::recipe> found;
    for (const auto& [key, columns] : columns_) {
        const bool measured = std::ranges::any_of(columns, [&](std::size_t c) {
            return std::ranges::any_of(of, [&](std::size_t t) { return of_.table.has(t, c); });
        });
        if (measured) found.emplace(key, without_axis(of_.table.recipes[columns[0]].recipe));
    }
    return found;
}

const metrics::row& measurements::normal(const std::string& key) {
    const auto [at, added] = normals_.try_emplace(key);
    if (added) {
        const codec::recipe& measured = of_.table.recipes[columns_.at(key)[0]].recipe;
        at->second = figures_on_normal_data(without_axis(measured));
    }
    return at->second;
}

}  // namespace mx::policy

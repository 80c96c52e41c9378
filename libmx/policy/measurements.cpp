// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/measurements.hpp"

#include <algorithm>
#include <string_view>

#include "libmx/base/text_tables.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/policy/operands.hpp"

namespace mx::policy {

measurements::measurements(std::span<const measured_tensor> tensors, bool whole_blocks)
    : tensors_(tensors) {
    // Spellings are few, measurements many.
    base::view_map<const std::pair<const std::string, codec::recipe>*> spellings;
    for (const measured_tensor& t : tensors) {
        std::vector<known>& here = of_.emplace_back();
        for (const measurement& m : t.measured) {
            auto& key = spellings[m.text()];
            if (key == nullptr) {
                key = &*keys_.emplace(recipe_key(m.recipe()), without_axis(m.recipe())).first;
            }
            here.push_back({key, !whole_blocks || holds_whole_blocks(t, m.recipe())});
        }
    }
}

const measurement* measurements::find(std::size_t tensor, const std::string& key, bool any) const {
    const auto name = keys_.find(key);
    if (name == keys_.end()) return nullptr;
    const std::vector<known>& here = of_[tensor];
    const auto at = std::find_if(here.begin(), here.end(), [&](const known& k) {
        return k.key == &*name && (any || k.whole);
    });
    if (at == here.end()) return nullptr;
    return &tensors_[tensor].measured[static_cast<std::size_t>(at - here.begin())];
}

std::map<std::string, codec::recipe> measurements::recipes(std::span<const std::size_t> of) const {
    std::map<std::string, codec::recipe> found;
    for (const std::size_t t : of) {
        for (const known& k : of_[t]) found.insert(*k.key);
    }
    return found;
}

const metrics::row& measurements::normal(const std::string& key) {
    auto at = normals_.find(key);
    if (at == normals_.end()) {
        at = normals_.emplace(key, figures_on_normal_data(keys_.at(key))).first;
    }
    return at->second;
}

}  // namespace mx::policy

// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/results_table.hpp"

#include <algorithm>
#include <cmath>

namespace mx::analysis {
namespace {

bool has_figures(const result& r) { return r.elements > 0 || !std::isnan(r.rmse); }

}  // namespace

results_table::results_table(std::span<const codec::recipe> taken, std::size_t phases)
    : phases_(phases), all_recipes_(false) {
    for (const codec::recipe& r : taken) {
        recipes.push_back({codec::to_string(r), r});
        columns_.emplace(recipes.back().name, columns_.size());
    }
}

std::optional<std::size_t> results_table::find(std::string_view recipe) const {
    const auto at = columns_.find(recipe);
    return at == columns_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::size_t> results_table::column_for(const named_recipe& r) {
    const auto known = find(r.name);
    if (known || !all_recipes_) return known;
    columns_.emplace(r.name, recipes.size());
    recipes.push_back(r);
    return recipes.size() - 1;
}

std::size_t results_table::row_for(const result& r) {
    // The results of a tensor are usually consecutive.
    if (!tensors.empty() && tensors.back().of == r.of) return tensors.size() - 1;
    const std::pair<std::string_view, std::string_view> name(r.of->file, r.of->tensor);
    const auto [at, added] = index_.emplace(name, tensors.size());
    if (added) tensors.emplace_back().of = r.of;
    return at->second;
}

std::size_t results_table::add(const result_list& results) {
    std::size_t repeated = 0;
    place here{static_cast<std::uint32_t>(lists_.size()), 0};
    lists_.push_back(results);
    for (const result& r : results) {
        const place at{here.list, here.index++};
        const auto phase = static_cast<std::uint64_t>(r.phase.value_or(0));
        if (phase >= phases_) continue;
        const auto column = column_for(*r.under);
        if (!column) continue;
        const std::size_t tensor = row_for(r);
        if (has(tensor, *column, phase)) {
            const bool known = has_figures(of(tensor, *column, phase));
            repeated += known && has_figures(r) ? 1u : 0u;
            if (known || !has_figures(r)) continue;
        }
        std::vector<place>& places = tensors[tensor].at_;
        const std::size_t index = *column * phases_ + phase;
        if (places.size() <= index) places.resize(index + 1);
        places[index] = at;
    }
    return repeated;
}

std::optional<std::size_t> results_table::find(std::string_view file,
                                               std::string_view tensor) const {
    const auto at = index_.find({file, tensor});
    return at == index_.end() ? std::nullopt : std::optional(at->second);
}

bool results_table::has(std::size_t tensor, std::size_t recipe, std::size_t phase) const {
    const std::size_t index = recipe * phases_ + phase;
    return tensor < tensors.size() && index < tensors[tensor].at_.size() &&
           tensors[tensor].at_[index].list != place::nowhere;
}

result results_table::of(std::size_t tensor, std::size_t recipe, std::size_t phase) const {
    if (!has(tensor, recipe, phase)) return {};
    const place at = tensors[tensor].at_[recipe * phases_ + phase];
    return lists_[at.list][at.index];
}

result results_table::first_of(std::size_t tensor) const {
    const std::vector<place>& places = tensors[tensor].at_;
    const auto at = std::ranges::find_if(places, [](place p) { return p.list != place::nowhere; });
    return lists_[at->list][at->index];
}

std::vector<result> results_table::all_of(std::size_t tensor) const {
    std::vector<result> all;
    for (std::size_t i = 0; i < recipes.size(); ++i) {
        if (has(tensor, i)) all.push_back(of(tensor, i));
    }
    return all;
}

}  // namespace mx::analysis

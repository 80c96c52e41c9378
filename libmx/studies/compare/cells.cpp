// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "libmx/base/status.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/format/block_formats.hpp"

namespace mx::compare {
namespace {

// A recipe under construction: its preset, and keys with values in the given order.
struct spelling {
    std::string preset;
    std::vector<std::pair<std::string, std::string>> settings;

    void set(const std::string& key, const std::string& value) {
        for (auto& [name, old] : settings) {
            if (name != key) continue;
            old = value;
            return;
        }
        settings.emplace_back(key, value);
    }

    std::string text() const {
        std::string out = preset;
        char separator = ':';
        for (const auto& [key, value] : settings) {
            out += fmt::format("{}{}={}", separator, key, value);
            separator = ',';
        }
        return out;
    }
};

// Splits a valid recipe into its preset and settings.
spelling read(const std::string& recipe) {
    const std::size_t colon = std::min(recipe.find(':'), recipe.size());
    spelling s{recipe.substr(0, colon), {}};
    for (std::size_t at = colon + 1; at < recipe.size();) {
        const std::size_t end = std::min(recipe.find(',', at), recipe.size());
        const std::size_t equals = recipe.find('=', at);
        s.set(recipe.substr(at, equals - at), recipe.substr(equals + 1, end - equals - 1));
        at = end + 1;
    }
    return s;
}

// Refuses a value that no recipe supports, so that a misspelt value is not silently left out.
void check_value(const std::string& key, const std::string& value) {
    const auto keys = codec::recipe_keys();
    const auto row = std::ranges::find(keys, key, &codec::recipe_key::name);
    if (row == keys.end()) base::refuse("a sweep has no axis '{}'", key);
    std::optional<base::error> reason;
    for (const format::block_format& b : format::block_formats) {
        codec::recipe r = codec::preset_recipe(b.name);
        try {
            row->set(r, value);
            return;
        } catch (const base::error& e) {
            if (!reason) reason = e;
        }
    }
    throw base::error(*reason);
}

// Every combination of the axes with the bases; the last axis varies fastest.
std::vector<spelling> product(const sweep_request& request) {
    std::vector<spelling> all;
    for (const std::string& base : request.bases) {
        codec::parse_recipe(base);
        all.push_back(read(base));
    }
    for (const axis& a : request.axes) {
        if (a.values.empty()) continue;
        if (all.size() > max_cells / a.values.size()) {
            base::refuse("the sweep has more than {} combinations; leave out some values",
                         max_cells);
        }
        for (const std::string& value : a.values) check_value(a.key, value);
        std::vector<spelling> next;
        for (const spelling& s : all) {
            for (const std::string& value : a.values) {
                next.push_back(s);
                next.back().set(a.key, value);
            }
        }
        all = std::move(next);
    }
    return all;
}

// The index of `r` among `recipes`; appends it if it is missing.
std::size_t place_of(std::vector<codec::recipe>& recipes, const codec::recipe& r) {
    const auto at = std::ranges::find(recipes, r);
    if (at != recipes.end()) return static_cast<std::size_t>(at - recipes.begin());
    recipes.push_back(r);
    return recipes.size() - 1;
}

cell make_cell(const codec::recipe& r, std::uint64_t seeds, std::vector<codec::recipe>& recipes) {
    cell c{r, codec::to_string(r), {}};
    const std::uint64_t runs = is_random(r) ? seeds : 1;
    for (std::uint64_t i = 0; i < runs; ++i) {
        codec::recipe seeded = r;
        seeded.seed = r.seed + i;  // wraps: any 64 bits are a seed
        c.runs.push_back(place_of(recipes, seeded));
    }
    return c;
}

}  // namespace

bool is_random(const codec::recipe& r) {
    return r.round == format::rounding::stochastic || scale::is_random(*r.rule);
}

sweep_plan plan_sweep(const sweep_request& request) {
    sweep_plan plan;
    const auto add = [&](const codec::recipe& r) {
        const bool known =
            std::ranges::any_of(plan.cells, [&](const cell& c) { return c.recipe == r; });
        if (!known) plan.cells.push_back(make_cell(r, request.seeds, plan.recipes));
    };
    for (const spelling& s : product(request)) {
        const std::string text = s.text();
        try {
            add(codec::parse_recipe(text));
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::usage) throw;
            // The reason follows the recipe.
            const std::string prefix = fmt::format("recipe '{}': ", text);
            const std::string& message = e.message();
            const bool repeats = message.rfind(prefix, 0) == 0;
            plan.left_out.push_back({text, repeats ? message.substr(prefix.size()) : message});
        }
    }
    for (const codec::recipe& r : request.more) add(r);
    if (plan.cells.empty()) {
        base::refuse("no combination of the sweep is a recipe; the first, {}: {}",
                     plan.left_out.front().recipe, plan.left_out.front().reason);
    }
    plan.baseline = plan.cells.front();
    if (request.baseline.empty()) return plan;
    const codec::recipe baseline = codec::parse_recipe(request.baseline);
    const auto at = std::ranges::find(plan.cells, baseline, &cell::recipe);
    plan.baseline_is_cell = at != plan.cells.end();
    plan.baseline = plan.baseline_is_cell ? *at : make_cell(baseline, request.seeds, plan.recipes);
    return plan;
}

}  // namespace mx::compare

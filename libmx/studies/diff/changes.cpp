// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libmx/analysis/recipe_filter.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/report/members.hpp"

namespace mx::diff {
namespace {

using report::text_of;

using result_key = std::pair<std::string, std::string>;  // tensor, recipe

// The compared results of a file.
struct kept_results {
    std::vector<result_key> keys;  // in the order of the file
    std::map<result_key, std::size_t> places;
    std::set<std::string> recipes;  // all recipes in the file
};

bool takes_tensor(const changes_request& request, const report::record& r) {
    const auto any = [](const std::vector<std::string>& of, const auto& holds) {
        return of.empty() || std::ranges::any_of(of, holds);
    };
    return any(request.globs,
               [&](const std::string& g) { return base::glob_match(g, text_of(r, "tensor")); }) &&
           any(request.roles, [&](const std::string& role) { return role == text_of(r, "role"); });
}

kept_results keep_results(const analysis::results_input& input, const changes_request& request,
                          const analysis::recipe_filter& recipes, std::vector<uncompared>& out) {
    kept_results kept;
    for (std::size_t i = 0; i < input.content.results.size(); ++i) {
        const report::record r = input.content.results[i];
        result_key key{text_of(r, "tensor"), text_of(r, "recipe")};
        if (key.first.empty() || key.second.empty()) {
            throw base::error(base::error_kind::input,
                              fmt::format("result {} has no '{}': it is not from mx", i + 1,
                                          key.first.empty() ? "tensor" : "recipe"),
                              {input.path, {}, {}});
        }
        kept.recipes.insert(key.second);
        if (!recipes.takes(key.second) || !takes_tensor(request, r)) continue;
        if (kept.places.emplace(key, i).second) {
            kept.keys.push_back(std::move(key));
        } else {
            out.push_back({input.path, key.first, key.second,
                           fmt::format("more than once in {}; the first counts", input.path)});
        }
    }
    return kept;
}

// The first few names, for a message of one line.
std::string named(const std::set<std::string>& recipes) {
    constexpr std::size_t most = 4;
    std::vector<std::string> some;
    for (const std::string& r : recipes) {
        if (some.size() == most) {
            some.emplace_back("...");
            break;
        }
        some.push_back(base::printable(r));
    }
    return base::joined(some, ", ");
}

void check_recipes(const analysis::results_input& a, const kept_results& of_a,
                   const analysis::results_input& b, const kept_results& of_b,
                   const analysis::recipe_filter& filter) {
    if (of_a.recipes.empty() || of_b.recipes.empty()) return;
    const bool common = std::ranges::any_of(
        of_a.recipes, [&](const std::string& recipe) { return of_b.recipes.contains(recipe); });
    if (!common) {
        throw base::error(
            base::error_kind::input,
            fmt::format("has no recipe in common with {} ({}; there {}): measure both under the "
                        "same recipes",
                        a.path, named(of_b.recipes), named(of_a.recipes)),
            {b.path, {}, {}});
    }
    std::set<std::string> all = of_a.recipes;
    all.insert(of_b.recipes.begin(), of_b.recipes.end());
    filter.check({all.begin(), all.end()});
}

struct changed_result {
    const report::record& a;
    const report::record& b;
    const result_key& key;
    const changes_request& request;
};
report::value elements_in(const report::record& r) {
    const auto* n = report::member<std::int64_t>(r, "elements");
    return n == nullptr ? report::value() : report::value(*n);
}
// Before the figures.
constexpr std::array change_members = std::to_array<report::declared<changed_result>>({
    {"label_a", "string", "", [](auto& c) { return c.request.labels[0]; }},
    {"label_b", "string", "", [](auto& c) { return c.request.labels[1]; }},
    {"tensor", "@members#tensor", "", [](auto& c) { return c.key.first; }},
    {"role", "string", "empty: not in the second file",
     [](auto& c) { return text_of(c.b, "role"); }},
    {"recipe", "string", "", [](auto& c) { return c.key.second; }},
    {"elements_a", "integer?", "", [](auto& c) { return elements_in(c.a); }},
    {"elements_b", "integer?", "", [](auto& c) { return elements_in(c.b); }},
});

// How much a result changed. Undefined in one file only comes before all others, except an SQNR
// that is undefined because nothing is lost any more.
struct change_size {
    double sqnr = 0, rate = 0;
    bool any = false;
    auto order() const { return std::pair(sqnr, rate); }
};

report::record change_of(const report::record& a, const report::record& b, const result_key& key,
                         const changes_request& request, change_size& size) {
    report::record r = report::written(change_members, {a, b, key, request});
    for (const std::string_view figure : changing_figures) {
        const std::optional<double> before = report::number_of(a, figure);
        const std::optional<double> after = report::number_of(b, figure);
        const std::string name(figure);
        r.emplace_back(name + "_a", report::to_value(before));
        r.emplace_back(name + "_b", report::to_value(after));
        r.emplace_back(name + "_change", before && after ? report::finite_or_null(*after - *before)
                                                         : report::value());
        if (before == after) continue;
        size.any = true;
        const double by =
            before && after ? std::abs(*after - *before) : std::numeric_limits<double>::infinity();
        if (figure == "sqnr_db") {
            size.sqnr = report::number_of(b, "rmse") == 0 ? 0 : by;
        } else if (figure.ends_with("_rate")) {
            size.rate = std::max(size.rate, by);
        }
    }
    return r;
}

void add_to_summary(recipe_changes& to, const report::record& r, const change_size& size) {
    ++to.compared;
    to.changed += size.any ? 1u : 0u;
    const bool before = report::number_of(r, "sqnr_db_a").has_value();
    to.undefined += before != report::number_of(r, "sqnr_db_b").has_value() ? 1u : 0u;
    const double by = report::number_of(r, "sqnr_db_change").value_or(0);
    if (by < 0) {
        ++to.fell;
        if (-by > to.largest_fall) {
            to.largest_fall = -by;
            to.fallen = text_of(r, "tensor");
        }
    } else if (by > 0) {
        ++to.rose;
        if (by > to.largest_rise) {
            to.largest_rise = by;
            to.risen = text_of(r, "tensor");
        }
    }
}

// The records of a tensor, with the largest change among them.
struct tensor_changes {
    std::vector<report::record> records;
    std::pair<double, double> largest{-1, -1};
};

}  // namespace

void declare_changes(report::member_list& to) {
    to.add(change_members);
    for (const std::string_view figure : changing_figures) {
        const std::string_view type = to.keep(fmt::format("@members#{}", figure));
        to.add({to.keep(fmt::format("{}_a", figure)), type, ""});
        to.add({to.keep(fmt::format("{}_b", figure)), type, ""});
        to.add({to.keep(fmt::format("{}_change", figure)), "number?", ""});
    }
}

std::vector<analysis::results_input> open_for_changes(const std::vector<std::string>& paths,
                                                      const analysis::results_opener& open) {
    report::read_options options;
    options.keep = [](std::string_view name) {
        return name == "tensor" || name == "recipe" || name == "role" || name == "elements" ||
               std::ranges::find(changing_figures, name) != changing_figures.end();
    };
    return analysis::open_analyses(paths, "diff", options, {}, open);
}

changes_result compare_results(const analysis::results_input& a, const analysis::results_input& b,
                               const changes_request& request) {
    std::vector<std::string_view> known;
    for (const engine::role_row& r : engine::roles()) known.push_back(r.name);
    for (const std::string& role : request.roles) {
        if (std::ranges::find(known, role) != known.end()) continue;
        base::refuse("--role: " + base::unknown("role", role, known));
    }
    changes_result result;
    const analysis::recipe_filter recipes(request.recipes);
    const kept_results of_a = keep_results(a, request, recipes, result.left_out);
    const kept_results of_b = keep_results(b, request, recipes, result.left_out);
    check_recipes(a, of_a, b, of_b, recipes);

    std::vector<tensor_changes> tensors;
    std::map<std::string, std::size_t> tensor_places, recipe_places;
    for (const result_key& key : of_a.keys) {
        const auto other = of_b.places.find(key);
        if (other == of_b.places.end()) {
            result.left_out.push_back({a.path, key.first, key.second, "only in " + a.path});
            continue;
        }
        change_size size;
        report::record r = change_of(a.content.results[of_a.places.at(key)],
                                     b.content.results[other->second], key, request, size);
        const auto [place, is_new] = recipe_places.emplace(key.second, result.summary.size());
        if (is_new) {
            result.summary.emplace_back();
            result.summary.back().recipe = key.second;
        }
        add_to_summary(result.summary[place->second], r, size);
        const auto [at, added] = tensor_places.emplace(key.first, tensors.size());
        if (added) tensors.emplace_back();
        tensor_changes& t = tensors[at->second];
        t.records.push_back(std::move(r));
        t.largest = std::max(t.largest, size.order());
    }
    for (const result_key& key : of_b.keys) {
        if (of_a.places.contains(key)) continue;
        result.left_out.push_back({b.path, key.first, key.second, "only in " + b.path});
    }
    std::ranges::stable_sort(tensors, std::greater{}, &tensor_changes::largest);
    for (const tensor_changes& t : tensors) {
        for (const report::record& r : t.records) result.results.push_back(r);
    }
    result.identical =
        !tensors.empty() &&
        std::ranges::all_of(result.summary, [](const recipe_changes& s) { return s.changed == 0; });
    return result;
}

}  // namespace mx::diff

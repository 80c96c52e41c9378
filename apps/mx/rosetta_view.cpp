// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/rosetta_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "apps/mx/values.hpp"
#include "libmx/pipeline/packed_file.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {
namespace {

using pipeline::pair_index;
using report::cell;

// "torchao even", "microxcaling floor away": what tells recipes of one element and block apart.
std::string label_of(const quantize::recipe& r) {
    const auto& rounding = format::row_of(r.round);
    std::string label = fmt::format("{} {}", r.by->name, r.rule->name);
    if (r.round != format::rounding::rtne) label += fmt::format(" {}", rounding.name);
    return label;
}

// Labels, or canonical recipes where labels are not enough.
std::vector<std::string> labels_of(const std::vector<quantize::recipe>& recipes) {
    std::vector<std::string> labels;
    for (const quantize::recipe& r : recipes) labels.push_back(label_of(r));
    if (std::set<std::string>(labels.begin(), labels.end()).size() == labels.size()) return labels;
    labels.clear();
    for (const quantize::recipe& r : recipes) labels.push_back(quantize::to_string(r));
    return labels;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
    return out;
}

const pipeline::rosetta_pair& pair_of(const pipeline::rosetta_counts& c, std::size_t a,
                                      std::size_t b, std::size_t n) {
    return c.pairs[pair_index(std::min(a, b), std::max(a, b), n)];
}

// Recipes that gave the same bytes everywhere, each class by its first member.
struct classes {
    std::vector<std::size_t> first;
    std::vector<std::vector<std::string>> labels;
};

classes classes_of(const pipeline::rosetta_counts& c, const std::vector<std::string>& labels) {
    classes found;
    for (std::size_t r = 0; r < labels.size(); ++r) {
        std::size_t k = 0;
        for (; k < found.first.size(); ++k) {
            const auto& p = pair_of(c, found.first[k], r, labels.size());
            if (p.scales_differ == 0 && p.codes_differ == 0) break;
        }
        if (k == found.first.size()) {
            found.first.push_back(r);
            found.labels.emplace_back();
        }
        found.labels[k].push_back(labels[r]);
    }
    return found;
}

// Columns beside each other that fit a page; a matrix with more is cut into several.
constexpr std::size_t columns_per_table = 12;

// A matrix of classes; `at(row, column)` is null where nothing is to be shown.
template <typename At>
void add_matrix(std::vector<report::section>& sections, const std::string& heading, cell kind,
                int digits, std::size_t n, bool triangle, const At& at,
                std::vector<std::string> notes) {
    for (std::size_t from = 0; from < n; from += columns_per_table) {
        const std::size_t to = std::min(n, from + columns_per_table);
        report::section s;
        s.heading = from == 0 ? heading : fmt::format("{}, from column {} on", heading, from + 1);
        s.columns.push_back({"row", "", cell::integer});
        for (std::size_t c = from; c < to; ++c) {
            s.columns.push_back({fmt::format("c{}", c), fmt::format("{}", c + 1), kind, digits});
        }
        for (std::size_t r = triangle ? from + 1 : 0; r < n; ++r) {
            report::record row{{"row", integer(r + 1)}};
            for (std::size_t c = from; c < to; ++c) {
                if (r == c || (triangle && c > r)) continue;
                row.emplace_back(fmt::format("c{}", c), at(r, c));
            }
            s.rows.push_back(std::move(row));
        }
        if (s.rows.empty()) continue;
        if (to == n) s.notes = std::move(notes);
        sections.push_back(std::move(s));
    }
}

report::value share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return undefined();
    return real(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::vector<report::section> comparison_sections(const pipeline::rosetta_result& result,
                                                 const std::vector<quantize::recipe>& recipes) {
    const pipeline::rosetta_counts& c = result.total;
    const std::size_t n = recipes.size();
    const classes k = classes_of(c, labels_of(recipes));
    const auto names = [&] {
        std::vector<std::string> all;
        for (const quantize::recipe& r : recipes) all.push_back(quantize::to_string(r));
        return all;
    }();
    report::section who;
    who.heading = fmt::format("{} recipes of {} in blocks of {}x{}: {} kinds of bytes in {} blocks",
                              n, recipes.front().element->name, recipes.front().block.rows,
                              recipes.front().block.cols, k.first.size(),
                              report::grouped(static_cast<std::int64_t>(c.blocks)));
    who.columns = {{"row", "", cell::integer},
                   {"rmse", "R-MSE", cell::significant, 4},
                   {"recipes", "dialect, rule and rounding of the recipes that agree"}};
    for (std::size_t i = 0; i < k.first.size(); ++i) {
        report::value rmse = undefined();
        if (n > 1) {
            const std::size_t r = k.first[i];
            const std::size_t other = r == 0 ? 1 : 0;
            const report::record p =
                pipeline::pair_record(c, std::min(r, other), std::max(r, other), names);
            rmse = *report::find(p, r < other ? "rmse_a" : "rmse_b");
        }
        who.rows.push_back(
            {{"row", integer(i + 1)}, {"rmse", rmse}, {"recipes", joined(k.labels[i])}});
    }
    who.notes = {
        "R-MSE over the elements to which this recipe and the first one (the first: and "
        "the second) give a finite scale."};
    std::vector<report::section> sections{who};
    if (k.first.size() < 2) {
        sections.front().notes.push_back("They agree on every scale and every code.");
        return sections;
    }
    const auto pair = [&](std::size_t a, std::size_t b) -> const pipeline::rosetta_pair& {
        return pair_of(c, k.first[a], k.first[b], n);
    };
    add_matrix(
        sections, "Blocks whose scales differ, %", cell::share, 2, k.first.size(), true,
        [&](std::size_t a, std::size_t b) { return share(pair(a, b).scales_differ, c.blocks); },
        {});
    add_matrix(
        sections, "Elements whose codes differ, %", cell::share, 2, k.first.size(), true,
        [&](std::size_t a, std::size_t b) { return share(pair(a, b).codes_differ, c.elements); },
        {});
    add_matrix(sections,
               "R-MSE of the row's codes read with the column's scales, over the row's own",
               cell::significant, 3, k.first.size(), false,
               [&](std::size_t a, std::size_t b) {
                   const std::size_t ra = k.first[a];
                   const std::size_t rb = k.first[b];
                   const report::record p =
                       pipeline::pair_record(c, std::min(ra, rb), std::max(ra, rb), names);
                   return *report::find(p, ra < rb ? "cost_a_read_by_b" : "cost_b_read_by_a");
               },
               {"1: no mismatch. Every tensor and pair is in --json and --csv."});
    return sections;
}

report::section origin_section(const pipeline::origin_result& result) {
    std::vector<quantize::recipe> recipes;
    for (const pipeline::origin_row& row : result.rows) recipes.push_back(row.recipe);
    const std::vector<std::string> labels = labels_of(recipes);
    // Recipes with the same evidence share a line, the likely ones first.
    struct line {
        std::vector<std::string> labels;
        const pipeline::origin_row* row;
    };
    std::map<std::array<std::uint64_t, 4>, line> lines;
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
        const pipeline::origin_row& row = result.rows[i];
        line& l = lines[{row.excluded, row.scales_differ, row.codes_differ, row.first_excluded}];
        l.labels.push_back(labels[i]);
        l.row = &row;
    }
    report::section s;
    s.heading = fmt::format("{}: {} in blocks of {}", result.tensor.name,
                            result.tensor.element->name, result.tensor.block);
    s.columns = {{"recipes", "dialect, rule and rounding"},
                 {"excluded", "blocks that\nexclude it", cell::integer},
                 {"rate", "%", cell::share},
                 {"first", "first\nsuch block", cell::integer}};
    if (result.compared) {
        s.columns.push_back({"scales", "scales that\ndiffer", cell::integer});
        s.columns.push_back({"codes", "codes that\ndiffer", cell::integer});
    }
    std::vector<std::string> possible, identical;
    for (const auto& [key, l] : lines) {
        const pipeline::origin_row& row = *l.row;
        report::record r{{"recipes", joined(l.labels)},
                         {"excluded", integer(row.excluded)},
                         {"rate", share(row.excluded, result.blocks)},
                         {"first", row.excluded == 0 ? undefined() : integer(row.first_excluded)}};
        if (result.compared) {
            r.emplace_back("scales", integer(row.scales_differ));
            r.emplace_back("codes", integer(row.codes_differ));
        }
        s.rows.push_back(std::move(r));
        if (row.excluded == 0) possible.insert(possible.end(), l.labels.begin(), l.labels.end());
        if (result.compared && row.scales_differ == 0 && row.codes_differ == 0) {
            identical.insert(identical.end(), l.labels.begin(), l.labels.end());
        }
    }
    const auto number = [](std::uint64_t n) {
        return report::grouped(static_cast<std::int64_t>(n));
    };
    s.notes.push_back(fmt::format(
        "{} blocks, {} of zeros only, {} with scale 255, {} not judged for NaN codes. A block "
        "excludes a recipe when its scale and largest code cannot come of any maximum.",
        number(result.blocks), number(result.zero_blocks), number(result.nan_scales),
        number(result.unjudged)));
    s.notes.push_back(possible.empty() ? "None of these recipes can have produced every block."
                                       : "Every block can have come of: " + joined(possible) + ".");
    if (result.compared) {
        s.notes.push_back(
            identical.empty()
                ? "None of these recipes gives these bytes for the original."
                : "These give exactly these bytes for the original: " + joined(identical) + ".");
    }
    return s;
}

}  // namespace mx::app

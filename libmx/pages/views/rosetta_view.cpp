// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/rosetta_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "libmx/base/joined.hpp"
#include "libmx/codec/best_scales.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

using report::share;

using analysis::pair_index;
using report::cell;

// "torchao even", "microxcaling floor away": what distinguishes recipes of one element and block.
std::string label_of(const codec::recipe& r) {
    const auto& rounding = format::row_of(r.round);
    std::string label = fmt::format("{} {}", r.by->name, r.rule->name);
    if (r.round != format::rounding::rtne) label += fmt::format(" {}", rounding.name);
    return label;
}

// Labels, or canonical recipes where labels are not enough.
std::vector<std::string> labels_of(const std::vector<codec::recipe>& recipes) {
    std::vector<std::string> labels;
    for (const codec::recipe& r : recipes) labels.push_back(label_of(r));
    if (std::set<std::string>(labels.begin(), labels.end()).size() == labels.size()) return labels;
    labels.clear();
    for (const codec::recipe& r : recipes) labels.push_back(codec::to_string(r));
    return labels;
}

const rosetta::rosetta_pair& pair_of(const rosetta::rosetta_counts& c, std::size_t a, std::size_t b,
                                     std::size_t n) {
    return c.pairs[pair_index(std::min(a, b), std::max(a, b), n)];
}

// Recipes with the same bytes everywhere, each class by its first member, and the first class with
// the same scales and the first with the same values.
struct classes {
    std::vector<std::size_t> first;
    std::vector<std::vector<std::string>> labels;
    std::vector<std::size_t> scales_of, values_of;
};

classes classes_of(const rosetta::rosetta_counts& c, const std::vector<std::string>& labels) {
    const std::size_t n = labels.size();
    classes found;
    for (std::size_t r = 0; r < n; ++r) {
        std::size_t k = 0;
        for (; k < found.first.size(); ++k) {
            const auto& p = pair_of(c, found.first[k], r, n);
            if (p.scales_differ == 0 && p.codes_differ == 0) break;
        }
        if (k == found.first.size()) {
            const auto same = [&](std::uint64_t rosetta::rosetta_pair::*differ) {
                std::size_t other = 0;
                while (other < k && pair_of(c, found.first[other], r, n).*differ != 0) ++other;
                return other;
            };
            found.scales_of.push_back(same(&rosetta::rosetta_pair::scales_differ));
            found.values_of.push_back(same(&rosetta::rosetta_pair::values_differ));
            found.first.push_back(r);
            found.labels.emplace_back();
        }
        found.labels[k].push_back(labels[r]);
    }
    return found;
}

// Number of columns that fit a page; a wider matrix is split.
constexpr std::size_t columns_per_table = 12;

// A matrix of the classes `shown`; `at(row, column)` is the entry of a pair.
template <typename At>
void add_matrix(std::vector<report::section>& sections, const std::string& heading, cell kind,
                int digits, const std::vector<std::size_t>& shown, bool triangle, const At& at,
                report::notes notes) {
    const std::size_t n = shown.size();
    const std::size_t columns = triangle ? n - 1 : n;
    for (std::size_t from = 0; from < columns; from += columns_per_table) {
        const std::size_t to = std::min(columns, from + columns_per_table);
        report::section s{
            .heading = from == 0 ? heading
                                 : fmt::format("{}, from column {} on", heading, shown[from] + 1)};
        s.columns.push_back(column_of("row"));
        for (std::size_t c = from; c < to; ++c) {
            s.columns.push_back(
                {fmt::format("c{}", c), fmt::format("{}", shown[c] + 1), kind, digits});
        }
        for (std::size_t r = triangle ? from + 1 : 0; r < n; ++r) {
            report::record row{{"row", integer(shown[r] + 1)}};
            for (std::size_t c = from; c < to; ++c) {
                if (r == c || (triangle && c > r)) continue;
                row.emplace_back(fmt::format("c{}", c), at(shown[r], shown[c]));
            }
            s.rows.push_back(std::move(row));
        }
        sections.push_back(std::move(s));
    }
    if (columns > 0) sections.back().notes = std::move(notes);
}

}  // namespace

std::vector<report::section> comparison_sections(const rosetta::rosetta_result& result,
                                                 const std::vector<codec::recipe>& recipes) {
    const rosetta::rosetta_counts& c = result.total;
    const std::size_t n = recipes.size();
    const classes k = classes_of(c, labels_of(recipes));
    const auto names = [&] {
        std::vector<std::string> all;
        for (const codec::recipe& r : recipes) all.push_back(codec::to_string(r));
        return all;
    }();
    std::size_t sets = 0;
    for (std::size_t i = 0; i < k.first.size(); ++i) sets += k.values_of[i] == i ? 1u : 0u;
    report::section who{
        .heading = fmt::format("{} recipes of {} in blocks of {}x{}: {} of values, {} of {} blocks",
                               n, recipes.front().element->name, recipes.front().block.rows,
                               recipes.front().block.cols, report::plural(sets, "distinct set"),
                               report::plural(k.first.size(), "encoding"),
                               report::grouped(static_cast<std::int64_t>(c.blocks))),
        .columns = columns_of(
            {"row", column_of("scales", "scales\nof", cell::integer),
             column_of("values", "values\nof", cell::integer), "rmse",
             column_of("recipes", "dialect, rule and rounding of the recipes that agree")})};
    // The entry of every block under its best scale, if that is one of the recipes.
    const std::size_t best = static_cast<std::size_t>(
        std::ranges::find_if(
            recipes,
            [](const codec::recipe& r) { return codec::with_best_scales(r) == std::optional(r); }) -
        recipes.begin());
    const bool regret = best < n && n > 1;
    if (regret) {
        who.columns.insert(who.columns.begin() + 4, column_of("regret_share"));
    }
    const auto regret_of = [&](std::size_t r) -> report::value {
        if (r == best) return 0.0;
        const report::record p =
            rosetta::pair_record(c, std::min(r, best), std::max(r, best), names);
        const auto own = report::number_of(p, r < best ? "rmse_a" : "rmse_b");
        const auto least = report::number_of(p, r < best ? "rmse_b" : "rmse_a");
        if (!own || !least || *own == 0) return {};
        return 1 - (*least / *own) * (*least / *own);
    };
    for (std::size_t i = 0; i < k.first.size(); ++i) {
        report::value rmse = undefined();
        if (n > 1) {
            const std::size_t r = k.first[i];
            const std::size_t other = r == 0 ? 1 : 0;
            const report::record p =
                rosetta::pair_record(c, std::min(r, other), std::max(r, other), names);
            rmse = *report::find(p, r < other ? "rmse_a" : "rmse_b");
        }
        if (regret) {
            who.add(i + 1, k.scales_of[i] + 1, k.values_of[i] + 1, rmse, regret_of(k.first[i]),
                    base::joined(k.labels[i], ", "));
        } else {
            who.add(i + 1, k.scales_of[i] + 1, k.values_of[i] + 1, rmse,
                    base::joined(k.labels[i], ", "));
        }
    }
    who.notes = {"R-MSE: over elements with a finite scale in both recipes compared."};
    if (regret) {
        who.notes.push_back(
            "Regret: the share of the squared error that the best scale of every block (ocp "
            "search) would save.");
    }
    std::vector<report::section> sections{who};
    if (k.first.size() < 2) {
        sections.front().notes.push_back("They agree on every scale and every code.");
        return sections;
    }
    const auto pair = [&](std::size_t a, std::size_t b) -> const rosetta::rosetta_pair& {
        return pair_of(c, k.first[a], k.first[b], n);
    };
    std::vector<std::size_t> all_classes, scale_classes;
    for (std::size_t i = 0; i < k.first.size(); ++i) {
        all_classes.push_back(i);
        if (k.scales_of[i] == i) scale_classes.push_back(i);
    }
    add_matrix(
        sections, "Blocks whose scales differ, %", cell::share, 2, scale_classes, true,
        [&](std::size_t a, std::size_t b) { return share(pair(a, b).scales_differ, c.blocks); },
        {});
    add_matrix(
        sections, "Elements whose codes differ, %", cell::share, 2, all_classes, true,
        [&](std::size_t a, std::size_t b) { return share(pair(a, b).codes_differ, c.elements); },
        {"+0 and -0 are different codes of one value."});
    add_matrix(sections,
               "R-MSE of the row's codes read with the column's scales, over the row's own",
               cell::significant, 3, scale_classes, false,
               [&](std::size_t a, std::size_t b) {
                   const std::size_t ra = k.first[a];
                   const std::size_t rb = k.first[b];
                   const report::record p =
                       rosetta::pair_record(c, std::min(ra, rb), std::max(ra, rb), names);
                   return *report::find(p, ra < rb ? "cost_a_read_by_b" : "cost_b_read_by_a");
               },
               {"1: no mismatch. Every tensor and pair is in --json and --csv."});
    return sections;
}

namespace {

// Recipes with the same evidence over several tensors.
struct verdict_line {
    std::vector<std::string> labels;
    std::vector<const codec::recipe*> recipes;
    std::uint64_t excluded = 0, scales_differ = 0, codes_differ = 0;
    std::uint64_t tensor_scales_differ = 0;
    std::string first;     // tensor and block
    std::string unlikely;  // "at least 54 blocks with maximum 3; there are 0"; empty: not rare
    bool same_evidence(const verdict_line& o) const {
        return excluded == o.excluded && scales_differ == o.scales_differ &&
               codes_differ == o.codes_differ && first == o.first && unlikely == o.unlikely &&
               tensor_scales_differ == o.tensor_scales_differ;
    }
    bool same_blocks() const { return scales_differ == 0 && codes_differ == 0; }
    const char* word(bool compared) const {
        if (compared && same_blocks()) return tensor_scales_differ == 0 ? "exact" : "same blocks";
        return excluded > 0 ? "excluded" : unlikely.empty() ? "fits" : "unlikely";
    }
};

// How often largest codes occur in all tensors together, of one recipe.
void add(std::vector<rosetta::top_frequency>& to, const std::vector<rosetta::top_frequency>& tops) {
    if (to.empty()) to.resize(tops.size());
    for (std::size_t i = 0; i < tops.size(); ++i) {
        to[i].code = tops[i].code;
        to[i].least += tops[i].least;
        to[i].found += tops[i].found;
    }
}

std::string rarity(const format::element_format& f,
                   const std::vector<rosetta::top_frequency>& tops) {
    const rosetta::top_frequency* rare = rosetta::evidence_against(tops);
    if (rare == nullptr) return {};
    return fmt::format("at least {} blocks with maximum {}; there are {}",
                       report::grouped(report::whole(rare->least)), rosetta::value_of_top(f, *rare),
                       report::grouped(static_cast<std::int64_t>(rare->found)));
}

// Tensors of one element format, block shape and list of recipes.
std::string kind_of(const rosetta::origin_result& r) {
    std::string key = fmt::format("{} in blocks of {}", r.tensor.element->name, r.tensor.block);
    if (r.tensor.scale_format->is_number()) {
        key += fmt::format(" under {} scales", r.tensor.scale_format->name);
    }
    return r.tensor.has_recipe ? key + ", written as " + codec::to_string(r.tensor.recipe) : key;
}

// Whether exchanging the codes of each byte fits better, under the recipe that fits best.
std::string order_note(const std::vector<const rosetta::origin_result*>& results) {
    std::uint64_t least = ~std::uint64_t{0}, swapped = least;
    for (std::size_t i = 0; i < results.front()->rows.size(); ++i) {
        std::uint64_t as_laid_out = 0, other_way = 0;
        for (const rosetta::origin_result* r : results) {
            if (!r->nibbles) return {};
            as_laid_out += r->rows[i].codes_differ;
            other_way += r->rows[i].codes_differ_swapped;
        }
        least = std::min(least, as_laid_out);
        swapped = std::min(swapped, other_way);
    }
    if (swapped >= least) return {};
    return fmt::format(
        "The order of nibbles is another one: with the first code of a byte in its high half, {} "
        "codes differ instead of {}.",
        report::grouped(static_cast<std::int64_t>(swapped)),
        report::grouped(static_cast<std::int64_t>(least)));
}

// The largest block scale of each tensor: whether the tensor scale leaves unused range, and how
// much.
std::string largest_scales(const std::vector<const rosetta::origin_result*>& results) {
    int least = 256, most = -1;
    for (const rosetta::origin_result* r : results) {
        if (r->largest_scale < 0 || !r->tensor.scale_format->is_number()) continue;
        least = std::min(least, r->largest_scale);
        most = std::max(most, r->largest_scale);
    }
    if (most < 0) return {};
    const auto value = [&](int code) {
        return format::decode_scale(*results.front()->tensor.scale_format,
                                    static_cast<std::uint32_t>(code));
    };
    return least == most ? fmt::format("The largest block scale is {}.", value(most))
                         : fmt::format("The largest block scale of a tensor is {} to {}.",
                                       value(least), value(most));
}

// "floor, even"; scale rules of the lines with this word that are not in `seen`, to which they are
// added.
std::string rules_of(const std::vector<verdict_line>& lines, std::string_view word,
                     std::set<std::string>& seen) {
    std::vector<std::string> rules;
    for (const verdict_line& l : lines) {
        if (l.word(false) != word) continue;
        for (const codec::recipe* r : l.recipes) {
            if (seen.emplace(r->rule->name).second) rules.emplace_back(r->rule->name);
        }
    }
    return base::joined(rules, ", ");
}

// Who made the tensors, in one sentence; with the original from their bytes.
std::string origin_sentence(const std::vector<verdict_line>& lines,
                            const std::vector<const rosetta::origin_result*>& results) {
    const bool compared = results.front()->compared;
    std::vector<std::string> exact, same_blocks;
    std::set<std::string_view> dialects;
    std::size_t fits = 0;
    const verdict_line* nearest = &lines.front();
    for (const verdict_line& l : lines) {
        const std::string_view word = l.word(compared);
        auto& to = word == "exact" ? exact : same_blocks;
        if (word == "exact" || word == "same blocks") {
            to.insert(to.end(), l.labels.begin(), l.labels.end());
        }
        if (std::tie(l.scales_differ, l.codes_differ) <
            std::tie(nearest->scales_differ, nearest->codes_differ)) {
            nearest = &l;
        }
        if (word != "fits") continue;
        fits += l.recipes.size();
        for (const codec::recipe* r : l.recipes) dialects.insert(r->by->name);
    }
    const auto number = [](std::uint64_t n) {
        return report::grouped(static_cast<std::int64_t>(n));
    };
    if (!exact.empty()) return "exactly the bytes of " + base::joined(exact, ", ") + ".";
    if (!same_blocks.empty()) {
        return "the bytes of " + base::joined(same_blocks, ", ") +
               " under the file's tensor scales, some of which are not their own.";
    }
    if (compared) {
        std::string text = fmt::format(
            "none of these recipes gives these bytes; the nearest is {}: {} scales and {} codes "
            "differ.",
            nearest->labels.front(), number(nearest->scales_differ), number(nearest->codes_differ));
        const auto swizzled = std::ranges::count_if(
            results, [](const rosetta::origin_result* r) { return r->tensor.fits_swizzled; });
        if (swizzled > 0) {
            text +=
                fmt::format(" The scales of {} fit the 128x4 order, too: try it with --swizzled.",
                            report::plural(swizzled, "tensor"));
        }
        return text;
    }
    std::set<std::string> seen;
    const std::string fitting = rules_of(lines, "fits", seen);
    std::string text =
        fitting.empty()
            ? "none of these recipes fits every block without being unlikely"
            : fmt::format("every block fits {} ({} of {})", fitting, report::plural(fits, "recipe"),
                          report::plural(dialects.size(), "dialect"));
    for (const char* word : {"unlikely", "excluded"}) {
        const std::string rules = rules_of(lines, word, seen);
        if (!rules.empty()) text += fmt::format("; {}: {}", word, rules);
    }
    return text + ".";
}

// The table of one kind; its sentence goes to `verdict`.
report::section origin_section(const std::string& kind,
                               const std::vector<const rosetta::origin_result*>& results,
                               report::section& verdict) {
    const rosetta::origin_result& any = *results.front();
    std::vector<codec::recipe> recipes;
    for (const rosetta::origin_row& row : any.rows) recipes.push_back(row.recipe);
    const std::vector<std::string> labels = labels_of(recipes);
    std::uint64_t blocks = 0, zero = 0, nan_scales = 0, unjudged = 0;
    for (const rosetta::origin_result* r : results) {
        blocks += r->blocks;
        zero += r->zero_blocks;
        nan_scales += r->nan_scales;
        unjudged += r->unjudged;
    }
    // Recipes with the same evidence share a line, likely ones first.
    std::vector<verdict_line> lines;
    for (std::size_t i = 0; i < recipes.size(); ++i) {
        verdict_line l;
        l.labels.push_back(labels[i]);
        l.recipes.push_back(&recipes[i]);
        std::vector<rosetta::top_frequency> tops;
        for (const rosetta::origin_result* r : results) {
            const rosetta::origin_row& row = r->rows[i];
            add(tops, row.tops);
            if (l.excluded == 0 && row.excluded != 0) {
                l.first = fmt::format("{} block {}", r->tensor.name, row.first_excluded);
            }
            l.excluded += row.excluded;
            l.scales_differ += row.scales_differ;
            l.codes_differ += row.codes_differ;
            l.tensor_scales_differ += row.tensor_scale_differs ? 1u : 0u;
        }
        if (l.excluded == 0) l.unlikely = rarity(*any.tensor.element, tops);
        const auto twin = std::ranges::find_if(
            lines, [&](const verdict_line& other) { return other.same_evidence(l); });
        if (twin == lines.end()) {
            lines.push_back(std::move(l));
        } else {
            twin->labels.push_back(labels[i]);
            twin->recipes.push_back(&recipes[i]);
        }
    }
    std::ranges::stable_sort(lines, [](const auto& a, const auto& b) {
        const bool rare_a = !a.unlikely.empty(), rare_b = !b.unlikely.empty();
        return std::tie(a.excluded, rare_a, a.scales_differ, a.codes_differ,
                        a.tensor_scales_differ) < std::tie(b.excluded, rare_b, b.scales_differ,
                                                           b.codes_differ, b.tensor_scales_differ);
    });

    const std::string what =
        fmt::format("{} of {}", report::plural(results.size(), "tensor"), kind);
    report::section s{
        .heading = what,
        .columns = columns_of({column_of("recipes", "dialect, rule and rounding"), "verdict",
                               column_of("excluded", "excluding\nblocks", cell::integer),
                               column_of("rate", "%", cell::share)})};
    if (any.compared) {
        s.columns.push_back({"scales", "scales\ndiffer", cell::integer});
        s.columns.push_back({"codes", "codes\ndiffer", cell::integer});
    }
    if (any.compared &&
        std::ranges::any_of(results, [](const auto* r) { return r->tensor.outer.has_value(); })) {
        s.columns.push_back({"tensor_scales", "other\ntensor\nscale", cell::integer});
    }
    if (lines.back().excluded > 0) s.columns.push_back({"first", "the first", cell::name});
    for (const verdict_line& l : lines) {
        report::record r{{"recipes", base::joined(l.labels, ", ")},
                         {"verdict", text(l.word(any.compared))},
                         {"excluded", integer(l.excluded)},
                         {"rate", share(l.excluded, blocks)},
                         {"first", text(l.first)}};
        if (any.compared) {
            r.emplace_back("scales", integer(l.scales_differ));
            r.emplace_back("codes", integer(l.codes_differ));
            r.emplace_back("tensor_scales", integer(l.tensor_scales_differ));
        }
        s.rows.push_back(std::move(r));
    }
    verdict.notes.push_back(
        report::item(fmt::format("{}: {}", what, origin_sentence(lines, results))));
    if (const std::string order = order_note(results); !order.empty()) {
        verdict.notes.push_back(report::item(order));
    }
    const auto number = [](std::uint64_t n) {
        return report::grouped(static_cast<std::int64_t>(n));
    };
    s.notes.push_back(fmt::format(
        "{} blocks, {} of zeros only, {} with a NaN scale, {} not judged for NaN codes. A block "
        "excludes a recipe if no maximum gives its scale and its largest code.",
        number(blocks), number(zero), number(nan_scales), number(unjudged)));
    std::vector<std::pair<std::string, std::vector<std::string>>> rare;
    for (const verdict_line& l : lines) {
        if (std::string_view(l.word(any.compared)) != "unlikely") continue;
        auto at = std::ranges::find(rare, l.unlikely, [](const auto& r) { return r.first; });
        if (at == rare.end()) at = rare.insert(rare.end(), {l.unlikely, {}});
        at->second.insert(at->second.end(), l.labels.begin(), l.labels.end());
    }
    for (const auto& [evidence, labels_of_it] : rare) {
        s.notes.push_back(
            fmt::format("Unlikely: {} would give {}.", base::joined(labels_of_it, ", "), evidence));
    }
    if (!rare.empty()) {
        s.notes.push_back(
            std::string(
                "So few have a probability below 1e-6, even with two thirds of that number") +
            (any.tensor.scale_format->is_number()
                 ? ", which is one block in 16: four-over-six takes each of its scales more often."
                 : ". It follows from the neighbouring codes, for block maxima whose logarithms "
                   "have a density with a single peak in every tensor."));
    }
    if (const std::string largest = largest_scales(results); !largest.empty()) {
        s.notes.push_back(largest);
    }
    return s;
}

}  // namespace

std::vector<report::section> origin_sections(const std::vector<rosetta::origin_result>& results) {
    std::vector<std::pair<std::string, std::vector<const rosetta::origin_result*>>> kinds;
    for (const rosetta::origin_result& r : results) {
        const std::string kind = kind_of(r);
        const auto known =
            std::ranges::find_if(kinds, [&](const auto& k) { return k.first == kind; });
        if (known == kinds.end()) {
            kinds.push_back({kind, {&r}});
        } else {
            known->second.push_back(&r);
        }
    }
    std::vector<report::section> sections{{.heading = "Verdict"}};
    for (const auto& [kind, of_kind] : kinds) {
        sections.push_back(origin_section(kind, of_kind, sections.front()));
    }
    return sections;
}

}  // namespace mx::pages

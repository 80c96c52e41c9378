// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/eval_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::record;
using report::section;
using report::significant_text;
using report::text_of;

constexpr std::size_t most_parts = 10;          // rows of parts and layers
constexpr std::size_t most_changed_tokens = 3;  // rows of a recipe
constexpr double small_loss = 0.01;             // of perplexity

double figure_of(const record& r, std::string_view name) {
    return report::number_of(r, name).value_or(NAN);
}

// "0.0109 nats of divergence a token, perplexity +1.42 %".
std::string cost_of(const record& r) {
    const double change = 100 * (figure_of(r, "perplexity_ratio") - 1);
    return fmt::format("{} nats of divergence a token, perplexity {}{} %",
                       significant_text(figure_of(r, "kld_mean"), 3), change > 0 ? "+" : "",
                       significant_text(change, 3));
}

// The recipes whose perplexity is within 1 % of the model's by two standard errors, and the one of
// them with the fewest bits.
report::note within_a_percent(const std::vector<const record*>& order) {
    std::vector<std::string> close;
    const record* smallest = nullptr;
    for (const record* r : order) {
        const double change = figure_of(*r, "delta_mean");
        if (!(change + 2 * figure_of(*r, "delta_stderr") < std::log1p(small_loss))) continue;
        close.push_back(text_of(*r, "recipe"));
        if (smallest == nullptr ||
            figure_of(*r, "bits_per_weight") < figure_of(*smallest, "bits_per_weight")) {
            smallest = r;
        }
    }
    if (close.empty()) {
        return report::item(
            "None is within 1 % of the model's perplexity by two standard errors of these "
            "tokens.");
    }
    const std::string bits = significant_text(figure_of(*smallest, "bits_per_weight"), 3);
    return report::item(fmt::format(
        "Within 1 % of the model's perplexity, by two standard errors: {}{}", base::listed(close),
        close.size() == 1 ? fmt::format(", {} bits a parameter.", bits)
                          : fmt::format("; {} takes the fewest bits, {} a parameter.",
                                        text_of(*smallest, "recipe"), bits)));
}

// What the least and the largest divergence are; `order`: by divergence.
report::note least_and_most(const std::vector<const record*>& order) {
    const record& least = *order.front();
    const record& most = *order.back();
    if (order.size() == 1)
        return report::item(fmt::format("{}: {}.", text_of(least, "recipe"), cost_of(least)));
    std::vector<std::string> ties;
    for (const record* r : order) {
        if (r != &least && is_true(*r, "ties_with_least")) ties.push_back(text_of(*r, "recipe"));
    }
    return report::item(fmt::format(
        "Least: {}: {}{}. Most: {}: {}.", text_of(least, "recipe"), cost_of(least),
        ties.empty() ? "" : fmt::format(", not to be told apart from {}", base::listed(ties)),
        text_of(most, "recipe"), cost_of(most)));
}

// "Under nvfp4, A costs most when quantized alone (0.0339 of 0.195 nats); leaving B as it is saves
// most (0.0607)."
report::notes costly_parts(const document_parts& d) {
    struct extremes {
        record costly, saving;
    };
    const auto only = [](const record& p) { return figure_of(p, "only_kld"); };
    const auto saved = [](const record& p) {
        return figure_of(p, "all_kld") - figure_of(p, "without_kld");
    };
    std::vector<std::pair<std::string, extremes>> of;
    for (const record& p : records_in(d.tail, "parts")) {
        const std::string recipe = text_of(p, "recipe");
        if (of.empty() || of.back().first != recipe) of.push_back({recipe, {p, p}});
        extremes& e = of.back().second;
        if (only(p) > only(e.costly)) e.costly = p;
        if (saved(p) > saved(e.saving)) e.saving = p;
    }
    report::notes lines;
    for (const auto& [recipe, e] : of) {
        lines.push_back(report::item(fmt::format(
            "Under {}, {} costs most when quantized alone ({} of {} nats); leaving {} as it is "
            "saves most ({}).",
            recipe, text_of(e.costly, "part"), significant_text(only(e.costly), 3),
            significant_text(figure_of(e.costly, "all_kld"), 3), text_of(e.saving, "part"),
            significant_text(saved(e.saving), 3))));
    }
    return lines;
}

// Bits against divergence.
void add_trade(section& to, const document_parts& d) {
    report::scatter_chart chart;
    chart.x = axis_of("bits a parameter", "");
    chart.y = axis_of("divergence, mean", "nats", true);
    for (const record& r : d.results) {
        if (!(figure_of(r, "kld_mean") > 0)) continue;
        chart.marks.push_back(
            {{figure_of(r, "bits_per_weight"), figure_of(r, "kld_mean"), text_of(r, "recipe")},
             text_of(r, "activations") == "none" ? "weights" : "weights and inputs",
             true});
    }
    if (chart.marks.size() < 2) return;
    add_figure(to, "bits-divergence", "Divergence against bits",
               "Mean divergence from the model as it is, and the size of the whole model.",
               std::move(chart));
}

section answer_of_evaluation(const document_parts& d) {
    section s{.heading = verdict_heading};
    s.notes.push_back(report::item(fmt::format("As it is: perplexity {} over {} tokens of {}.",
                                               significant_text(figure_of(d.head, "perplexity"), 5),
                                               report::whole(figure_of(d.head, "scored")),
                                               text_of(d.head, "text"))));
    if (const auto* parts = report::member<report::list>(d.tail, "left_out")) {
        std::vector<std::string> names;
        for (const report::value& v : *parts) {
            if (const auto* name = std::get_if<std::string>(&v)) names.push_back(*name);
        }
        s.notes.push_back(report::item(
            fmt::format("Left out, because text does not reach it: {}.", fmt::join(names, ", "))));
    }
    const std::vector<record> results(d.results.begin(), d.results.end());
    std::vector<const record*> order;
    for (const record& r : results) order.push_back(&r);
    std::ranges::stable_sort(order, std::less{},
                             [](const record* r) { return figure_of(*r, "kld_mean"); });
    if (order.empty()) return s;
    add_trade(s, d);
    s.notes.push_back(within_a_percent(order));
    s.notes.push_back(least_and_most(order));
    if (order.size() == 1) std::ranges::move(costly_parts(d), std::back_inserter(s.notes));
    return s;
}

section recipes_of_evaluation(const document_parts& d) {
    section s{
        .heading = "Recipes against the model as it is",
        .columns = columns_of(
            {"recipe", column_of("bits_per_weight", "bits a\nparameter", cell::significant, 3),
             column_of("perplexity", "perplexity", cell::significant, 6),
             column_of("perplexity_ratio", "to the\nbase", cell::significant),
             column_of("kld_mean", "divergence\nmean, nats", cell::significant),
             column_of("kld_stderr", "+- standard\nerror", cell::significant, 2),
             column_of("kld_median", "median", cell::significant, 3),
             column_of("kld_p99", "99 %", cell::significant, 3),
             column_of("kld_max", "largest", cell::significant, 3),
             column_of("top1_agreement", "same top\ntoken", cell::share)}),
        .rows = {d.results.begin(), d.results.end()}};
    s.notes.push_back(fmt::format(
        "{}, {} of {} tokens scored, windows of {}: cross-entropy {} nats a token. Standard errors "
        "take tokens as independent.",
        text_of(d.head, "model"), report::whole(figure_of(d.head, "scored")),
        report::whole(figure_of(d.head, "tokens")), report::whole(figure_of(d.head, "context")),
        significant_text(figure_of(d.head, "cross_entropy"), 6)));
    const bool inputs = std::ranges::any_of(
        s.rows, [](const record& r) { return text_of(r, "activations") != "none"; });
    if (inputs && text_of(d.head, "precision") == "float32") {
        s.notes.push_back(
            "Where inputs are quantized, a last bit of float32 can change a code and with it the "
            "rounding of every later token: another program's means differ by a few percent. "
            "--precision float64 gives the figures that two programs agree on.");
    }
    return s;
}

// The layer's name without the part that numbers its block.
std::string kind_of_layer(const std::string& layer) {
    const std::size_t number = layer.find_first_of("0123456789");
    const std::size_t end = layer.find('.', number);
    return number == std::string::npos || end == std::string::npos ? layer : layer.substr(end + 1);
}

// Layers by block, a line for each kind; other parts in their order, a line for each recipe.
void add_part_figures(section& to, const std::vector<record>& parts) {
    std::map<std::string, std::map<std::string, report::line_chart::line>> charts;
    for (const record& p : parts) {
        const std::string level = text_of(p, "level"), recipe = text_of(p, "recipe");
        const bool layers = level == "layer" || level == "tensor";
        const std::string name = layers ? kind_of_layer(text_of(p, "part")) : recipe;
        report::line_chart::line& line = charts[layers ? recipe : ""][name];
        line.name = name;
        line.points.push_back({static_cast<double>(line.points.size()), figure_of(p, "only_kld"),
                               text_of(p, "part")});
    }
    for (auto& [recipe, lines] : charts) {
        report::line_chart chart;
        chart.x = axis_of(recipe.empty() ? "part, in the order of the forward pass" : "block", "");
        chart.y = axis_of("divergence, it alone quantized", "nats", true);
        for (auto& [name, line] : lines) chart.lines.push_back(std::move(line));
        add_figure(to, "parts", recipe.empty() ? "Cost by part" : "Cost by layer under " + recipe,
                   "Mean divergence with one part quantized alone.", std::move(chart));
    }
}

// The parts of a recipe, the most costly by `figure` first.
struct ranked_parts {
    std::vector<const record*> shown;  // at most most_parts
    double sum = 0;                    // of all
};

std::map<std::string, ranked_parts> ranked_by(const std::vector<record>& all,
                                              std::string_view figure) {
    std::map<std::string, ranked_parts> by_recipe;
    for (const record& p : all) by_recipe[text_of(p, "recipe")].shown.push_back(&p);
    for (auto& [recipe, parts] : by_recipe) {
        std::ranges::stable_sort(parts.shown, std::greater{},
                                 [&](const record* p) { return figure_of(*p, figure); });
        for (const record* p : parts.shown) parts.sum += figure_of(*p, figure);
        parts.shown.resize(std::min(most_parts, parts.shown.size()));
    }
    return by_recipe;
}

section parts_of_evaluation(const document_parts& d) {
    section s{.heading = "Cost by part",
              .columns = {{"part", "part", cell::name},
                          {"only_kld", "divergence, it\nalone quantized", cell::significant, 3},
                          {"without_kld", "all but it\nquantized", cell::significant, 3},
                          {"saved", "saved by\nleaving it", cell::significant, 3}},
              .group_field = "recipe"};
    const std::vector<record> all = records_in(d.tail, "parts");
    for (const auto& [recipe, parts] : ranked_by(all, "only_kld")) {
        for (const record* p : parts.shown) {
            const double everything = figure_of(*p, "all_kld");
            const double without = figure_of(*p, "without_kld");
            s.add_to(fmt::format("{} by {}: everything {}, sum of the parts alone {}", recipe,
                                 text_of(*p, "level"), significant_text(everything, 3),
                                 significant_text(parts.sum, 3)),
                     text_of(*p, "part"), figure_of(*p, "only_kld"), without, everything - without);
        }
    }
    if (d.results.size() > 1) s.notes = costly_parts(d);
    add_part_figures(s, all);
    return s;
}

section pairs_of_evaluation(const document_parts& d) {
    section s{.heading = "Pairs: are effects additive?",
              .columns = {{"first", "first", cell::name},
                          {"second", "second", cell::name},
                          {"first_kld", "first alone", cell::significant, 3},
                          {"second_kld", "second alone", cell::significant, 3},
                          {"both_kld", "both", cell::significant, 3},
                          {"ratio", "both / sum", cell::significant, 3}},
              .rows = records_in(d.tail, "pairs"),
              .group_field = "recipe"};
    for (record& p : s.rows) {
        p.emplace_back("ratio", figure_of(p, "both_kld") /
                                    (figure_of(p, "first_kld") + figure_of(p, "second_kld")));
    }
    return s;
}

// What a backward pass predicts of the parts, beside what was measured of them.
section predictions_of_evaluation(const document_parts& d) {
    section s{.heading = "Cost by part, by gradient",
              .columns = {{"part", "part", cell::name},
                          {"predicted_kld", "divergence,\npredicted", cell::significant, 3},
                          {"only_kld", "it alone\nquantized", cell::significant, 3}},
              .group_field = "recipe"};
    const std::vector<record> all = records_in(d.tail, "sensitivity");
    for (const auto& [recipe, parts] : ranked_by(all, "predicted_kld")) {
        for (const record* p : parts.shown) {
            s.add_to(fmt::format("{} by {}: sum of the predictions {}", recipe,
                                 text_of(*p, "level"), significant_text(parts.sum, 3)),
                     text_of(*p, "part"), figure_of(*p, "predicted_kld"),
                     report::value_of(*p, "only_kld"));
        }
    }
    if (!all.empty() && report::number_of(d.head, "experts")) {
        s.notes.push_back(
            "Predictions hold the choices of experts fixed. Where errors change them, a part costs "
            "more: measure parts before a router with --by evaluation.");
    }
    const std::vector<record> ranks = records_in(d.tail, "rank_correlations");
    if (ranks.empty()) s.columns.pop_back();
    for (const record& r : ranks) {
        if (const auto rho = report::number_of(r, "spearman")) {
            s.notes.push_back(fmt::format("Spearman's rank correlation under {}: {}.",
                                          text_of(r, "recipe"), significant_text(*rho, 3)));
        }
    }
    return s;
}

section layers_of_evaluation(const document_parts& d) {
    section s{.heading = "Errors of outputs, layer by layer",
              .columns = columns_of(
                  {"layer", "recipe",
                   column_of("rel_sq_error_w", "weights\nquantized", cell::significant, 3),
                   column_of("rel_sq_error_wa", "weights and\ninputs", cell::significant, 3)}),
              .rows = records_in(d.tail, "layers")};
    if (s.rows.empty()) return s;
    std::ranges::stable_sort(s.rows, std::greater{},
                             [](const record& r) { return figure_of(r, "rel_sq_error_wa"); });
    s.rows.resize(std::min(most_parts, s.rows.size()));
    s.notes.push_back(
        "Squared error of a layer's output over its squared norm, on the inputs that the layer has "
        "in the model as it is; the largest first.");
    return s;
}

section changed_tokens_of(const document_parts& d) {
    section s{.heading = "Tokens that change most",
              .columns = columns_of(
                  {column_of("token", "token", cell::integer), column_of("id", "id", cell::integer),
                   "piece", column_of("kld", "divergence,\nnats", cell::significant, 3),
                   column_of("probability_base", "probability\nbefore", cell::significant, 3),
                   column_of("probability", "after", cell::significant, 3)}),
              .group_field = "recipe"};
    std::map<std::string, std::size_t> shown;
    bool pieces = false;
    for (record& c : records_in(d.tail, "changed")) {
        if (++shown[text_of(c, "recipe")] > most_changed_tokens) continue;
        pieces = pieces || report::member<std::string>(c, "piece") != nullptr;
        s.rows.push_back(std::move(c));
    }
    if (!pieces) std::erase_if(s.columns, [](const auto& c) { return c.field == "piece"; });
    return s;
}

}  // namespace

std::vector<section> eval_view(const document_parts& d, const view_options& /*o*/) {
    return {answer_of_evaluation(d), recipes_of_evaluation(d),     parts_of_evaluation(d),
            pairs_of_evaluation(d),  predictions_of_evaluation(d), layers_of_evaluation(d),
            changed_tokens_of(d)};
}

}  // namespace mx::pages

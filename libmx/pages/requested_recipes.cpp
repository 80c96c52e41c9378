// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/requested_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/decibels.hpp"
#include "libmx/pages/verdict.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using report::cell;

constexpr std::size_t sentences = 3;

struct pooled_recipe {
    requested_recipe of;
    metrics::row normal{};
    double noise = 0;  // squared errors over the squares of each tensor, times its elements

    void add(const policy::judged_model& m, std::size_t tensor, const analysis::result& r) {
        const double ratio = policy::error_over_normal(r, normal);
        if (of.tensors == 0 || ratio > of.worst_ratio) {
            of.worst = tensor;
            of.worst_ratio = ratio;
        }
        if (of.tensors == 0 || ratio < of.best_ratio) {
            of.best = tensor;
            of.best_ratio = ratio;
        }
        const auto elements = static_cast<double>(r.elements);
        ++of.tensors;
        of.elements += r.elements;
        of.stored += m.tensors[tensor].counted_bytes();
        of.bytes += counted(std::ceil(r.bits_per_element * elements / 8));
        if (!policy::lossless(r) && !std::isnan(r.nrmse)) noise += r.nrmse * r.nrmse * elements;
    }
};

report::value decibels(double db) {
    return std::isinf(db) ? report::value("exact") : report::value(db);
}

}  // namespace

std::vector<requested_recipe> requested_recipes(const policy::judged_model& m) {
    bool undecided = false;
    for (const policy::decision& d : m.says.decisions) {
        if (d.column) return {};
        undecided = undecided || d.undecided;
    }
    if (!undecided) return {};
    std::vector<pooled_recipe> all;
    for (const analysis::named_recipe& r : m.table.recipes) {
        all.push_back({{.recipe = r.name}, policy::figures_on_normal_data(r.recipe)});
    }
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        if (!m.says.decisions[i].operand) continue;
        for (std::size_t r = 0; r < all.size(); ++r) {
            if (m.table.has(i, r)) all[r].add(m, i, m.table.of(i, r));
        }
    }
    std::vector<requested_recipe> requested;
    for (pooled_recipe& p : all) {
        if (p.of.elements == 0) continue;
        p.of.sqnr_db =
            base::decibels_of_root(std::sqrt(p.noise / static_cast<double>(p.of.elements)));
        p.of.normal_db = p.normal.sqnr_db;
        requested.push_back(std::move(p.of));
    }
    return requested;
}

report::notes requested_sentences(const policy::judged_model& m,
                                  const std::vector<requested_recipe>& requested) {
    report::notes said;
    for (const requested_recipe& r : requested) {
        if (said.size() == sentences) {
            said.push_back(report::item(
                fmt::format("{} more recipes: see the table.", requested.size() - sentences)));
            break;
        }
        const auto over = [](double ratio) { return report::significant_text(ratio, 3); };
        std::string text = fmt::format("{} for {}: {} instead of {}", r.recipe,
                                       report::plural(r.tensors, "operand"), bytes_text(r.bytes),
                                       bytes_text(r.stored));
        if (std::isinf(r.sqnr_db)) {
            text += "; exact";
        } else {
            text += fmt::format("; SQNR {} dB (normal data {})", report::fixed_text(r.sqnr_db, 1),
                                report::fixed_text(r.normal_db, 1));
            if (r.tensors > 1) {
                text += fmt::format(
                    ". Largest error: {}, {} times the squared error of normal data; smallest: {}, "
                    "{}",
                    tensor_name(m, r.worst), over(r.worst_ratio), tensor_name(m, r.best),
                    over(r.best_ratio));
            }
        }
        said.push_back(report::item(text + "."));
    }
    return said;
}

report::section requested_table(const policy::judged_model& m,
                                const std::vector<requested_recipe>& requested) {
    const byte_unit unit = unit_of(m.says.totals.stored);
    report::section s{
        .heading = "These recipes, over all operands",
        .columns = columns_of(
            {"recipe", "tensors", "bits",
             column_of("stored", fmt::format("stored\n{}", unit.name), cell::significant, 3),
             column_of("bytes", fmt::format("then\n{}", unit.name), cell::significant, 3),
             "sqnr_db", "normal_db",
             column_of("ratio", "largest error\n/ normal", cell::significant, 3),
             column_of("worst", "of", cell::name)})};
    for (const requested_recipe& r : requested) {
        s.add(r.recipe, r.tensors, r.bits(), static_cast<double>(r.stored) / unit.bytes,
              static_cast<double>(r.bytes) / unit.bytes, decibels(r.sqnr_db), decibels(r.normal_db),
              r.worst_ratio, tensor_name(m, r.worst));
    }
    s.notes.push_back(
        "SQNR: each tensor divided by its RMS. Error / normal: the squared error over that of the "
        "recipe on normal data of as much energy.");
    return s;
}

}  // namespace mx::pages

// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/analysis_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

// Rates that are merged, with what they are shares of.
struct merged_rate {
    std::string_view name;
    double (*weight)(const report::record&);
};

double eligible(const report::record& r) { return number(r, "eligible_blocks"); }

constexpr std::array rates{
    merged_rate{"overflow_rate", counted},
    merged_rate{"clamp_rate", counted},
    merged_rate{"underflow_rate", counted},
    merged_rate{"saturated_block_rate", eligible},
};

constexpr std::array part_names{"clamp", "underflow", "grid"};

struct accumulator {
    std::string recipe;
    std::int64_t tensors = 0;
    double elements = 0;
    double bits = 0;
    double error2 = 0;  // sums of squares over all elements
    double x2 = 0;
    double decibels = 0;
    int with_error = 0;
    std::array<std::pair<double, double>, rates.size()> shares{};  // sum of rate * weight, weight
    bool decomposed = false;
    double squared_error = 0;
    std::array<double, part_names.size()> parts{};
    std::string worst;
    double worst_nrmse = 0;

    void add_parts(const report::record& r) {
        const report::value* v = report::find(r, "squared_error");
        decomposed = decomposed || v != nullptr;
        const auto* of = v == nullptr ? nullptr : std::get_if<report::record>(v);
        if (of == nullptr) return;
        squared_error += number(*of, "total");
        for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += number(*of, part_names[i]);
    }

    void add(const report::record& r) {
        add_parts(r);
        const double n = counted(r);
        const double rmse = number(r, "rmse");
        const double nrmse = number(r, "nrmse", -1);
        ++tensors;
        elements += number(r, "elements");
        bits += number(r, "bits_per_element") * number(r, "elements");
        error2 += rmse * rmse * n;
        const double rms = number(r, "rms");
        x2 += rms * rms * n;
        if (const report::value* v = report::find(r, "sqnr_db");
            v != nullptr && std::holds_alternative<double>(*v)) {
            decibels += std::get<double>(*v);
            ++with_error;
        }
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const double weight = rates[i].weight(r);
            shares[i].first += number(r, rates[i].name) * weight;
            shares[i].second += weight;
        }
        if (nrmse > worst_nrmse) {
            worst_nrmse = nrmse;
            worst = words(r, "tensor");
        }
    }

    report::record finish() const {
        const bool has_error = error2 > 0 && x2 > 0;
        const double nrmse = has_error ? std::sqrt(error2 / x2) : 0;
        report::record r{
            {"recipe", recipe},
            {"tensors", integer(tensors)},
            {"elements", integer(static_cast<std::int64_t>(elements))},
            {"bits_per_element", elements > 0 ? real(bits / elements) : undefined()},
            {"nrmse", has_error ? real(nrmse) : undefined()},
            {"sqnr_db", has_error ? real(-20 * std::log10(nrmse)) : undefined()},
            {"mean_sqnr_db", with_error > 0 ? real(decibels / with_error) : undefined()}};
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const auto [sum, weight] = shares[i];
            r.emplace_back(std::string(rates[i].name),
                           weight > 0 ? real(std::min(1.0, sum / weight)) : undefined());
        }
        for (std::size_t i = 0; i < parts.size() && decomposed; ++i) {
            const bool any = squared_error > 0;
            r.emplace_back(std::string(part_names[i]) + "_error_share",
                           any ? real(parts[i] / squared_error) : undefined());
        }
        r.emplace_back("worst_tensor", worst);
        r.emplace_back("worst_sqnr_db",
                       worst_nrmse > 0 ? real(-20 * std::log10(worst_nrmse)) : undefined());
        return r;
    }
};

}  // namespace

double number(const report::record& r, std::string_view name, double otherwise) {
    return report::number_of(r, name).value_or(otherwise);
}

std::string words(const report::record& r, std::string_view name) {
    return report::text_of(r, name);
}

double counted(const report::record& r) {
    return number(r, "elements") - number(r, "nan") - number(r, "inf") - number(r, "poisoned");
}

std::vector<report::record> summarize(const report::record_list& results) {
    std::vector<accumulator> sums;
    for (const report::record& r : results) {
        const std::string recipe = words(r, "recipe");
        auto at = std::find_if(sums.begin(), sums.end(),
                               [&](const accumulator& a) { return a.recipe == recipe; });
        if (at == sums.end()) {
            sums.emplace_back();
            at = sums.end() - 1;
            at->recipe = recipe;
        }
        at->add(r);
    }
    std::vector<report::record> summary;
    for (const accumulator& a : sums) summary.push_back(a.finish());
    return summary;
}

}  // namespace mx::pages

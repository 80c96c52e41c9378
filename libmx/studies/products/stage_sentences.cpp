// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::products {
namespace {

// Errors of stages whose ratio is smaller are described as equal.
constexpr double stands_out = 1.05;
// Errors of one stage whose ratio is smaller count as the same.
constexpr double same_within = 0.02;
// Gains closer to 1 are not in the verdict.
constexpr double notable_gain = 0.01;

const stage_row& row_of(const stage_result& r) { return stage_rows[r.stage]; }
double error_of(const stage_result& r) { return r.errors.total.nrmse().value_or(0); }

// A ratio with two decimals, or three significant digits if it is large.
std::string in_figures(double ratio) {
    return ratio < 10 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.3g}", ratio);
}

using result_list = std::vector<const stage_result*>;

// The first model's result of every stage under `transform`, or without one.
result_list under(const std::vector<stage_result>& results, const std::string& transform,
                  bool requantized) {
    result_list found;
    for (const stage_result& r : results) {
        if (r.requantized != requantized) continue;
        if (r.transform != transform && !r.transform.empty()) continue;
        if (!found.empty() && found.back()->stage == r.stage) continue;
        found.push_back(&r);
    }
    return found;
}

// "Fprop -41 %, Wgrad +4 % (not significant)": the errors of `some` compared with those of the
// stages' first results.
std::string changes(const result_list& some) {
    std::vector<std::string> words;
    for (const stage_result* r : some) {
        if (!r->over_first) continue;
        const double ratio = r->over_first->value;
        words.push_back(fmt::format(
            "{} {}{}", row_of(*r).title,
            ratio < 10 ? fmt::format("{:+.0f} %", 100 * (ratio - 1)) : in_figures(ratio) + " times",
            change_word(*r->over_first) == "unsure" ? " (not significant)" : ""));
    }
    return base::joined(words, ", ");
}

// "Dgrad (hadamard, quantized twice)".
std::string named(const stage_result& r) {
    std::vector<std::string> how;
    if (!r.transform.empty() && r.transform != "none") how.push_back(r.transform);
    if (r.requantized) how.emplace_back("quantized twice");
    std::string words(row_of(r).title);
    if (!how.empty()) words += fmt::format(" ({})", fmt::join(how, ", "));
    return words;
}

std::string breaking(const result_list& plain) {
    const auto less = [](const stage_result* a, const stage_result* b) {
        return error_of(*a) < error_of(*b);
    };
    const stage_result& most = **std::ranges::max_element(plain, less);
    const stage_result& least = **std::ranges::min_element(plain, less);
    if (error_of(most) == 0) {
        const bool all = std::ranges::all_of(
            plain, [](const stage_result* r) { return r->errors.total.non_finite == 0; });
        return all ? "All products are exact." : "";
    }
    if (plain.size() > 1 && error_of(most) < stands_out * error_of(least)) {
        return fmt::format("No product stands out: errors are {:.3g} ({}) to {:.3g} ({}).",
                           error_of(least), row_of(least).title, error_of(most),
                           row_of(most).title);
    }
    std::string s = fmt::format("{} has the largest error: {:.3g} of |{}| ({} dB)",
                                row_of(most).title, error_of(most), row_of(most).result,
                                report::fixed_text(most.errors.total.sqnr_db().value_or(0), 2));
    if (error_of(least) > 0 && plain.size() > 1) {
        s += fmt::format(", {} times that of {}, the smallest",
                         in_figures(error_of(most) / error_of(least)), row_of(least).title);
    }
    return s + ".";
}

// The largest angle between a gradient and the exact one.
std::string descent(const std::vector<stage_result>& results) {
    const stage_result* worst = nullptr;
    for (const stage_result& r : results) {
        if (!row_of(r).gradient) continue;
        // A gradient with NaN or infinite elements has no figures.
        if (r.errors.total.non_finite != 0) return {};
        const auto cosine = r.errors.total.cosine();
        if (cosine && (worst == nullptr || *cosine < *worst->errors.total.cosine())) worst = &r;
    }
    if (worst == nullptr) return {};
    const double cosine = std::clamp(*worst->errors.total.cosine(), -1.0, 1.0);
    std::string s = fmt::format(
        "Gradients deviate by at most {:.3g} degrees from the exact ones: {}, zeta {:.3g}",
        std::acos(cosine) * 180 / std::numbers::pi, named(*worst), worst->zeta().value_or(0));
    return s + (cosine > 0 ? "." : "; a step may increase the loss.");
}

double distance(const stage_result& r) { return std::abs(r.errors.total.gain().value_or(1) - 1); }
// Exceeds the variation over rows and columns.
bool is_sure(const stage_result& r) { return distance(r) > 2 * r.gain_error.value_or(0); }

// The worst gain of every stage, under any transform and source, largest distance from 1 first.
std::string gains(const std::vector<stage_result>& results) {
    result_list worst;
    for (const stage_result& r : results) {
        if (!r.errors.total.gain() || r.errors.total.error2 == 0) continue;
        const auto at = std::ranges::find(worst, r.stage, &stage_result::stage);
        if (at == worst.end()) {
            worst.push_back(&r);
        } else if (std::tuple(is_sure(r), distance(r)) >
                   std::tuple(is_sure(**at), distance(**at))) {
            *at = &r;
        }
    }
    if (worst.empty()) return {};
    std::ranges::stable_sort(worst, [](const stage_result* a, const stage_result* b) {
        return std::tuple(is_sure(*a), distance(*a)) > std::tuple(is_sure(*b), distance(*b));
    });
    // "Dgrad (quantized twice) 0.9493 (standard error 0.0012, 9 % of its squared error)"
    const auto words = [](const stage_result& r) {
        return fmt::format(
            "{} {:.4f} ({}{:.0f} % of its squared error)", named(r), *r.errors.total.gain(),
            r.gain_error ? fmt::format("standard error {:.4f}, ", *r.gain_error) : "",
            100 * r.errors.total.bias_share().value_or(0));
    };
    if (!is_sure(*worst.front())) {
        return "Gains: none differs from 1 by more than twice its standard error.";
    }
    if (distance(*worst.front()) < notable_gain) {
        return fmt::format("Gains: all are within 1 % of 1; furthest: {}.", words(*worst.front()));
    }
    std::vector<std::string> notable;
    for (const stage_result* r : worst) {
        if (!is_sure(*r) || distance(*r) < notable_gain) continue;
        notable.push_back(words(*r));
    }
    return fmt::format("Gains, which averaging over steps does not remove: {}.",
                       base::joined(notable, "; "));
}

// For every stage with elements that are NaN or infinite, a sentence with their number.
std::vector<std::string> not_finite(const std::vector<stage_result>& results) {
    std::vector<std::string> words;
    for (const stage_row& row : stage_rows) {
        const stage_result* most = nullptr;
        for (const stage_result& r : results) {
            if (&row_of(r) != &row || r.errors.total.non_finite == 0) continue;
            const bool more =
                most == nullptr || r.errors.total.non_finite > most->errors.total.non_finite;
            if (more) most = &r;
        }
        if (most == nullptr) continue;
        const value_errors& e = most->errors.total;
        std::string under_what = gemm::to_string(most->model);
        if (!most->transform.empty()) under_what += ", " + most->transform;
        if (most->requantized) under_what += ", quantized twice";
        words.push_back(fmt::format("{}: {} of {} elements of {} are not finite ({}).", row.title,
                                    e.non_finite, e.elements, row.result, under_what));
    }
    return words;
}

}  // namespace

std::string_view change_word(const error_ratio& r) {
    const double beyond = std::abs(r.value - 1);
    if (beyond <= same_within) return "same";
    if (beyond <= 2 * r.standard_error.value_or(0)) return "unsure";
    return r.value > 1 ? "harms" : "helps";
}

std::vector<std::string> sentences_of(const std::vector<stage_result>& results) {
    if (results.empty()) return {};
    std::vector<std::string> seen{""};
    for (const stage_result& r : results) {
        if (seen.back().empty()) seen.back() = r.transform;
    }
    const std::string first = seen.back();
    const result_list plain = under(results, first, false);
    std::vector<std::string> words;
    for (const std::string& lost : not_finite(results)) words.push_back(lost);
    words.push_back(breaking(plain));
    std::vector<std::string> changed;
    for (const stage_result& r : results) {
        if (r.transform.empty() || std::ranges::find(seen, r.transform) != seen.end()) {
            continue;
        }
        seen.push_back(r.transform);
        const std::string over = changes(under(results, r.transform, false));
        if (!over.empty()) changed.push_back(fmt::format("with {} {}", r.transform, over));
    }
    const std::string again = changes(under(results, first, true));
    if (!again.empty()) changed.push_back("with operands quantized twice " + again);
    if (!changed.empty()) {
        words.push_back(fmt::format("Change of the error: {}.", base::joined(changed, "; ")));
    }
    words.push_back(gains(results));
    words.push_back(descent(results));
    std::erase(words, "");
    return words;
}

}  // namespace mx::products

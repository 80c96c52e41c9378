// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/joined.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/pages/views/stages_view.hpp"

namespace mx::pages {
namespace {

using products::stage_result;
using products::stage_row;

// A share of a squared error from which on a common gain is worth a sentence.
constexpr double notable_bias = 0.1;
// Errors of stages closer together than this are called alike.
constexpr double stands_out = 1.05;

const stage_row& row_of(const stage_result& r) { return products::stage_rows[r.stage]; }
double error_of(const stage_result& r) { return r.errors.total.nrmse().value_or(0); }

// A ratio to two places, or to three figures where it is large.
std::string in_figures(double ratio) {
    return ratio < 10 ? fmt::format("{:.2f}", ratio) : fmt::format("{:.3g}", ratio);
}

using result_list = std::vector<const stage_result*>;

// Of every stage the first model's result under `transform`, or the one that has none.
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

// "Fprop 0.81, Wgrad 1.02": the errors of `some` over those of the same stages in `others`.
std::string ratios(const result_list& some, const result_list& others) {
    std::vector<std::string> words;
    for (const stage_result* r : some) {
        for (const stage_result* o : others) {
            if (o->stage != r->stage || o == r || error_of(*o) == 0) continue;
            words.push_back(
                fmt::format("{} {}", row_of(*r).title, in_figures(error_of(*r) / error_of(*o))));
        }
    }
    return base::joined(words, ", ");
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
        return all ? "- Nothing is lost." : "";
    }
    if (plain.size() > 1 && error_of(most) < stands_out * error_of(least)) {
        return fmt::format("- No stage stands out: errors lie between {:.3g} ({}) and {:.3g} ({}).",
                           error_of(least), row_of(least).title, error_of(most),
                           row_of(most).title);
    }
    std::string s =
        fmt::format("- {} loses most: its error is {:.3g} of |{}| ({:.2f} dB)", row_of(most).title,
                    error_of(most), row_of(most).result, most.errors.total.sqnr_db().value_or(0));
    if (error_of(least) > 0 && plain.size() > 1) {
        s += fmt::format(", {} times that of {}, which loses least",
                         in_figures(error_of(most) / error_of(least)), row_of(least).title);
    }
    return s + ".";
}

std::string descent(const std::vector<stage_result>& results) {
    const stage_result* worst = nullptr;
    for (const stage_result& r : results) {
        if (r.zeta() && (worst == nullptr || *r.zeta() > *worst->zeta())) worst = &r;
    }
    if (worst == nullptr) return {};
    if (*worst->zeta() < 1) {
        // Nothing is known of a gradient with elements that are not finite.
        for (const stage_result& r : results) {
            if (row_of(r).gradient && r.errors.total.non_finite != 0) return {};
        }
        return fmt::format(
            "- Every gradient's error is smaller than the gradient (zeta at most {:.3g}), so that "
            "all still point downhill.",
            *worst->zeta());
    }
    return fmt::format(
        "- {} breaks: under {}{} its error is as large as the gradient itself (zeta {:.3g}, cosine "
        "{:.3f}), so that a step downhill is no longer sure.",
        row_of(*worst).title, worst->transform.empty() ? "these recipes" : worst->transform,
        worst->requantized ? ", quantized twice," : "", *worst->zeta(),
        worst->errors.total.cosine().value_or(0));
}

std::string bias(const result_list& plain) {
    // The largest gain, not the largest share: that of an error of rounding is of no interest.
    const stage_result* most = nullptr;
    const auto distance = [](const stage_result& r) {
        return std::abs(r.errors.total.gain().value_or(1) - 1);
    };
    for (const stage_result* r : plain) {
        if (!r->errors.total.bias_share()) continue;
        if (most == nullptr || distance(*r) > distance(*most)) most = r;
    }
    if (most == nullptr) return {};
    const double share = 100 * *most->errors.total.bias_share();
    const double gain = most->errors.total.gain().value_or(1);
    if (share < 100 * notable_bias) {
        return fmt::format(
            "- Bias: little. The common gain furthest from 1 is {:.4f} ({}), {:.1f} % of the "
            "squared "
            "error.",
            gain, row_of(*most).title, share);
    }
    return fmt::format(
        "- Bias: {:.1f} % of {}'s squared error is a common gain of {:.4f}, which no averaging "
        "over steps takes away.",
        share, row_of(*most).title, gain);
}

}  // namespace

std::vector<std::string> stages_not_finite(const std::vector<stage_result>& results) {
    std::vector<std::string> words;
    for (const stage_row& row : products::stage_rows) {
        const stage_result* most = nullptr;
        for (const stage_result& r : results) {
            if (&row_of(r) != &row || r.errors.total.non_finite == 0) continue;
            const bool more =
                most == nullptr || r.errors.total.non_finite > most->errors.total.non_finite;
            if (more) most = &r;
        }
        if (most == nullptr) continue;
        const products::value_errors& e = most->errors.total;
        std::string under_what = gemm::to_string(most->model);
        if (!most->transform.empty()) under_what += ", " + most->transform;
        if (most->requantized) under_what += ", quantized twice";
        words.push_back(fmt::format("{}: {} of {} elements of {} are not finite ({}).", row.title,
                                    e.non_finite, e.elements, row.result, under_what));
    }
    return words;
}

std::vector<std::string> stages_verdict(const std::vector<stage_result>& results) {
    if (results.empty()) return {};
    std::vector<std::string> seen{""};
    for (const stage_result& r : results) {
        if (seen.back().empty()) seen.back() = r.transform;
    }
    const std::string first = seen.back();
    const result_list plain = under(results, first, false);
    std::vector<std::string> words;
    for (const std::string& lost : stages_not_finite(results)) words.push_back("- " + lost);
    words.push_back(breaking(plain));
    for (const stage_result& r : results) {
        if (r.transform.empty() || std::ranges::find(seen, r.transform) != seen.end()) {
            continue;
        }
        seen.push_back(r.transform);
        const std::string over = ratios(under(results, r.transform, false), plain);
        if (over.empty()) continue;
        words.push_back(
            fmt::format("- Errors under {} over those under {}: {}.", r.transform, first, over));
    }
    const std::string again = ratios(under(results, first, true), plain);
    if (!again.empty()) {
        words.push_back("- Errors with operands quantized twice over those without: " + again +
                        ".");
    }
    words.push_back(bias(plain));
    words.push_back(descent(results));
    std::erase(words, "");
    return words;
}

}  // namespace mx::pages

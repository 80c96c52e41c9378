// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "apps/mx/stages_view.hpp"

namespace mx::app {
namespace {

using pipeline::stage_result;
using pipeline::stage_row;

// A share of a squared error from which on a common gain is worth a sentence.
constexpr double notable_bias = 0.1;
// Errors of stages closer together than this are called alike.
constexpr double stands_out = 1.05;

const stage_row& row_of(const stage_result& r) { return pipeline::stage_rows[r.stage]; }
double error_of(const stage_result& r) { return r.errors.total.nrmse().value_or(0); }

using result_list = std::vector<const stage_result*>;

// Of every stage the first model's result under `transform`.
result_list under(const std::vector<stage_result>& results, const std::string& transform,
                  bool requantized) {
    result_list found;
    for (const stage_result& r : results) {
        if (r.transform != transform || r.requantized != requantized) continue;
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
            if (o->stage != r->stage || error_of(*o) == 0) continue;
            words.push_back(
                fmt::format("{} {:.2f}", row_of(*r).title, error_of(*r) / error_of(*o)));
        }
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

std::string breaking(const result_list& plain) {
    const auto less = [](const stage_result* a, const stage_result* b) {
        return error_of(*a) < error_of(*b);
    };
    const stage_result& most = **std::max_element(plain.begin(), plain.end(), less);
    const stage_result& least = **std::min_element(plain.begin(), plain.end(), less);
    if (error_of(most) == 0) return "- Nothing is lost.";
    std::string s =
        fmt::format("- {} loses most: its error is {:.3g} of |{}| ({:.2f} dB)", row_of(most).title,
                    error_of(most), row_of(most).result, most.errors.total.sqnr_db().value_or(0));
    if (error_of(least) > 0 && plain.size() > 1) {
        s += fmt::format(", {:.2f} times that of {}, which loses least",
                         error_of(most) / error_of(least), row_of(least).title);
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
        return fmt::format(
            "- Every gradient's error is smaller than the gradient (zeta at most {:.3g}), so that "
            "all still point downhill.",
            *worst->zeta());
    }
    return fmt::format(
        "- {} breaks: under {} its error is as large as the gradient itself (zeta {:.3g}, cosine "
        "{:.3f}), so that a step downhill is no longer sure.",
        row_of(*worst).title, worst->transform.empty() ? "these recipes" : worst->transform,
        *worst->zeta(), worst->errors.total.cosine().value_or(0));
}

std::string bias(const result_list& plain) {
    const stage_result* most = nullptr;
    for (const stage_result* r : plain) {
        const std::optional<double> share = r->errors.total.bias_share();
        if (share && (most == nullptr || *share > *most->errors.total.bias_share())) most = r;
    }
    if (most == nullptr) return {};
    const double share = *most->errors.total.bias_share();
    const double gain = most->errors.total.gain().value_or(1);
    if (share < notable_bias) {
        return fmt::format(
            "- Bias: little. A common gain is at most {:.1f} % of a squared error ({}, gain "
            "{:.4f}); the rest has no fixed direction.",
            100 * share, row_of(*most).title, gain);
    }
    return fmt::format(
        "- Bias: {:.1f} % of {}'s squared error is a common gain of {:.4f}, which no averaging "
        "over steps takes away.",
        100 * share, row_of(*most).title, gain);
}

}  // namespace

std::vector<std::string> stages_verdict(const std::vector<stage_result>& results) {
    if (results.empty()) return {};
    const std::string& first = results.front().transform;
    const result_list plain = under(results, first, false);
    std::vector<std::string> words{breaking(plain)};
    std::vector<std::string> seen{first};
    for (const stage_result& r : results) {
        if (std::find(seen.begin(), seen.end(), r.transform) != seen.end()) continue;
        seen.push_back(r.transform);
        words.push_back(fmt::format("- Errors under {} over those under {}: {}.", r.transform,
                                    first, ratios(under(results, r.transform, false), plain)));
    }
    const std::string again = ratios(under(results, first, true), plain);
    if (!again.empty()) {
        words.push_back("- Errors with operands quantized twice over those without: " + again +
                        ".");
    }
    words.push_back(bias(plain));
    words.push_back(descent(results));
    words.erase(std::remove(words.begin(), words.end(), ""), words.end());
    return words;
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/cluster_words.hpp"

#include <fmt/format.h>

#include <set>

#include "libmx/codec/saturation_zone.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using cluster::bad_block;
using cluster::defect;
using cluster::finding;
using report::plural;

std::string figure(const report::value& v) {
    const auto* d = std::get_if<double>(&v);
    return d == nullptr ? std::string("-") : report::significant_text(*d, 3);
}

// The recipe with its scale rule, which is what the sentence is about, also where the canonical
// spelling leaves it out.
std::string spelled(const codec::recipe& r) {
    std::string text = codec::to_string(r);
    if (text.find("scale=") != std::string::npos) return text;
    const std::size_t end = text.find(':');
    const std::string rest = end == std::string::npos ? "" : "," + text.substr(end + 1);
    return fmt::format("{}:scale={}{}", text.substr(0, end), r.rule->name, rest);
}

std::optional<codec::saturation_zone> zone_of(const codec::recipe& r) {
    const auto judge = codec::block_judge::of(r);
    return judge ? judge->zone() : std::nullopt;
}

// "[0.844,1)*2^n", without a blank to be broken at.
std::string interval(const codec::saturation_zone& z) {
    return fmt::format("{}{:.3g},{:.3g})*2^n", z.including ? '[' : '(', z.from, z.to);
}

std::string what_happens(const finding& f) {
    switch (f.what) {
        case defect::saturation: {
            const auto zone = zone_of(f.recipe);
            const std::string gain = figure(f.survey.saturated_block_gain);
            if (!zone) return fmt::format("every value takes the largest code, a gain of {}", gain);
            return fmt::format("every value in {} becomes {:.3g}*2^n, a gain of {}",
                               interval(*zone), zone->becomes, gain);
        }
        case defect::death:
            return "every value becomes 0";
        case defect::collapse:
            return "all values get one magnitude";
    }
    return {};
}

// "block 3: 0.86 to 0.998 become 0.875", of the worst block that the sentence is about.
std::string example(const finding& f) {
    for (const bad_block& b : f.survey.worst) {
        if (b.what != f.what || !b.becomes) continue;
        if (b.least == b.largest) {
            return fmt::format(" (block {}: {:.4g} becomes {:.4g})", b.index, b.least, *b.becomes);
        }
        return fmt::format(" (block {}: {:.4g} to {:.4g} become {:.4g})", b.index, b.least,
                           b.largest, *b.becomes);
    }
    return {};
}

std::string remedy(const finding& f) {
    const cluster::measured_remedy& m = f.remedies[f.chosen];
    if (m.recipe == engine::bf16_name) {
        return fmt::format("nothing tried here mends it but bf16, with R-MSE {} instead of {}",
                           figure(m.rmse), figure(f.survey.rmse));
    }
    return fmt::format("{} brings R-MSE from {} to {}", m.change, figure(f.survey.rmse),
                       figure(m.rmse));
}

}  // namespace

std::string finding_words(const finding& f, const std::string& tensor) {
    const std::uint64_t ailing = f.survey.defective[static_cast<std::size_t>(f.what)];
    const cluster::defect_words& verb = cluster::words_of(f.what);
    return fmt::format("{} under {}: {} of {} {}: {}{}; {}.", tensor, spelled(f.recipe), ailing,
                       plural(f.survey.eligible, "block"), ailing == 1 ? verb.one : verb.many,
                       what_happens(f), example(f), remedy(f));
}

std::string nearest_words(const cluster::recipe_summary& h, const codec::recipe& r) {
    if (!h.nearest) return {};
    const cluster::near_block& b = *h.nearest;
    return fmt::format(
        "Closest under {}: block {} of {}, whose magnitudes lie from {:.4g} to {:.4g}; the "
        "smallest "
        "is {} % of what it takes for all of them to get the largest code.",
        spelled(r), b.index, h.nearest_tensor, b.least, b.largest,
        report::percent_text(b.nearness));
}

std::vector<std::string> caveats(const cluster::cluster_report& report,
                                 const analysis::analysis_request& request) {
    std::vector<std::string> notes;
    const cluster::norm_centres& n = report.norms;
    if (request.norm_bias == 0 && n.look_like_gamma_minus_one()) {
        const bool one = n.around_zero.size() == 1;
        notes.push_back(fmt::format(
            "- {} of {} ({}{}) {} around 0 instead of 1, like gamma - 1: models that store their "
            "norms "
            "so add 1 when they run. Rerun with --norm-bias 1 to judge what is multiplied.",
            n.around_zero.size(), plural(n.norms, "norm tensor"), n.around_zero.front(),
            one ? "" : ", ...", one ? "lies" : "lie"));
    }
    std::set<std::string> tensors;
    for (const cluster::unjudged_tensor& u : report.unjudged) tensors.insert(u.tensor);
    if (!tensors.empty()) {
        notes.push_back(
            fmt::format("- {} could not be judged, since none of {} blocks holds two non-zero "
                        "elements ({}{}): axis=flat, as in -r {},axis=flat, blocks the flattened "
                        "tensor instead.",
                        plural(tensors.size(), "tensor"), tensors.size() == 1 ? "its" : "their",
                        report.unjudged.front().tensor, tensors.size() == 1 ? "" : ", ...",
                        report.unjudged.front().recipe));
    }
    for (const engine::skipped_tensor& s : report.skipped) {
        notes.push_back(fmt::format("- Left out: {}{}{}: {}", s.tensor,
                                    s.recipe.empty() ? "" : " under ", s.recipe, s.reason));
    }
    return notes;
}

}  // namespace mx::pages

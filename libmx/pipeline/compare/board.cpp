// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/compare/board.hpp"

#include <unordered_map>

namespace mx::pipeline::compare {
namespace {

std::optional<double> number(const report::record& r, std::string_view name) {
    const report::value* v = report::find(r, name);
    if (v == nullptr) return {};
    if (const auto* d = std::get_if<double>(v)) return *d;
    if (const auto* i = std::get_if<std::int64_t>(v)) return static_cast<double>(*i);
    return {};
}

std::string words(const report::record& r, std::string_view name) {
    const report::value* v = report::find(r, name);
    const auto* s = v == nullptr ? nullptr : std::get_if<std::string>(v);
    return s == nullptr ? std::string() : *s;
}

figures figures_of(const report::record& r) {
    const auto count = [&](std::string_view name) { return number(r, name).value_or(0); };
    figures f;
    f.rmse = number(r, "rmse");
    f.nrmse = number(r, "nrmse");
    f.sqnr_db = number(r, "sqnr_db");
    f.crest_factor = number(r, "crest_factor");
    f.elements = count("elements");
    f.counted = f.elements - count("nan") - count("inf") - count("poisoned");
    f.eligible = count("eligible_blocks");
    f.rms = count("rms");
    f.bits_per_element = count("bits_per_element");
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        f.rates[i] = number(r, pooled_rates[i].name);
    }
    return f;
}

tensor_row row_of(const report::record& r, std::size_t cells) {
    tensor_row row{words(r, "file"), words(r, "tensor"), words(r, "role"), {}, {}};
    if (const auto layer = number(r, "layer")) row.layer = static_cast<std::int64_t>(*layer);
    row.at.resize(cells);
    return row;
}

}  // namespace

board arrange(const report::record_list& results, const std::vector<std::string>& runs,
              std::size_t phases) {
    board b{runs.size(), phases, {}};
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < runs.size(); ++i) places.emplace(runs[i], i);
    for (const report::record& r : results) {
        const auto run = places.find(words(r, "recipe"));
        if (run == places.end()) continue;
        // The results of a tensor follow one another.
        const bool same = !b.tensors.empty() && b.tensors.back().tensor == words(r, "tensor") &&
                          b.tensors.back().file == words(r, "file");
        if (!same) b.tensors.push_back(row_of(r, runs.size() * phases));
        const auto phase = static_cast<std::size_t>(number(r, "phase").value_or(0));
        if (phase >= phases) continue;
        b.tensors.back().at[run->second * phases + phase] = figures_of(r);
    }
    return b;
}

}  // namespace mx::pipeline::compare

// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/distributions.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "libmx/analysis/totals.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/report/members.hpp"

namespace mx::analysis {
namespace {

constexpr std::array spread_quantiles{"p05", "p50", "p95"};

// Whether the largest magnitudes of blocks are the same under both.
bool same_blocks(const codec::recipe& a, const codec::recipe& b) {
    return a.block == b.block && a.axis == b.axis && a.rotate == b.rotate && a.offset == b.offset &&
           a.range == b.range;
}

template <std::size_t N>
void add_bins(std::array<std::uint64_t, N>& to, const std::array<std::uint64_t, N>& from) {
    for (std::size_t i = 0; i < N; ++i) to[i] += from[i];
}

}  // namespace

distributions::distributions(const std::vector<codec::recipe>& recipes) : recipes_(recipes) {
    for (std::size_t i = 0; i < recipes.size(); ++i) {
        first_of_its_blocks_.push_back(std::none_of(
            recipes.begin(), recipes.begin() + static_cast<std::ptrdiff_t>(i),
            [&](const codec::recipe& before) { return same_blocks(before, recipes[i]); }));
    }
}

distributions::sum& distributions::sum_of(std::string_view role, std::size_t recipe) {
    const auto at = std::find_if(sums_.begin(), sums_.end(), [&](const sum& s) {
        return s.recipe == recipe && s.role == role;
    });
    if (at != sums_.end()) return *at;
    sums_.emplace_back();
    sums_.back().role = std::string(role);
    sums_.back().recipe = recipe;
    return sums_.back();
}

void distributions::add(const io::tensor_info& info, std::string_view role, std::size_t recipe,
                        const metrics::totals& t) {
    if (t.distribution == nullptr) return;
    const metrics::histograms& h = *t.distribution;
    sum& s = sum_of(role, recipe);
    ++s.tensors;
    add_bins(s.codes, h.codes);
    add_bins(s.scales, h.scales);
    add_bins(s.amax_mantissa, h.amax_mantissa);
    if (role != "norm" || !first_of_its_blocks_[recipe]) return;
    if (norms_.size() == most_norm_histograms) {
        ++norms_left_out_;
        return;
    }
    norm n{info.file, info.name, recipe, metrics::amax_mantissa_histogram(t), {}};
    const report::value spread = metrics::block_spread(t);
    const auto& members = std::get<report::record>(spread);
    const auto& quantiles = std::get<report::record>(*report::find(members, "quantiles"));
    for (std::size_t i = 0; i < spread_quantiles.size(); ++i) {
        n.spread[i] = *report::find(quantiles, spread_quantiles[i]);
    }
    norms_.push_back(std::move(n));
}

report::record distributions::members() const {
    const auto h = std::make_unique<metrics::histograms>();
    report::list sums, norms;
    for (const sum& s : sums_) {
        h->codes = s.codes;
        h->scales = s.scales;
        h->amax_mantissa = s.amax_mantissa;
        metrics::totals t = empty_totals(recipes_[s.recipe]);
        t.distribution = h.get();
        sums.emplace_back(
            report::record{{"role", s.role},
                           {"recipe", codec::to_string(recipes_[s.recipe])},
                           {"tensors", report::tally(s.tensors)},
                           {"code_entropy_bits", metrics::code_entropy_bits(t)},
                           {"code_histogram", metrics::code_histogram(t)},
                           {"scale_histogram", metrics::scale_histogram(t)},
                           {"amax_mantissa_histogram", metrics::amax_mantissa_histogram(t)}});
    }
    for (const norm& n : norms_) {
        report::record r{{"file", n.file},
                         {"tensor", n.tensor},
                         {"recipe", codec::to_string(recipes_[n.recipe])},
                         {"amax_mantissa_histogram", n.amax_mantissa}};
        for (std::size_t i = 0; i < spread_quantiles.size(); ++i) {
            r.emplace_back(std::string("spread_") + spread_quantiles[i], n.spread[i]);
        }
        norms.emplace_back(std::move(r));
    }
    return {{"sums", std::move(sums)},
            {"norms", std::move(norms)},
            {"norms_left_out", report::tally(norms_left_out_)}};
}

}  // namespace mx::analysis

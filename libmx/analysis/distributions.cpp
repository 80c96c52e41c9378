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

struct summed_bins {
    std::string_view role;
    const codec::recipe& recipe;
    std::uint64_t tensors;
    const metrics::totals& t;
};
constexpr std::array sum_members = std::to_array<report::declared<summed_bins>>({
    {"role", "@members#role", "", [](auto& s) { return s.role; }},
    {"recipe", "string", "", [](auto& s) { return codec::to_string(s.recipe); }},
    {"tensors", "count", "", [](auto& s) { return s.tensors; }},
    {"code_entropy_bits", "@members#code_entropy_bits", "",
     [](auto& s) { return metrics::code_entropy_bits(s.t); }},
    {"code_histogram", "@members#code_histogram", "",
     [](auto& s) { return metrics::code_histogram(s.t); }},
    {"scale_histogram", "@members#scale_histogram", "",
     [](auto& s) { return metrics::scale_histogram(s.t); }},
    {"amax_mantissa_histogram", "@members#amax_mantissa_histogram", "",
     [](auto& s) { return metrics::amax_mantissa_histogram(s.t); }},
});

struct norm_bins {
    const std::string &file, &tensor;
    const codec::recipe& recipe;
    const report::value& amax_mantissa;
    const std::array<report::value, spread_quantiles.size()>& spread;
};
constexpr std::array norm_members = std::to_array<report::declared<norm_bins>>({
    {"file", "string", "", [](auto& n) { return n.file; }},
    {"tensor", "string", "", [](auto& n) { return n.tensor; }},
    {"recipe", "string", "", [](auto& n) { return codec::to_string(n.recipe); }},
    {"amax_mantissa_histogram", "@members#amax_mantissa_histogram", "",
     [](auto& n) { return n.amax_mantissa; }},
    {"spread_p05", "share?", "", [](auto& n) { return n.spread[0]; }},
    {"spread_p50", "share?", "", [](auto& n) { return n.spread[1]; }},
    {"spread_p95", "share?", "", [](auto& n) { return n.spread[2]; }},
});

struct listed_bins {
    report::list sums, norms;
    std::uint64_t norms_left_out;
};
constexpr std::array bins_members = std::to_array<report::declared<listed_bins>>({
    {"sums", "[#sum]", "histograms summed over the tensors of a role, under a recipe",
     [](auto& d) { return d.sums; }},
    {"norms", "[#norm]", "block maxima of single norm tensors", [](auto& d) { return d.norms; }},
    {"norms_left_out", "count", "norm tensors beyond the limit of those listed",
     [](auto& d) { return d.norms_left_out; }},
});

}  // namespace

void distributions::declare(report::document_schema& to) {
    to.define("distributions", bins_members)
        .define("sum", sum_members)
        .define("norm", norm_members);
}

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
        sums.emplace_back(report::written(sum_members, {s.role, recipes_[s.recipe], s.tensors, t}));
    }
    for (const norm& n : norms_) {
        norms.emplace_back(report::written(
            norm_members, {n.file, n.tensor, recipes_[n.recipe], n.amax_mantissa, n.spread}));
    }
    return report::written(bins_members, {std::move(sums), std::move(norms), norms_left_out_});
}

}  // namespace mx::analysis

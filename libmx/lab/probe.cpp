// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/probe.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libmx/codec/block_params.hpp"
#include "libmx/engine/saturation_zone.hpp"

namespace mx::lab {

void gradient_sums::add(std::span<const float> q, std::span<const float> g) {
    for (std::size_t i = 0; i < q.size(); ++i) {
        const double x = static_cast<double>(q[i]);
        const double y = static_cast<double>(g[i]);
        qq += x * x;
        gg += y * y;
        qg += x * y;
        dd += (x - y) * (x - y);
    }
}

std::optional<gradient_measures> gradient_sums::measures() const {
    if (!(gg > 0) || !std::isfinite(qq + gg + dd)) return std::nullopt;
    gradient_measures m{};
    m.zeta = std::sqrt(dd / gg);
    m.cosine = qq > 0 ? qg / std::sqrt(qq * gg) : 0;
    m.norm_ratio = std::sqrt(qq / gg);
    m.gain = qg / gg;
    m.bias_share = dd > 0 ? (1 - m.gain) * (1 - m.gain) * gg / dd : 0;
    return m;
}

namespace {

template <typename T, typename M>
std::optional<double> part_of(const std::optional<T>& x, M T::*part) {
    return x ? std::optional<double>((*x).*part) : std::nullopt;
}

}  // namespace

const std::array<report::declared<std::optional<gradient_measures>>, 5> measures_members{{
    {"zeta", "amount?", "|error| / |gradient|",
     [](auto& m) { return part_of(m, &gradient_measures::zeta); }},
    {"cosine", "number?", "", [](auto& m) { return part_of(m, &gradient_measures::cosine); }},
    {"norm_ratio", "amount?", "|gradient| / |float32 gradient|",
     [](auto& m) { return part_of(m, &gradient_measures::norm_ratio); }},
    {"gain", "number?", "", [](auto& m) { return part_of(m, &gradient_measures::gain); }},
    {"bias_share", "share?", "share of the squared error that a common gain makes up",
     [](auto& m) { return part_of(m, &gradient_measures::bias_share); }},
}};

const std::array<report::declared<std::optional<block_figures>>, 4> block_figures_members{{
    {"clamp_share", "share?", "", [](auto& f) { return part_of(f, &block_figures::clamp_share); }},
    {"last_code_share", "share?", "",
     [](auto& f) { return part_of(f, &block_figures::last_code_share); }},
    {"saturated_share", "share?", "",
     [](auto& f) { return part_of(f, &block_figures::saturated_share); }},
    {"nearness", "number?", "of the block closest to saturation; 1: saturates",
     [](auto& f) { return f ? f->nearness : std::nullopt; }},
}};

const std::array<report::declared<gain_sizes>, 4> gain_sizes_members{{
    {"least", "amount?", "", [](auto& g) { return g.least; }},
    {"median", "amount?", "", [](auto& g) { return g.median; }},
    {"largest", "amount?", "", [](auto& g) { return g.largest; }},
    {"clamp_zone_from", "number?", "in parts of the power of two above; null: no zone",
     [](auto& g) { return g.clamp_zone_from; }},
}};

const std::array<report::declared<redrawn_gradients>, 3> redraws_members{{
    {"draws", "count", "", [](auto& d) { return d.draws; }},
    {"bias", "amount?", "|mean of the draws - float32 gradient| / |float32 gradient|",
     [](auto& d) { return report::finite_or_null(d.bias); }},
    {"spread", "amount?", "deviation of a draw / |float32 gradient|",
     [](auto& d) { return report::finite_or_null(d.spread); }},
}};

const std::array<report::declared<step_probe>, 5> probe_members{{
    {"with_norm_biases", "#measures", "the same, over all parameters",
     [](auto& p) { return report::written(measures_members, p.with_norm_biases); }},
    {"redraws", "#redraws", "under stochastic rounding: draws of the gradient",
     [](auto& p) {
         return p.redraws ? report::value(report::written(redraws_members, *p.redraws))
                          : report::value();
     },
     false},
    {"gradients", "{#measures}", "by parameter", [](auto& p) { return p.gradients; }},
    {"blocks", "{#blocks}", "by gain, weight and activation: its blocks under its recipe",
     [](auto& p) { return p.blocks; }},
    {"gains", "{#gains}", "by gain: magnitudes, and where the clamp zone of its recipe begins",
     [](auto& p) { return p.gains; }},
}};

std::optional<block_figures> block_figures_of(execution_context& on, const codec::recipe& r,
                                              std::span<const float> x) {
    const codec::block_params p = codec::params_of(r);
    if (!p.ocp || p.has_offset || x.empty()) return std::nullopt;
    if (!std::ranges::all_of(x, [](float v) { return std::isfinite(v); })) return std::nullopt;
    const auto length =
        static_cast<std::size_t>(r.block.rows) * static_cast<std::size_t>(r.block.cols);
    const codec::recipe_request request{&p, codec::detail::none, false, false, false};
    codec::placed_segment s;
    s.place = {0, 0, x.size(), 1, x.size(), 1, std::min(length, x.size())};
    const codec::value_rectangle values{
        {tensor::dtype::f32, std::as_bytes(x).data(), x.size()}, 1, x.size()};
    block::element_counts count{};
    block::block_tallies blocks{};
    on.quantizer(0).run(values, std::span(&s, 1), std::span(&request, 1),
                        [&](std::size_t, std::span<const codec::segment_result> by_recipe) {
                            count = by_recipe.front().stats->count;
                            blocks = by_recipe.front().stats->block;
                        });
    const auto share = [](std::uint64_t part, std::uint64_t all) {
        return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
    };
    block_figures f{};
    f.clamp_share = share(count.overflow, count.elements);
    f.last_code_share = share(count.top_code, count.elements);
    f.saturated_share = share(blocks.saturated, blocks.eligible);
    if (const auto judge = engine::block_judge::of(r)) {
        double sum = 0;
        std::size_t number = 0;
        for (std::size_t at = 0; at < x.size(); at += length, ++number) {
            sum += judge->nearness(
                engine::extremes_of(x.subspan(at, std::min(length, x.size() - at))));
        }
        f.nearness = sum / static_cast<double>(number);
    }
    return f;
}

gain_sizes gain_sizes_of(const codec::recipe& r, std::span<const float> gains) {
    std::vector<double> sizes;
    for (const float g : gains) sizes.push_back(std::abs(static_cast<double>(g)));
    const bool known =
        !sizes.empty() && std::ranges::all_of(sizes, [](double x) { return std::isfinite(x); });
    if (known) std::ranges::sort(sizes);
    const auto size = [&](std::size_t at) {
        return known ? std::optional(sizes[at]) : std::nullopt;
    };
    const auto judge = engine::block_judge::of(r);
    const auto zone = judge ? judge->zone() : std::nullopt;
    return {size(0), size(sizes.size() / 2), size(sizes.size() - 1),
            zone ? std::optional(zone->from) : std::nullopt};
}

}  // namespace mx::lab

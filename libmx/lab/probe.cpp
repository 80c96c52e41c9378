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

report::record measures_record(const std::optional<gradient_measures>& m) {
    const auto value = [&](double gradient_measures::*of) {
        return m ? report::value((*m).*of) : report::value();
    };
    return {{"zeta", value(&gradient_measures::zeta)},
            {"cosine", value(&gradient_measures::cosine)},
            {"norm_ratio", value(&gradient_measures::norm_ratio)},
            {"gain", value(&gradient_measures::gain)},
            {"bias_share", value(&gradient_measures::bias_share)}};
}

std::optional<block_figures> block_figures_of(execution_context& on, const codec::recipe& r,
                                              std::span<const float> x) {
    const codec::block_params p = codec::params_of(r);
    if (!p.plain || p.has_offset || x.empty()) return std::nullopt;
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

report::record figures_record(const std::optional<block_figures>& f) {
    if (!f)
        return {{"clamp_share", {}},
                {"last_code_share", {}},
                {"saturated_share", {}},
                {"nearness", {}}};
    return {{"clamp_share", f->clamp_share},
            {"last_code_share", f->last_code_share},
            {"saturated_share", f->saturated_share},
            {"nearness", f->nearness ? report::value(*f->nearness) : report::value()}};
}

report::record gains_record(const codec::recipe& r, std::span<const float> gains) {
    std::vector<double> sizes;
    for (const float g : gains) sizes.push_back(std::abs(static_cast<double>(g)));
    const bool known =
        !sizes.empty() && std::ranges::all_of(sizes, [](double x) { return std::isfinite(x); });
    if (known) std::ranges::sort(sizes);
    const auto size = [&](std::size_t at) {
        return known ? report::value(sizes[at]) : report::value();
    };
    const auto judge = engine::block_judge::of(r);
    const auto zone = judge ? judge->zone() : std::nullopt;
    return {{"least", size(0)},
            {"median", size(sizes.size() / 2)},
            {"largest", size(sizes.size() - 1)},
            {"clamp_zone_from", zone ? report::value(zone->from) : report::value()}};
}

}  // namespace mx::lab

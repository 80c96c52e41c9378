// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/show/block_map.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "libmx/codec/dialect_scale.hpp"

namespace mx::show {
namespace {

constexpr std::uint64_t divided(std::uint64_t n, std::uint64_t by) { return (n + by - 1) / by; }

void add_larger(double& to, double x) { to = std::max(to, x); }

}  // namespace

double region::error() const { return x2 > 0 ? std::sqrt(error2 / x2) : 0.0; }

void region::add_counts(const region& r) {
    blocks += r.blocks;
    elements += r.elements;
    not_finite += r.not_finite;
    poisoned += r.poisoned;
    clamp += r.clamp;
    underflow += r.underflow;
    eligible += r.eligible;
    saturated += r.saturated;
}

region region_of(const block::block_stats& s) {
    region r;
    r.blocks = 1;
    r.elements = s.count.elements;
    r.not_finite = std::uint64_t{s.count.nan} + s.count.inf;
    r.poisoned = s.count.poisoned;
    r.clamp = s.count.clamp;
    r.underflow = s.count.underflow;
    r.eligible = s.is.eligible ? 1 : 0;
    r.saturated = s.is.saturated ? 1 : 0;
    r.error2 = s.sum.error2;
    r.x2 = s.sum.x2;
    r.max_error = r.error();
    r.max_clamp = r.clamp_share();
    r.max_underflow = r.underflow_share();
    return r;
}

map_layout::map_layout(const block::grid& g, std::uint64_t rows_at_most,
                       std::uint64_t columns_at_most)
    : lines(g.over.batch * g.rows()), across(g.cols()), folded(lines == 1 || across == 1) {
    const std::uint64_t blocks = lines * across;
    if (blocks == 0) return;
    if (folded) {
        wide = divided(blocks, rows_at_most * columns_at_most);
        columns = std::min(columns_at_most, divided(blocks, wide));
        rows = divided(blocks, wide * columns);
        return;
    }
    tall = divided(lines, rows_at_most);
    wide = divided(across, columns_at_most);
    rows = divided(lines, tall);
    columns = divided(across, wide);
}

std::size_t map_layout::cell_of(std::uint64_t block) const {
    if (folded) return static_cast<std::size_t>(block / wide);
    return static_cast<std::size_t>(block / across / tall * columns + block % across / wide);
}

std::uint64_t map_layout::block_of(std::uint64_t row, std::uint64_t column) const {
    return folded ? (row * columns + column) * wide : row * tall * across + column * wide;
}

bool worse(const kept_block& a, const kept_block& b) {
    return std::tie(b.poisoned, b.excess, a.index) < std::tie(a.poisoned, a.excess, b.index);
}

void block_mapper::sums::add(const region& r) {
    of.add_counts(r);
    error2.add(r.error2);
    x2.add(r.x2);
    add_larger(of.max_error, r.max_error);
    add_larger(of.max_clamp, r.max_clamp);
    add_larger(of.max_underflow, r.max_underflow);
}

region block_mapper::sums::finish() const {
    region r = of;
    r.error2 = error2.value();
    r.x2 = x2.value();
    return r;
}

// The blocks of a panel under the first recipe.
class panel_map final : public engine::panel_visitor {
  public:
    panel_map(block_mapper& to, const engine::run_panel& p) : to_(to), panel_(p) {}

    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t i = 0; i < members.size(); ++i) {
            const engine::run_job& j = panel_.job(members[i]);
            if (j.recipe == 0) add(s, s.by_recipe[i], *j.params[0]);
        }
    }

    void end() override {
        const std::lock_guard lock(to_.guard_);
        for (const auto& [index, r] : regions_) {
            to_.cell_sums_[to_.layout.cell_of(index)].add(r);
            const std::uint64_t line = index / to_.layout.across;
            to_.band_sums_[static_cast<std::size_t>(line / to_.band_lines)].add(r);
        }
        for (kept_block& b : kept_) to_.keep(std::move(b));
    }

  private:
    void add(const engine::quantized_segment& s, const codec::segment_result& result,
             const codec::block_params& params) {
        const codec::block_results& d = result.of_blocks;
        for (std::size_t b = 0; b < d.blocks; ++b) {
            const std::uint64_t index = s.index_of(b);
            const region r = region_of(d.stats[b]);
            regions_.emplace_back(index, r);
            kept_block k;
            k.index = index;
            k.poisoned = r.poisoned != 0;
            k.excess = r.excess(to_.normal_);
            if (!is_kept(k)) continue;
            k.outer_amax = result.outer.amax;
            fill(k, s, d, b, params);
            kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), k, worse), std::move(k));
            if (!to_.only_ && kept_.size() > to_.worst_) kept_.pop_back();
        }
    }

    bool is_kept(const kept_block& k) const {
        if (to_.only_) return k.index == *to_.only_;
        if (kept_.size() < to_.worst_) return true;
        return !kept_.empty() && worse(k, kept_.back());
    }

    static void fill(kept_block& k, const engine::quantized_segment& s,
                     const codec::block_results& d, std::size_t b,
                     const codec::block_params& params) {
        const std::size_t size = codec::extent_of(s.place, b).size(), at = b * d.stride;
        k.stats = d.stats[b];
        k.x.assign(d.inputs + at, d.inputs + at + size);
        k.codes.assign(d.codes + at, d.codes + at + size);
        k.values.resize(size);
        codec::values_of_block(params, d, b, k.values);
        if (!params.bumps) return;
        // The whole row decides; segments of such grids contain whole rows.
        std::vector<float> row;
        const auto across = static_cast<std::size_t>(s.place.grid_cols());
        for (std::size_t c = b / across * across, left = across; left > 0; ++c, --left) {
            const float* x = d.inputs + c * d.stride;
            row.insert(row.end(), x, x + codec::extent_of(s.place, c).size());
        }
        k.bump.resize(s.place.block_size());
        codec::bumps_of_row(row, k.bump);
    }

    block_mapper& to_;
    engine::run_panel panel_;
    std::vector<std::pair<std::uint64_t, region>> regions_;
    std::vector<kept_block> kept_;
};

codec::recipe_request block_mapper::requested(const engine::run_job& j) const {
    if (j.recipe != 0) return {};
    return {nullptr, codec::detail::stats, false, true, true};
}

void block_mapper::begin(const engine::run_batch& b) {
    for (const engine::run_job& j : b.jobs) {
        params.resize(std::max(params.size(), j.recipe + 1));
        params[j.recipe] = j.params[0];
        if (j.recipe != 0) continue;
        layout = map_layout(j.layout.grid, map_rows_, map_columns_);
        band_lines = std::max<std::uint64_t>(1, divided(layout.lines, most_bands));
        cell_sums_.resize(static_cast<std::size_t>(layout.rows * layout.columns));
        band_sums_.resize(static_cast<std::size_t>(divided(layout.lines, band_lines)));
    }
}

std::unique_ptr<engine::panel_visitor> block_mapper::visit(const engine::run_panel& p) {
    for (std::size_t i = 0; i < p.jobs.size(); ++i) {
        if (p.job(i).recipe == 0) return std::make_unique<panel_map>(*this, p);
    }
    return nullptr;
}

void block_mapper::end(const engine::run_batch&) {
    for (const sums& s : cell_sums_) cells.push_back(s.finish());
    for (const sums& s : band_sums_) bands.push_back(s.finish());
}

void block_mapper::keep(kept_block b) {
    const auto at = std::upper_bound(kept.begin(), kept.end(), b, worse);
    kept.insert(at, std::move(b));
    if (!only_ && kept.size() > worst_) kept.pop_back();
}

}  // namespace mx::show

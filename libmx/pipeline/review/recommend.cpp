// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/review/recommend.hpp"

#include <cmath>
#include <limits>

#include "libmx/pipeline/alarms.hpp"
#include "libmx/pipeline/compare/pareto.hpp"
#include "libmx/pipeline/compare/ranking.hpp"

namespace mx::pipeline::review {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Tensors in danger and below the floor. Seeds of a cell count as one: the first stands for them.
void count_dangers(const compare::board& b, const compare::cell& cell,
                   const std::vector<std::size_t>& tensors, double floor, candidate& to) {
    constexpr std::size_t clamp = compare::rate_index("clamp_rate");
    constexpr std::size_t saturated = compare::rate_index("saturated_block_rate");
    for (const std::size_t t : tensors) {
        const compare::figures& f = b.of(t, cell.runs.front());
        to.clamping += f.rates[clamp].value_or(0) >= alarming_clamp_rate ? 1u : 0u;
        to.below += f.sqnr_db && *f.sqnr_db < floor ? 1u : 0u;
        const double rate = f.rates[saturated].value_or(0);
        to.saturating += rate >= alarming_saturation ? 1u : 0u;
        if (rate > to.worst_saturation) {
            to.worst_saturation = rate;
            to.worst_saturated = t;
        }
    }
}

candidate candidate_of(const compare::board& b, const compare::sweep_plan& plan,
                       const compare::ranking& ranks, const compare::standing& s, double floor) {
    candidate c;
    c.cell = s.cell;
    c.bits = s.bits_per_element;
    c.sqnr_db = s.sqnr_db ? s.sqnr_db->mean : s.exact ? infinite : -infinite;
    c.rates = s.rates;
    count_dangers(b, plan.cells[s.cell], ranks.over.tensors, floor, c);
    return c;
}

}  // namespace

bool acceptable(const candidate& c, const policy& p) {
    const bool saves = c.bits < bf16_bits - same_bits;
    return saves && c.sqnr_db >= p.min_sqnr_db && (p.accept_saturation || c.saturating == 0);
}

std::optional<std::size_t> choose(const std::vector<candidate>& candidates, const policy& p) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const candidate& c = candidates[i];
        if (!acceptable(c, p)) continue;
        if (!best) {
            best = i;
            continue;
        }
        const candidate& b = candidates[*best];
        const bool cheaper = c.bits < b.bits - same_bits;
        const bool as_cheap = c.bits <= b.bits + same_bits;
        if (cheaper || (as_cheap && c.sqnr_db > b.sqnr_db + compare::same_decibels)) best = i;
    }
    return best;
}

std::vector<rung> ladder(const std::vector<candidate>& candidates) {
    std::vector<rung> rungs;
    double floor = std::numeric_limits<double>::lowest();
    while (const auto at = choose(candidates, {floor, false})) {
        const double reach = candidates[*at].sqnr_db;
        rungs.push_back({at, reach});
        if (reach == infinite) return rungs;
        floor = std::nextafter(reach, infinite);
    }
    rungs.push_back({{}, infinite});
    return rungs;
}

recommendation recommend(const std::string& role, const compare::board& b,
                         const compare::sweep_plan& plan, const std::vector<std::size_t>& among,
                         const policy& p) {
    recommendation r;
    r.role = role;
    const compare::ranking ranks = compare::rank(b, plan, among, 0, compare::pooling::equal_rms);
    r.tensors = ranks.over.tensors;
    r.not_everywhere = ranks.over.not_everywhere;
    for (std::size_t cell = 0; cell < plan.cells.size(); ++cell) {
        for (const compare::standing& s : ranks.cells) {
            if (s.cell == cell && s.tensors > 0) {
                r.candidates.push_back(candidate_of(b, plan, ranks, s, p.min_sqnr_db));
            }
        }
    }
    r.undecided = r.candidates.empty();
    if (r.undecided) return r;
    const std::size_t run = plan.cells[r.candidates.front().cell].runs.front();
    for (const std::size_t t : r.tensors) r.elements += b.of(t, run).elements;
    r.chosen = choose(r.candidates, p);
    return r;
}

double recommended_bits(const recommendation& r) {
    return r.chosen ? r.candidates[*r.chosen].bits : bf16_bits;
}

}  // namespace mx::pipeline::review

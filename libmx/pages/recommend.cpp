// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/analysis/alarms.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::pages {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

void count_damage(std::size_t tensor, double rate, double alarming, damage& to) {
    to.tensors += rate >= alarming ? 1u : 0u;
    if (rate > to.worst_rate) {
        to.worst_rate = rate;
        to.worst = tensor;
    }
}

// Tensors in danger and below the floor. Seeds of a cell count as one: the first stands for them.
void count_dangers(const compare::board& b, const compare::cell& cell,
                   const std::vector<std::size_t>& tensors, double floor, candidate& to) {
    for (const std::size_t t : tensors) {
        const analysis::result& r = b.of(t, cell.runs.front());
        to.clamping += r.clamp_rate >= analysis::alarming_clamp_rate ? 1u : 0u;
        to.below += r.sqnr_db < floor ? 1u : 0u;
        to.collapse_unknown +=
            r.eligible_blocks > 0 && std::isnan(r.collapsed_block_rate) ? 1u : 0u;
        count_damage(t, r.saturated_block_rate, analysis::alarming_saturation, to.saturation);
        // Where every element kept its value, one magnitude was all there was.
        const double collapse = r.rmse == 0 ? 0 : r.collapsed_block_rate;
        count_damage(t, collapse, analysis::alarming_collapse, to.collapse);
    }
}

// The elements of a tensor under the first run that measured it.
double elements_of(const compare::tensor_row& row) {
    for (const analysis::result* r : row.at) {
        if (r != nullptr && r->elements > 0) return static_cast<double>(r->elements);
    }
    return 0;
}

// What the tensors are stored in, and what the class gets without a recipe.
void add_stored(const compare::board& b, recommendation& r) {
    bool wide = true;  // bfloat16 or more
    double bits = 0;
    for (const std::size_t t : r.tensors) {
        const std::string& dtype = b.tensors[t].of->dtype;
        const double elements = elements_of(b.tensors[t]);
        r.elements += elements;
        bits += elements * engine::bits_of_dtype(dtype).value_or(static_cast<int>(bf16_bits));
        wide = wide && (dtype.empty() || dtype == "BF16" || dtype == "F32" || dtype == "F64");
        if (!dtype.empty() && std::ranges::find(r.dtypes, dtype) == r.dtypes.end())
            r.dtypes.push_back(dtype);
    }
    if ((wide && !r.kept) || r.elements == 0) return;
    r.fallback = engine::stored_choice;
    r.fallback_bits = bits / r.elements;
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
    return saves && c.sqnr_db >= p.min_sqnr_db && (p.accept_damage || !c.damages());
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
    r.kept = engine::keeps_precision(role);
    if (r.kept) {
        r.tensors = among;
        r.not_everywhere = 0;
    }
    add_stored(b, r);
    r.undecided = r.candidates.empty() && !r.kept;
    if (!r.undecided && !r.kept) r.chosen = choose(r.candidates, p);
    return r;
}

double bits_of(const recommendation& r, std::optional<std::size_t> candidate) {
    return candidate ? r.candidates[*candidate].bits : r.fallback_bits;
}

std::string name_of(const compare::sweep_plan& plan, const recommendation& r,
                    std::optional<std::size_t> candidate) {
    return candidate ? plan.cells[r.candidates[*candidate].cell].name : r.fallback;
}

}  // namespace mx::pages

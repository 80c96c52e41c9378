// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "libmx/report/members.hpp"

namespace mx::diff {
namespace {

using report::share;
using report::tally;

report::value mean(const base::exact_sum& sum, std::uint64_t count) {
    if (count == 0) return {};
    return sum.value() / static_cast<double>(count);
}

report::value rmse(const value_figures& v) {
    if (v.compared == 0) return {};
    return std::sqrt(v.difference2.value() / static_cast<double>(v.compared));
}

report::value nrmse(const value_figures& v) {
    const double a2 = v.a2.value();
    if (a2 == 0) return {};
    return std::sqrt(v.difference2.value() / a2);
}

report::value cosine(const value_figures& v) {
    const double a2 = v.a2.value();
    const double b2 = v.b2.value();
    if (a2 == 0 || b2 == 0) return {};
    return v.ab.value() / (std::sqrt(a2) * std::sqrt(b2));
}

report::value largest(const value_figures& v) {
    if (v.compared == 0) return {};
    return v.max_difference;
}

// What two dumps say about a tensor's values.
struct value_member {
    std::string_view name;
    report::value (*of)(const value_figures&);
    bool in_series;
};

constexpr std::array value_members{
    value_member{"elements", [](const value_figures& v) { return tally(v.elements); }, false},
    value_member{"compared", [](const value_figures& v) { return tally(v.compared); }, false},
    value_member{"changed_values", [](const value_figures& v) { return tally(v.changed); }, false},
    value_member{"values_changed",
                 [](const value_figures& v) { return share(v.changed, v.elements); }, true},
    value_member{"rmse", rmse, true},
    value_member{"nrmse", nrmse, true},
    value_member{"max_abs_difference", largest, true},
    value_member{"cosine", cosine, true},
    value_member{"mean_drift",
                 [](const value_figures& v) { return mean(v.difference, v.compared); }, true},
};

// What two dumps say about its scales and codes.
struct move_member {
    std::string_view name;
    report::value (*of)(const move_figures&);
    bool in_series;
};

constexpr std::array move_members{
    move_member{"blocks", [](const move_figures& m) { return tally(m.blocks); }, false},
    move_member{"moved_scales", [](const move_figures& m) { return tally(m.scales_moved); }, false},
    move_member{"scale_churn",
                [](const move_figures& m) { return share(m.scales_moved, m.blocks); }, true},
    move_member{"moved_codes", [](const move_figures& m) { return tally(m.codes_moved); }, false},
    move_member{"codes_moved",
                [](const move_figures& m) { return share(m.codes_moved, m.elements); }, true},
    move_member{"elements_at_equal_scale",
                [](const move_figures& m) { return tally(m.elements_at_equal_scale); }, false},
    move_member{"moved_codes_at_equal_scale",
                [](const move_figures& m) { return tally(m.moved_at_equal_scale); }, false},
    move_member{"codes_moved_at_equal_scale",
                [](const move_figures& m) {
                    return share(m.moved_at_equal_scale, m.elements_at_equal_scale);
                },
                true},
};

report::value oscillation(const move_figures& m) { return share(m.flipped_back, m.followed); }

// What a dump says by itself.
struct dump_member {
    std::string_view name;
    report::value (*of)(const dump_figures&);
};

constexpr std::array dump_members{
    dump_member{"overflow_rate",
                [](const dump_figures& d) { return share(d.overflow, d.counted); }},
    dump_member{"clamp_rate", [](const dump_figures& d) { return share(d.clamp, d.counted); }},
    dump_member{"saturated_block_rate",
                [](const dump_figures& d) { return share(d.saturated_blocks, d.eligible_blocks); }},
    dump_member{"clamp_zone_blocks",
                [](const dump_figures& d) {
                    return d.maxima == 0 ? report::value() : tally(d.in_clamp_zone);
                }},
    dump_member{"clamp_zone_rate",
                [](const dump_figures& d) { return share(d.in_clamp_zone, d.maxima); }},
    dump_member{"clamp_zone_distance",
                [](const dump_figures& d) { return mean(d.distance, d.maxima); }},
};

}  // namespace

void value_figures::merge(const value_figures& other) {
    elements += other.elements;
    compared += other.compared;
    changed += other.changed;
    max_difference = std::max(max_difference, other.max_difference);
    a2.merge(other.a2);
    b2.merge(other.b2);
    ab.merge(other.ab);
    difference2.merge(other.difference2);
    difference.merge(other.difference);
}

void move_figures::merge(const move_figures& other) {
    blocks += other.blocks;
    scales_moved += other.scales_moved;
    elements += other.elements;
    codes_moved += other.codes_moved;
    elements_at_equal_scale += other.elements_at_equal_scale;
    moved_at_equal_scale += other.moved_at_equal_scale;
    followed += other.followed;
    flipped_back += other.flipped_back;
}

void dump_figures::merge(const dump_figures& other) {
    counted += other.counted;
    overflow += other.overflow;
    clamp += other.clamp;
    eligible_blocks += other.eligible_blocks;
    saturated_blocks += other.saturated_blocks;
    maxima += other.maxima;
    in_clamp_zone += other.in_clamp_zone;
    distance.merge(other.distance);
    level.merge(other.level);
    falling.merge(other.falling);
}

void code_figures::merge(const code_figures& other) {
    for (std::size_t i = 0; i < moves.size(); ++i) moves[i].merge(other.moves[i]);
    for (std::size_t i = 0; i < dumps.size(); ++i) dumps[i].merge(other.dumps[i]);
}

void add_pair(report::record& r, const compared_tensor& t, std::size_t pair) {
    for (const value_member& m : value_members) {
        r.emplace_back(std::string(m.name), m.of(t.values[pair]));
    }
    const move_figures& moves = t.codes.moves[pair];
    for (const move_member& m : move_members) r.emplace_back(std::string(m.name), m.of(moves));
    r.emplace_back("oscillation", oscillation(moves));
    for (const dump_member& m : dump_members) {
        r.emplace_back(std::string(m.name) + "_a", m.of(t.codes.dumps[pair]));
        r.emplace_back(std::string(m.name) + "_b", m.of(t.codes.dumps[pair + 1]));
    }
}

void add_series(report::record& r, const compared_tensor& t) {
    for (const value_member& m : value_members) {
        if (!m.in_series) continue;
        report::list steps(1);
        for (const value_figures& v : t.values) steps.push_back(m.of(v));
        r.emplace_back(std::string(m.name), std::move(steps));
    }
    for (const move_member& m : move_members) {
        if (!m.in_series) continue;
        report::list steps(1);
        for (const move_figures& v : t.codes.moves) steps.push_back(m.of(v));
        r.emplace_back(std::string(m.name), std::move(steps));
    }
    report::list turns(1);
    move_figures all;
    for (const move_figures& v : t.codes.moves) {
        turns.push_back(oscillation(v));
        all.merge(v);
    }
    r.emplace_back("oscillation", std::move(turns));
    r.emplace_back("oscillation_over_all", oscillation(all));
    for (const dump_member& m : dump_members) {
        report::list steps;
        for (const dump_figures& d : t.codes.dumps) steps.push_back(m.of(d));
        r.emplace_back(std::string(m.name), std::move(steps));
    }
}

}  // namespace mx::diff

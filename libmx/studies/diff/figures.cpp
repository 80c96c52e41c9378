// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
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

// A member of records, computed from figures of one kind.
template <typename Figures>
struct member {
    std::string_view name;
    report::value (*of)(const Figures&);
    bool in_series = true;
};

// The figures of two dumps about a tensor's values.
using value_member = member<value_figures>;
constexpr std::array value_members{
    value_member{"elements", [](const value_figures& v) { return tally(v.elements); }, false},
    value_member{"compared", [](const value_figures& v) { return tally(v.compared); }, false},
    value_member{"changed_values", [](const value_figures& v) { return tally(v.changed); }, false},
    value_member{"values_changed",
                 [](const value_figures& v) { return share(v.changed, v.elements); }},
    value_member{"changed_zero_signs", [](const value_figures& v) { return tally(v.zero_signs); },
                 false},
    value_member{"rmse", rmse},
    value_member{"nrmse", [](const value_figures& v) { return report::to_value(nrmse_of(v)); }},
    value_member{"max_abs_difference", largest},
    value_member{"cosine", cosine},
    value_member{"mean_drift",
                 [](const value_figures& v) { return mean(v.difference, v.compared); }},
};

// The figures of two dumps about a tensor's scales and codes.
using move_member = member<move_figures>;
constexpr std::array move_members{
    move_member{"blocks", [](const move_figures& m) { return tally(m.blocks); }, false},
    move_member{"moved_scales", [](const move_figures& m) { return tally(m.scales_moved); }, false},
    move_member{"scale_churn",
                [](const move_figures& m) { return share(m.scales_moved, m.blocks); }},
    move_member{"moved_codes", [](const move_figures& m) { return tally(m.codes_moved); }, false},
    move_member{"codes_moved",
                [](const move_figures& m) { return share(m.codes_moved, m.elements); }},
    move_member{"elements_at_equal_scale",
                [](const move_figures& m) { return tally(m.elements_at_equal_scale); }, false},
    move_member{"moved_codes_at_equal_scale",
                [](const move_figures& m) { return tally(m.moved_at_equal_scale); }, false},
    move_member{"codes_moved_at_equal_scale",
                [](const move_figures& m) {
                    return share(m.moved_at_equal_scale, m.elements_at_equal_scale);
                }},
    move_member{"oscillation",
                [](const move_figures& m) { return share(m.flipped_back, m.followed); }},
    move_member{"falling_blocks",
                [](const move_figures& m) {
                    return m.maxima == 0 ? report::value() : tally(m.falling_blocks);
                }},
    move_member{"falls_left",
                [](const move_figures& m) { return report::to_value(falls_left(m)); }},
};

// The figures of a single dump.
using dump_member = member<dump_figures>;
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

void add_members(report::record& r, const auto& members, const auto& figures) {
    for (const auto& m : members) r.emplace_back(std::string(m.name), m.of(figures));
}

// Null for the first dump, which has no predecessor.
void add_changes(report::record& r, const auto& members, const auto& changes) {
    for (const auto& m : members) {
        if (!m.in_series) continue;
        report::list steps(1);
        for (const auto& change : changes) steps.push_back(m.of(change));
        r.emplace_back(std::string(m.name), std::move(steps));
    }
}

}  // namespace

std::optional<double> nrmse_of(const value_figures& v) {
    const double a2 = v.a2.value();
    if (a2 == 0) return std::nullopt;
    return std::sqrt(v.difference2.value() / a2);
}

void value_figures::merge(const value_figures& other) {
    elements += other.elements;
    compared += other.compared;
    changed += other.changed;
    zero_signs += other.zero_signs;
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
    maxima += other.maxima;
    falling_blocks += other.falling_blocks;
    fastest_fall = std::max(fastest_fall, other.fastest_fall);
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

void compared_tensor::merge(const compared_tensor& other) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i].merge(other.values[i]);
    codes.merge(other.codes);
}

void value_figures::exchange(base::tally_text& with) {
    with.add(elements);
    with.add(compared);
    with.add(changed);
    with.add(zero_signs);
    with.raise(max_difference);
    for (base::exact_sum* s : {&a2, &b2, &ab, &difference2, &difference}) with.add(*s);
}

void move_figures::exchange(base::tally_text& with) {
    for (std::uint64_t* n :
         {&blocks, &scales_moved, &elements, &codes_moved, &elements_at_equal_scale,
          &moved_at_equal_scale, &followed, &flipped_back, &maxima, &falling_blocks}) {
        with.add(*n);
    }
    with.raise(fastest_fall);
}

void dump_figures::exchange(base::tally_text& with) {
    for (std::uint64_t* n : {&counted, &overflow, &clamp, &eligible_blocks, &saturated_blocks,
                             &maxima, &in_clamp_zone}) {
        with.add(*n);
    }
    for (base::exact_sum* s : {&distance, &level, &falling}) with.add(*s);
}

void code_figures::exchange(base::tally_text& with) {
    for (move_figures& m : moves) m.exchange(with);
    for (dump_figures& d : dumps) d.exchange(with);
}

std::optional<double> falls_left(const move_figures& m) {
    if (m.falling_blocks == 0) return std::nullopt;
    return (1 - m.fastest_fall) / m.fastest_fall;
}

void add_pair(report::record& r, const compared_tensor& t, std::size_t pair) {
    add_members(r, value_members, t.values[pair]);
    add_members(r, move_members, t.codes.moves[pair]);
    for (const dump_member& m : dump_members) {
        r.emplace_back(std::string(m.name) + "_a", m.of(t.codes.dumps[pair]));
        r.emplace_back(std::string(m.name) + "_b", m.of(t.codes.dumps[pair + 1]));
    }
}

void add_series(report::record& r, const compared_tensor& t) {
    add_changes(r, value_members, t.values);
    add_changes(r, move_members, t.codes.moves);
    move_figures all;
    for (const move_figures& m : t.codes.moves) all.merge(m);
    r.emplace_back("oscillation_over_all", share(all.flipped_back, all.followed));
    for (const dump_member& m : dump_members) {
        r.emplace_back(std::string(m.name), report::to_list(t.codes.dumps, m.of));
    }
}

}  // namespace mx::diff

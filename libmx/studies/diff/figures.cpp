// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/figures.hpp"

#include <fmt/format.h>

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

// A member of records, computed from figures of one kind. A series has those that may be null, as
// they are for the first dump.
template <typename Figures>
using member = report::declared<Figures>;
bool in_series(const report::member_type& m) { return m.type.ends_with('?'); }

// The figures of two dumps about a tensor's values.
constexpr std::array value_members = std::to_array<member<value_figures>>({
    {"elements", "count", "", [](auto& v) { return v.elements; }},
    {"compared", "count", "elements that are finite in both", [](auto& v) { return v.compared; }},
    {"changed_values", "count",
     "elements with another value; two NaNs are the same, and so are -0 and 0",
     [](auto& v) { return v.changed; }},
    {"values_changed", "share?", "share of changed_values",
     [](auto& v) { return share(v.changed, v.elements); }},
    {"changed_zero_signs", "count", "elements that are -0 in one and 0 in the other",
     [](auto& v) { return v.zero_signs; }},
    {"rmse", "amount?", "", [](auto& v) { return rmse(v); }},
    {"nrmse", "amount?", "over the norm of the first dump", [](auto& v) { return nrmse_of(v); }},
    {"max_abs_difference", "amount?", "", [](auto& v) { return largest(v); }},
    {"cosine", "number?", "", [](auto& v) { return cosine(v); }},
    {"mean_drift", "number?", "mean of the differences",
     [](auto& v) { return mean(v.difference, v.compared); }},
});

// The figures of two dumps about a tensor's scales and codes.
constexpr std::array move_members = std::to_array<member<move_figures>>({
    {"blocks", "count", "", [](auto& m) { return m.blocks; }},
    {"moved_scales", "count", "blocks with another scale", [](auto& m) { return m.scales_moved; }},
    {"scale_churn", "share?", "share of moved_scales",
     [](auto& m) { return share(m.scales_moved, m.blocks); }},
    {"moved_codes", "count", "elements with another code", [](auto& m) { return m.codes_moved; }},
    {"codes_moved", "share?", "share of moved_codes",
     [](auto& m) { return share(m.codes_moved, m.elements); }},
    {"elements_at_equal_scale", "count", "in blocks whose scale stayed",
     [](auto& m) { return m.elements_at_equal_scale; }},
    {"moved_codes_at_equal_scale", "count", "", [](auto& m) { return m.moved_at_equal_scale; }},
    {"codes_moved_at_equal_scale", "share?", "",
     [](auto& m) { return share(m.moved_at_equal_scale, m.elements_at_equal_scale); }},
    {"oscillation", "share?", "share of elements that moved and were back one dump later",
     [](auto& m) { return share(m.flipped_back, m.followed); }},
    {"falling_blocks", "count?",
     "blocks whose maximum fell and is about to fall through a power of two into the clamp zone; "
     "norms only",
     [](auto& m) { return m.maxima == 0 ? report::value() : tally(m.falling_blocks); }},
    {"falls_left", "amount?", "falls as large as this one until the first of them is there",
     [](auto& m) { return falls_left(m); }},
});

// The figures of a single dump.
constexpr std::array dump_members = std::to_array<member<dump_figures>>({
    {"overflow_rate", "share?", "", [](auto& d) { return share(d.overflow, d.counted); }},
    {"clamp_rate", "share?", "", [](auto& d) { return share(d.clamp, d.counted); }},
    {"saturated_block_rate", "share?", "",
     [](auto& d) { return share(d.saturated_blocks, d.eligible_blocks); }},
    {"clamp_zone_blocks", "count?", "blocks whose maximum lies where the recipe clamps; norms only",
     [](auto& d) { return d.maxima == 0 ? report::value() : tally(d.in_clamp_zone); }},
    {"clamp_zone_rate", "share?", "", [](auto& d) { return share(d.in_clamp_zone, d.maxima); }},
    {"clamp_zone_distance", "number?",
     "mean of log2(mantissa of the maximum / lower edge of the zone); below 0: not there yet",
     [](auto& d) { return mean(d.distance, d.maxima); }},
});

constexpr std::array whole_members = std::to_array<member<move_figures>>({
    {"oscillation_over_all", "share?", "",
     [](auto& m) { return share(m.flipped_back, m.followed); }},
});

// Null for the first dump, which has no predecessor.
void add_changes(report::record& r, const auto& members, const auto& changes) {
    for (const auto& m : members) {
        if (!in_series(m)) continue;
        report::list steps(1);
        for (const auto& change : changes) steps.push_back(*m.of(change));
        r.emplace_back(std::string(m.name), std::move(steps));
    }
}

void declare_list(report::member_list& to, const report::member_type& m) {
    if (in_series(m)) to.add({m.name, to.keep(fmt::format("[{}]", m.type)), ""});
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

void value_figures::serialize(base::archive& with) {
    with.add(elements);
    with.add(compared);
    with.add(changed);
    with.add(zero_signs);
    with.raise(max_difference);
    for (base::exact_sum* s : {&a2, &b2, &ab, &difference2, &difference}) with.add(*s);
}

void move_figures::serialize(base::archive& with) {
    for (std::uint64_t* n :
         {&blocks, &scales_moved, &elements, &codes_moved, &elements_at_equal_scale,
          &moved_at_equal_scale, &followed, &flipped_back, &maxima, &falling_blocks}) {
        with.add(*n);
    }
    with.raise(fastest_fall);
}

void dump_figures::serialize(base::archive& with) {
    for (std::uint64_t* n : {&counted, &overflow, &clamp, &eligible_blocks, &saturated_blocks,
                             &maxima, &in_clamp_zone}) {
        with.add(*n);
    }
    for (base::exact_sum* s : {&distance, &level, &falling}) with.add(*s);
}

void code_figures::serialize(base::archive& with) {
    for (move_figures& m : moves) m.serialize(with);
    for (dump_figures& d : dumps) d.serialize(with);
}

std::optional<double> falls_left(const move_figures& m) {
    if (m.falling_blocks == 0) return std::nullopt;
    return (1 - m.fastest_fall) / m.fastest_fall;
}

void add_pair(report::record& r, const compared_tensor& t, std::size_t pair) {
    report::append(r, value_members, t.values[pair]);
    report::append(r, move_members, t.codes.moves[pair]);
    for (const auto& m : dump_members) {
        r.emplace_back(std::string(m.name) + "_a", *m.of(t.codes.dumps[pair]));
        r.emplace_back(std::string(m.name) + "_b", *m.of(t.codes.dumps[pair + 1]));
    }
}
void declare_pair(report::member_list& to) {
    to.add(value_members).add(move_members);
    for (const report::member_type& m : dump_members) {
        to.add({to.keep(fmt::format("{}_a", m.name)), m.type, m.text});
        to.add({to.keep(fmt::format("{}_b", m.name)), m.type, m.text});
    }
}

void add_series(report::record& r, const compared_tensor& t) {
    add_changes(r, value_members, t.values);
    add_changes(r, move_members, t.codes.moves);
    move_figures all;
    for (const move_figures& m : t.codes.moves) all.merge(m);
    report::append(r, whole_members, all);
    for (const auto& m : dump_members) {
        r.emplace_back(std::string(m.name),
                       report::to_list(t.codes.dumps, [&](auto& d) { return *m.of(d); }));
    }
}
void declare_series(report::member_list& to) {
    for (const report::member_type& m : value_members) declare_list(to, m);
    for (const report::member_type& m : move_members) declare_list(to, m);
    to.add(whole_members);
    for (const report::member_type& m : dump_members) declare_list(to, m);
}

}  // namespace mx::diff

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/mends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "libmx/base/status.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/cluster/bf16_cast.hpp"

namespace mx::cluster {
namespace {

using codec::recipe;

bool set_rule(recipe& r, std::string_view name) {
    if (!r.scale_format->power_of_two()) return false;
    r.rule = scale::find_scale_rule(name);
    return true;
}

bool halve_block(recipe& r) {
    int& longer = r.block.cols >= r.block.rows ? r.block.cols : r.block.rows;
    longer = (longer + 1) / 2;
    return r.block.rows * r.block.cols >= 2;
}

constexpr std::array rows{
    mend_row{"rceil", "scale=rceil: no block maximum overflows",
             [](recipe& r) { return set_rule(r, "rceil"); }},
    mend_row{"bump", "scale=floor-bump: floor, one exponent higher above 1.75",
             [](recipe& r) { return set_rule(r, "floor-bump"); }},
    mend_row{"offset", "offset=fp16: the block's centre is subtracted",
             [](recipe& r) {
                 r.offset = codec::offset_kind::fp16;
                 return r.scale_format->power_of_two();
             }},
    mend_row{"block", "a block of half the size", halve_block},
};

// The recipe with its members in canonical form, or none when it makes no sense.
std::optional<recipe> sensible(recipe r) {
    try {
        codec::normalize(r);
        return r;
    } catch (const base::error&) {
        return std::nullopt;
    }
}

// Whether the canonical spelling of a recipe says something about `key`.
bool mentions(const std::string& spelling, std::string_view key) {
    return spelling.find(fmt::format(":{}=", key)) != std::string::npos ||
           spelling.find(fmt::format(",{}=", key)) != std::string::npos;
}

// The keys in which `b` differs from `a`, without those that only follow from others.
std::string difference(const recipe& a, const recipe& b) {
    const std::string before = codec::to_string(a);
    const std::string after = codec::to_string(b);
    std::string text;
    for (const codec::recipe_key& key : codec::recipe_keys()) {
        const std::string value = key.get(b);
        if (value == key.get(a)) continue;
        if (!mentions(before, key.name) && !mentions(after, key.name)) continue;
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.name, value);
    }
    return text;
}

measured_mend measured(const mend& m, const block_survey& s) {
    measured_mend out{
        m.change, codec::to_string(m.recipe), s.rmse, s.saturated_block_rate, s.bits_per_element,
        {}};
    for (std::size_t a = 0; a < ailment_count; ++a) {
        out.ailing_share[a] = s.share(static_cast<ailment>(a));
    }
    return out;
}

}  // namespace

std::span<const mend_row> mends() { return rows; }

std::vector<mend> mends_of(const recipe& r) {
    std::vector<mend> out;
    for (const mend_row& row : rows) {
        recipe changed = r;
        if (!row.change(changed)) continue;
        std::optional<recipe> sound = sensible(changed);
        if (!sound) {
            changed.by = &codec::row_of(codec::dialect_id::ocp);
            sound = sensible(changed);
        }
        const auto same = [&](const mend& m) { return m.recipe == *sound; };
        if (!sound || *sound == r || std::any_of(out.begin(), out.end(), same)) continue;
        out.push_back(mend{difference(r, *sound), *sound});
    }
    return out;
}

std::vector<std::vector<measured_mend>> measure_mends(
    const std::vector<engine::tensor_ref>& tensors, const recipe& r,
    const analysis::analysis_request& request, const engine::run_control& control) {
    const std::vector<mend> tried = mends_of(r);
    analysis::analysis_request wanted = request;
    wanted.recipes.clear();
    for (const mend& m : tried) wanted.recipes.push_back(m.recipe);
    std::vector<std::vector<measured_mend>> out(tensors.size());
    for (const block_survey& s : survey_blocks(tensors, wanted, control)) {
        out[s.tensor].push_back(measured(tried[s.recipe], s));
    }
    const std::vector<report::value> bf16 = bf16_cast_rmse(tensors, request, control);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::string name(engine::bf16_name);
        out[t].push_back(measured_mend{name, name, bf16[t], {}, 16.0, {}});
    }
    return out;
}

std::size_t choose_mend(const std::vector<measured_mend>& measured, ailment what,
                        const report::value& rmse) {
    std::size_t best = measured.size() - 1;
    const double before = report::number_of(rmse).value_or(0);
    for (std::size_t i = 0; i + 1 < measured.size(); ++i) {
        const measured_mend& m = measured[i];
        const double error = report::number_of(m.rmse).value_or(before);
        if (m.ailing_share[static_cast<std::size_t>(what)] >= danger_share) continue;
        if (!(error < before)) continue;
        const auto cost = [](const measured_mend& c) {
            return std::tuple(report::number_of(c.bits_per_element).value_or(0),
                              report::number_of(c.rmse).value_or(0));
        };
        if (best + 1 == measured.size() || cost(m) < cost(measured[best])) best = i;
    }
    return best;
}

}  // namespace mx::cluster

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <tuple>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/report/members.hpp"

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

// A change of a recipe; false if it changes nothing or does not apply.
using change = bool (*)(recipe&);

// THE LIST of remedies except bf16, in the order that decides between equal ones.
constexpr std::array changes{
    // No block maximum overflows.
    change{[](recipe& r) { return set_rule(r, "rceil"); }},
    // floor, one exponent higher above 1.75.
    change{[](recipe& r) { return set_rule(r, "floor-bump"); }},
    // The block's centre is subtracted.
    change{[](recipe& r) {
        r.offset = codec::offset_kind::fp16;
        return r.scale_format->power_of_two();
    }},
    change{halve_block},
};

// The recipe with its members in canonical form, or nullopt if it is not valid.
std::optional<recipe> sensible(recipe r) {
    try {
        codec::normalize(r);
        return r;
    } catch (const base::error&) {
        return std::nullopt;
    }
}

// Whether the canonical spelling of a recipe contains `key`.
bool mentions(const std::string& spelling, std::string_view key) {
    return spelling.find(fmt::format(":{}=", key)) != std::string::npos ||
           spelling.find(fmt::format(",{}=", key)) != std::string::npos;
}

// The keys in which `b` differs from `a`, without those that follow from others.
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

measured_remedy measured(const remedy& m, const block_survey& s) {
    measured_remedy out{
        m.change, codec::to_string(m.recipe), s.rmse, s.saturated_block_rate, s.bits_per_element,
        {}};
    for (std::size_t a = 0; a < defect_count; ++a) {
        out.defective_share[a] = s.share(static_cast<defect>(a));
    }
    return out;
}

// The error of storing a tensor as bfloat16.
struct cast_error {
    std::mutex guard;
    base::exact_sum squares;
    std::uint64_t finite = 0;
    bool beyond = false;

    void add(std::span<const float> x) {
        // One segment: a plain sum in a fixed order.
        double sum = 0;
        std::uint64_t n = 0;
        bool far = false;
        for (const float v : x) {
            if (!std::isfinite(v)) continue;
            const float d = base::rounded_to_bf16(v);
            ++n;
            if (!std::isfinite(d)) {
                far = true;
                continue;
            }
            const double error = static_cast<double>(d) - static_cast<double>(v);
            sum += error * error;
        }
        const std::lock_guard lock(guard);
        squares.add(sum);
        finite += n;
        beyond = beyond || far;
    }

    report::value rmse() const {
        if (finite == 0 || beyond) return {};
        return std::sqrt(squares.value() / static_cast<double>(finite));
    }
};

}  // namespace

std::vector<remedy> remedies_of(const recipe& r) {
    std::vector<remedy> out;
    for (const change make : changes) {
        recipe changed = r;
        if (!make(changed)) continue;
        std::optional<recipe> sound = sensible(changed);
        if (!sound) {
            changed.by = &codec::row_of(codec::dialect_id::ocp);
            sound = sensible(changed);
        }
        const auto same = [&](const remedy& m) { return m.recipe == *sound; };
        if (!sound || *sound == r || std::ranges::any_of(out, same)) continue;
        out.push_back(remedy{difference(r, *sound), *sound});
    }
    return out;
}

std::vector<std::vector<measured_remedy>> measure_remedies(
    const std::vector<engine::tensor_ref>& tensors, const recipe& r,
    const engine::run_request& request, const engine::run_control& control) {
    const std::vector<remedy> tried = remedies_of(r);
    engine::run_request separate = request;
    separate.partial.reset();  // a separate run, also when results are merged
    separate.recipes.clear();
    for (const remedy& m : tried) separate.recipes.push_back(m.recipe);
    std::vector<std::vector<measured_remedy>> out(tensors.size());
    for (const block_survey& s : survey_blocks(tensors, separate, control)) {
        out[s.tensor].push_back(measured(tried[s.recipe], s));
    }
    const std::vector<report::value> bf16 = bf16_cast_rmse(tensors, request, control);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const std::string name(engine::bf16_name);
        out[t].push_back(measured_remedy{name, name, bf16[t], {}, 16.0, {}});
    }
    return out;
}

std::vector<report::value> bf16_cast_rmse(const std::vector<engine::tensor_ref>& tensors,
                                          const engine::run_request& request,
                                          const engine::run_control& control) {
    std::vector<cast_error> errors(tensors.size());
    engine::sweep_values(tensors, control, [&](std::size_t t, const engine::loaded_panel& p) {
        const block::grid& grid = p.of->jobs.front().grid;
        std::vector<float> x(p.x.begin(), p.x.end());
        engine::prepare(engine::input_transform_of(request, tensors[t].info(), {}), grid, p.where,
                        x);
        engine::for_each_segment(grid, p.where, [&](const engine::segment_in_panel& s) {
            errors[t].add(std::span(x).subspan(s.col, s.cols));
        });
    });
    std::vector<report::value> rmse;
    for (const cast_error& e : errors) rmse.push_back(e.rmse());
    return rmse;
}

std::size_t choose_remedy(const std::vector<measured_remedy>& measured, defect what,
                          const report::value& rmse) {
    std::size_t best = measured.size() - 1;
    const double before = report::number_of(rmse).value_or(0);
    for (std::size_t i = 0; i + 1 < measured.size(); ++i) {
        const measured_remedy& m = measured[i];
        const double error = report::number_of(m.rmse).value_or(before);
        if (m.defective_share[static_cast<std::size_t>(what)] >= danger_share) continue;
        if (!(error < before)) continue;
        const auto cost = [](const measured_remedy& c) {
            return std::tuple(report::number_of(c.bits_per_element).value_or(0),
                              report::number_of(c.rmse).value_or(0));
        };
        if (best + 1 == measured.size() || cost(m) < cost(measured[best])) best = i;
    }
    return best;
}

}  // namespace mx::cluster

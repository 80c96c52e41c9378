// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/doctor.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "libmx/engine/skip.hpp"

namespace mx::cluster {
namespace {

// Tensors analysed and then surveyed together: few enough to hold their surveys, small enough
// (1 GiB of float32) for the second reading to come from memory.
constexpr std::size_t group_tensors = 512;
constexpr std::uint64_t group_elements = std::uint64_t{1} << 28;

std::size_t group_size(const std::vector<engine::tensor_ref>& tensors, std::size_t first) {
    std::size_t count = 0;
    std::uint64_t elements = 0;
    while (first + count < tensors.size() && count < group_tensors) {
        elements += tensors[first + count].info().elements;
        if (count > 0 && elements > group_elements) break;
        ++count;
    }
    return count;
}

// The record of a result with what the survey adds.
report::record joined(const analysis::result& from, const block_survey& s) {
    report::record r = analysis::record_of(from);
    r.emplace_back("clamp_zone_block_rate", s.clamp_zone_block_rate);
    r.emplace_back("certain_overflow_block_rate", s.certain_overflow_block_rate);
    r.emplace_back("certain_saturation_block_rate", s.certain_saturation_block_rate);
    r.emplace_back("saturated_block_gain", s.saturated_block_gain);
    for (const auto& [name, v] : s.spread) r.emplace_back("spread_" + name, v);
    return r;
}

report::value or_null(double x) {
    return analysis::defined(x) ? report::value(x) : report::value();
}

class examination {
  public:
    examination(const std::vector<engine::tensor_ref>& tensors,
                const analysis::analysis_request& request, const engine::run_control& control)
        : request_(request), control_(control) {
        tensors_ = engine::numeric_only(tensors, report_.skipped);
        for (const engine::tensor_ref& t : tensors_) elements_ += t.info().elements;
        report_.health.resize(request.recipes.size());
    }

    cluster_report run() {
        for (std::size_t first = 0; first < tensors_.size();) {
            const std::size_t count = group_size(tensors_, first);
            const auto from = tensors_.begin() + static_cast<std::ptrdiff_t>(first);
            look_at({from, from + static_cast<std::ptrdiff_t>(count)});
            first += count;
        }
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) find_mends(r);
        std::stable_sort(report_.findings.begin(), report_.findings.end(), more_severe);
        report_.norms = find_norm_centres(tensors_, request_.roles, control_);
        return std::move(report_);
    }

  private:
    // Of the two readings of a group, `half` says which.
    engine::run_control half_control(std::uint64_t group, std::uint64_t half) {
        engine::run_control c = control_;
        if (control_.on_progress) {
            c.on_progress = [this, group, half](const engine::progress& p) {
                const double share =
                    p.total == 0 ? 1.0 : static_cast<double>(p.done) / static_cast<double>(p.total);
                const double done =
                    static_cast<double>(group) * (static_cast<double>(half) + share) / 2;
                control_.on_progress({finished_ + static_cast<std::uint64_t>(done), elements_});
            };
        }
        return c;
    }

    void look_at(const std::vector<engine::tensor_ref>& group) {
        std::uint64_t elements = 0;
        for (const engine::tensor_ref& t : group) elements += t.info().elements;
        analysis::analysis_request wanted;
        wanted.recipes = request_.recipes;
        wanted.decompose = true;
        wanted.distributions = request_.distributions;
        wanted.roles = request_.roles;
        wanted.norm_bias = request_.norm_bias;
        analysis::analysis a = analysis::analyze(group, wanted, half_control(elements, 0));
        std::move(a.skipped.begin(), a.skipped.end(), std::back_inserter(report_.skipped));
        report_.sums.merge(a.sums);
        const std::vector<block_survey> surveys =
            survey_blocks(group, request_, half_control(elements, 1));
        // Both leave out the same tensors and come in the same order.
        for (std::size_t i = 0; i < surveys.size(); ++i) {
            note(group[surveys[i].tensor], surveys[i], a.results[i]);
            report_.results.push_back(joined(a.results[i], surveys[i]));
            report_.measured.push_back(std::move(a.results[i]));
        }
        finished_ += elements;
    }

    void note(const engine::tensor_ref& tensor, const block_survey& s, const analysis::result& r) {
        recipe_health& h = report_.health[s.recipe];
        ++h.tensors;
        h.judged += s.eligible > 0 ? 1u : 0u;
        h.eligible += s.eligible;
        h.saturated += s.saturated;
        h.saturating_tensors += s.saturated > 0 ? 1u : 0u;
        // A tensor without a finite element has no R-MSE; one of zeros has nothing to lose.
        const bool nothing = std::isnan(r.rmse) || r.zero_blocks == static_cast<double>(r.blocks);
        if (s.eligible == 0 && s.blocks > 1 && !nothing) {
            report_.unjudged.push_back(
                {tensor.info().name, codec::to_string(request_.recipes[s.recipe])});
        }
        if (const std::optional<ailment> what = danger_of(s)) {
            ++h.in_danger;
            finding f;
            f.tensor = tensor;
            f.recipe = request_.recipes[s.recipe];
            f.what = *what;
            f.survey = s;
            f.collapsed_block_rate = or_null(r.collapsed_block_rate);
            f.nrmse = or_null(r.nrmse);
            report_.findings.push_back(std::move(f));
            return;
        }
        // The first of equals: tensors come in order.
        if (s.nearest && (!h.nearest || s.nearest->nearness > h.nearest->nearness)) {
            h.nearest = s.nearest;
            h.nearest_tensor = tensor.info().name;
        }
    }

    void find_mends(std::size_t recipe) {
        std::vector<finding*> patients;
        std::vector<engine::tensor_ref> tensors;
        for (finding& f : report_.findings) {
            if (f.survey.recipe != recipe) continue;
            patients.push_back(&f);
            tensors.push_back(f.tensor);
        }
        if (patients.empty()) return;
        engine::run_control quiet = control_;
        quiet.on_progress = nullptr;
        auto measured = measure_mends(tensors, request_.recipes[recipe], request_, quiet);
        for (std::size_t i = 0; i < patients.size(); ++i) {
            finding& f = *patients[i];
            f.mends = std::move(measured[i]);
            f.mend = choose_mend(f.mends, f.what, f.survey.rmse);
        }
    }

    const analysis::analysis_request& request_;
    const engine::run_control& control_;
    std::vector<engine::tensor_ref> tensors_;
    std::uint64_t elements_ = 0, finished_ = 0;
    cluster_report report_;
};

}  // namespace

cluster_report examine(const std::vector<engine::tensor_ref>& tensors,
                       const analysis::analysis_request& request,
                       const engine::run_control& control) {
    return examination(tensors, request, control).run();
}

}  // namespace mx::cluster

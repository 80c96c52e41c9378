// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/group_sums.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/analysis/figures.hpp"

namespace mx::analysis {

// A group under one recipe and factor.
struct group_sums::member_sums {
    result first;  // of the first member
    metrics::totals totals;
    std::unique_ptr<metrics::histograms> histograms;
    std::uint64_t inexact = 0, passes = 0;
    group_facts facts;

    void add(result r, const metrics::totals& t, bool with_histograms) {
        inexact += r.inexact_inputs;
        passes = std::max(passes, r.passes);
        const bool worse =
            r.nrmse > facts.worst_nrmse || (std::isnan(facts.worst_nrmse) && !std::isnan(r.nrmse));
        if (facts.members == 0 || worse) {
            facts.worst_member = r.of->tensor;
            facts.worst_file = r.of->file;
            facts.worst_nrmse = r.nrmse;
            facts.worst_sqnr_db = r.sqnr_db;
        }
        const bool counted = with_histograms && t.distribution != nullptr;
        if (counted && !histograms) histograms = std::make_unique<metrics::histograms>();
        if (counted) histograms->merge(*t.distribution);
        if (facts.members++ == 0) {
            totals = t;
            first = std::move(r);
        } else {
            totals.merge(t);
        }
    }
};

group_sums::group_sums(grouping of, const analysis_request& request)
    : request_(request), results_(of.groups.size()) {
    open_ = std::make_unique<open_groups<member_sums>>(
        std::move(of), request.recipes.size() * request.factors.size());
}
group_sums::~group_sums() = default;

void group_sums::add(std::size_t tensor, std::size_t recipe, std::size_t phase, result r,
                     const metrics::totals& t) {
    open_->sums_of(tensor, recipe * request_.factors.size() + phase)
        .add(std::move(r), t, request_.histograms);
}

void group_sums::complete(std::size_t tensor) {
    open_->complete(tensor, [this](std::size_t group, std::vector<member_sums> variants) {
        close(group, std::move(variants));
    });
}

void group_sums::close(std::size_t group, std::vector<member_sums> variants) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
        member_sums& s = variants[i];
        if (s.facts.members == 0) continue;  // the recipe fits none of them
        result r = std::move(s.first);
        if (s.facts.members > 1) {
            const auto under = r.under;
            const std::size_t factors = request_.factors.size();
            // The deviation of all values together is not known.
            s.totals.deviation = std::numeric_limits<double>::quiet_NaN();
            s.totals.distribution = s.histograms.get();
            r = figures_of(s.totals, i / factors, i % factors, request_);
            r.under = under;
            r.inexact_inputs = s.inexact;
            r.passes = s.passes;
        }
        r.of = open_->group(group).of;
        r.group = std::make_shared<group_facts>(std::move(s.facts));
        results_[group].push_back(std::move(r));
    }
}

void group_sums::take(result_list& to) {
    open_->close_all([this](std::size_t group, std::vector<member_sums> variants) {
        close(group, std::move(variants));
    });
    for (std::vector<result>& of_group : results_) {
        for (const result& r : of_group) to.push_back(r);
        of_group = {};
    }
}

}  // namespace mx::analysis

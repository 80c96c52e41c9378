// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/analyze.hpp"

#include <utility>

#include "libmx/analysis/block_table.hpp"
#include "libmx/analysis/figures.hpp"
#include "libmx/analysis/group_sums.hpp"
#include "libmx/analysis/spread.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/io/memory_tensor.hpp"

namespace mx::analysis {
namespace {

result finish(const engine::run_job& j, metrics::totals t, double spread,
              const analysis_request& request) {
    t.deviation = spread * double{request.factors[j.phase]};
    result r = figures_of(t, j.recipe, j.phase, request);
    // How often the tensor was read for it, and the tensor scale that the first pass was for.
    r.passes = j.passes;
    const codec::recipe& recipe = request.recipes[j.recipe];
    if (codec::has_tensor_scale(recipe)) r.tensor_scale = double{j.params[0]->tensor.decode};
    return r;
}

class analysis_visitor final : public totals_visitor {
  public:
    /// `groups`: none where every tensor has a record.
    analysis_visitor(const analysis_request& request, std::vector<double> spreads,
                     group_sums* groups, analysis& to)
        : totals_visitor(request, request.histograms || request.distributions, request.decompose),
          request_(request),
          spreads_(std::move(spreads)),
          groups_(groups),
          to_(to) {
        for (const codec::recipe& r : request.recipes) {
            named_.push_back(std::make_shared<named_recipe>(named_recipe{codec::to_string(r), r}));
        }
    }

    void serialize_job(const engine::run_batch& b, std::size_t job, base::archive& with) override {
        totals_visitor::serialize_job(b, job, with);
        with.set(spreads_[b.jobs[job].tensor]);
    }

    void end(const engine::run_batch& b) override {
        std::vector<std::shared_ptr<const tensor_identity>> identities(b.inexact.size());
        for (std::size_t i = 0; i < b.jobs.size(); ++i) {
            const engine::run_job& j = b.jobs[i];
            const io::tensor_info& info = b.info(j);
            std::shared_ptr<const tensor_identity>& of = identities[j.tensor - b.first];
            if (!of) {
                of = std::make_shared<tensor_identity>(
                    identity_of(info, request_.roles.role_of(info)));
            }
            const metrics::totals& t = sums()[i]->totals;
            result r = finish(j, t, spreads_[j.tensor], request_);
            r.of = of;
            r.under = named_[j.recipe];
            r.inexact_inputs = b.inexact[j.tensor - b.first];
            if (groups_ != nullptr) {
                groups_->add(j.tensor, j.recipe, j.phase, std::move(r), t);
            } else {
                to_.results.push_back(r);
            }
            if (request_.distributions && j.phase == 0) {
                to_.sums.add(info, of->role, j.recipe, t);
            }
        }
        for (std::size_t t = 0; groups_ != nullptr && t < b.tensors.size(); ++t) {
            groups_->complete(b.first + t);
        }
    }

  private:
    const analysis_request& request_;
    std::vector<double> spreads_;  // by tensor
    group_sums* groups_;
    analysis& to_;
    std::vector<std::shared_ptr<const named_recipe>> named_;  // by recipe
};

// Hands out the totals of the one tensor there is.
class matrix_visitor final : public totals_visitor {
  public:
    using totals_visitor::totals_visitor;
    std::vector<matrix_totals> out;

    void end(const engine::run_batch&) override {
        for (const auto& s : sums()) out.push_back({s->totals, std::move(s->histograms)});
    }
};

}  // namespace

analysis analyze(const std::vector<engine::tensor_ref>& tensors, const analysis_request& request,
                 const engine::run_control& control, engine::visitor* beside) {
    analysis result;
    const std::vector<engine::tensor_ref> numeric = engine::numeric_only(tensors, result.skipped);
    if (request.distributions) result.sums = distributions(request.recipes);
    std::unique_ptr<group_sums> groups;
    if (!request.groups.empty()) {
        groups = std::make_unique<group_sums>(group_tensors(numeric, request.groups, request.roles),
                                              request);
    }
    analysis_visitor figures(request, spreads_of(numeric, request, control), groups.get(), result);
    scale_pair_counter pairs(request.scale_groups);
    std::unique_ptr<block_table> table;
    std::vector<engine::visitor*> visitors{&figures};
    if (!request.scale_groups.empty()) visitors.push_back(&pairs);
    if (!request.blocks_path.empty()) {
        table = std::make_unique<block_table>(request.blocks_path, numeric, request);
        visitors.push_back(table.get());
    }
    if (beside != nullptr) visitors.push_back(beside);
    for (engine::skipped_tensor& s :
         engine::run(std::span(&numeric, 1), request, visitors, control)) {
        result.skipped.push_back(std::move(s));
    }
    if (groups) groups->take(result.results);
    result.scale_differences = pairs.counts();
    if (table && has_elements(result.results)) table->commit();
    return result;
}

std::vector<matrix_totals> analyze_matrix(const matrix& m, std::span<const codec::recipe> recipes,
                                          bool histograms, const engine::run_control& control,
                                          bool decompose) {
    if (!codec::is_stored(m.type)) {
        throw base::error(base::error_kind::usage, "a matrix in memory is of F32, BF16 or F16");
    }
    const auto file = io::memory_tensor(m.data, m.type, {m.rows, m.cols}, {}, std::string(m.name));
    const std::vector<engine::tensor_ref> only{{file.get(), 0}};
    engine::run_request request;
    request.recipes.assign(recipes.begin(), recipes.end());
    matrix_visitor totals(request, histograms, decompose);
    engine::visitor* const visitors[] = {&totals};
    const auto skipped = engine::run(std::span(&only, 1), request, visitors, control,
                                     {.values = false, .facts = m.facts});
    if (!skipped.empty()) {
        throw base::error(base::error_kind::usage, "a matrix: " + skipped.front().reason);
    }
    return std::move(totals.out);
}

}  // namespace mx::analysis

// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/analyze.hpp"

#include <utility>

#include "libmx/analysis/block_table.hpp"
#include "libmx/analysis/totals.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/report/members.hpp"

namespace mx::analysis {
namespace {

using report::tally;

bool wanted(metrics::when collected, const analysis_request& request) {
    switch (collected) {
        case metrics::when::decompose:
            return request.decompose;
        case metrics::when::histograms:
            return request.histograms;
        case metrics::when::always:
            break;
    }
    return true;
}

report::record record_of(const io::tensor_info& info, std::string_view role,
                         const engine::run_job& j, std::uint64_t inexact,
                         const analysis_request& request, const metrics::totals& t,
                         const metrics::row& figures) {
    const codec::recipe& recipe = request.recipes[j.recipe];
    report::list shape;
    for (const std::uint64_t extent : info.shape) shape.push_back(tally(extent));
    report::record r;
    r.emplace_back("file", info.file);
    r.emplace_back("tensor", info.name);
    r.emplace_back("dtype", std::string(tensor::row_of(info.type).name));
    r.emplace_back("shape", std::move(shape));
    const std::optional<engine::layer_place> place = engine::layer_of(info.name);
    r.emplace_back("role", std::string(role));
    r.emplace_back("layer", place ? tally(place->layer) : report::value());
    r.emplace_back("recipe", codec::to_string(recipe));
    if (request.factors.size() > 1) r.emplace_back("phase", tally(j.phase));
    r.emplace_back("elements", tally(t.count.elements));
    r.emplace_back("blocks", tally(t.block.blocks));
    r.emplace_back("nan", tally(t.count.nan));
    r.emplace_back("inf", tally(t.count.inf));
    r.emplace_back("poisoned", tally(t.count.poisoned));
    r.emplace_back("inexact_inputs", tally(inexact));
    // How often the tensor was read for this result, and the tensor scale that the first pass was
    // for.
    r.emplace_back("passes", tally(j.passes));
    r.emplace_back("tensor_scale", codec::needs_tensor_facts(recipe)
                                       ? report::value(double{j.params[0]->tensor.decode})
                                       : report::value());
    for (const metrics::metric& m : metrics::all()) {
        if (wanted(m.collected, request)) {
            r.emplace_back(std::string(m.name), m.value_of(figures, t));
        }
    }
    return r;
}

class analysis_visitor final : public totals_visitor {
  public:
    analysis_visitor(const analysis_request& request, analysis& to)
        : totals_visitor(request, request.histograms || request.distributions, request.decompose),
          request_(request),
          to_(to) {}

    void end(const engine::run_batch& b) override {
        for (std::size_t i = 0; i < b.jobs.size(); ++i) {
            const engine::run_job& j = b.jobs[i];
            const io::tensor_info& info = b.info(j);
            const std::string_view role = request_.roles.role_of(info);
            const metrics::totals& t = sums()[i]->totals;
            to_.rows.push_back(metrics::row_of(t));
            to_.results.push_back(record_of(info, role, j, b.inexact[j.tensor - b.first], request_,
                                            t, to_.rows.back()));
            if (request_.distributions && j.phase == 0) to_.sums.add(info, role, j.recipe, t);
        }
    }

  private:
    const analysis_request& request_;
    analysis& to_;
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
    analysis_visitor figures(request, result);
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
    result.scale_differences = pairs.counts();
    if (table && engine::has_elements(result.results)) table->commit();
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
                                     {.values = false, .facts = false});
    if (!skipped.empty()) {
        throw base::error(base::error_kind::usage, "a matrix: " + skipped.front().reason);
    }
    return std::move(totals.out);
}

}  // namespace mx::analysis

// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/analyze.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pipeline/block_table.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/quantize_panel.hpp"
#include "libmx/pipeline/skip.hpp"
#include "libmx/pipeline/sweep.hpp"
#include "libmx/quantize/clamp_zone.hpp"

namespace mx::pipeline {
namespace {

// One tensor under one recipe.
struct job {
    std::size_t tensor;
    std::size_t recipe;
    geometry layout;
    std::size_t first_array = 0;  // of the block table
    std::mutex guard;
    metrics::totals totals;
    std::unique_ptr<metrics::histograms> histograms;
};

// What every job of a recipe has in common.
struct prepared_recipe {
    quantize::block_params params;
    std::string name;
    metrics::totals empty;  // totals with the recipe's facts filled in
};

prepared_recipe prepare(const quantize::recipe& r) {
    prepared_recipe p{quantize::params_of(r), quantize::to_string(r), {}};
    p.empty.has_subnormals = r.element->has_subnormals();
    p.empty.element_bits = r.element->bits();
    const int offset_bits = r.offset == quantize::offset_kind::fp16 ? 16 : 0;
    p.empty.bits_per_block = r.scale_format->bits() + offset_bits;
    const quantize::clamp_zone zone = quantize::clamp_zone_of(r);
    p.empty.clamp_from = zone.from;
    p.empty.clamp_to = zone.to;
    return p;
}

report::value tally(std::uint64_t n) { return static_cast<std::int64_t>(n); }

report::record finish(const io::tensor_info& info, const std::string& recipe, job& j,
                      std::uint64_t inexact, bool with_histograms) {
    metrics::totals& t = j.totals;
    t.distribution = j.histograms.get();
    report::list shape;
    for (const std::uint64_t extent : info.shape) shape.push_back(tally(extent));
    report::record r;
    r.emplace_back("file", info.file);
    r.emplace_back("tensor", info.name);
    r.emplace_back("dtype", std::string(tensor::row_of(info.type).name));
    r.emplace_back("shape", std::move(shape));
    r.emplace_back("recipe", recipe);
    r.emplace_back("elements", tally(t.count.elements));
    r.emplace_back("blocks", tally(t.block.blocks));
    r.emplace_back("nan", tally(t.count.nan));
    r.emplace_back("inf", tally(t.count.inf));
    r.emplace_back("poisoned", tally(t.count.poisoned));
    r.emplace_back("inexact_inputs", tally(inexact));
    for (const metrics::metric& m : metrics::all()) {
        if (!m.histogram || with_histograms) r.emplace_back(std::string(m.name), m.finish(t));
    }
    return r;
}

// A group name of its own for every tensor, also when two files hold the same name.
std::string unique_group(std::set<std::string>& used, const std::string& name) {
    std::string candidate = name;
    for (int n = 2; !used.insert(candidate).second; ++n) {
        candidate = name + "#" + std::to_string(n);
    }
    return candidate;
}

class analysis_run {
  public:
    analysis_run(const std::vector<tensor_ref>& tensors, const analysis_request& request)
        : request_(request) {
        tensors_ = numeric_only(tensors, result_.skipped);
        for (const quantize::recipe& r : request.recipes) recipes_.push_back(prepare(r));
        inexact_ = std::vector<std::atomic<std::uint64_t>>(tensors_.size());
        for (std::size_t t = 0; t < tensors_.size(); ++t) plan_tensor(t);
        if (!request.blocks_path.empty()) {
            table_ = io::create_hdf5(request.blocks_path, arrays_, {{"schema", "mx.blocks/1"}});
        }
    }

    analysis run(const run_control& control) {
        sweep(tensors_, passes_, control, [&](const loaded_panel& p) { work(p); });
        for (const std::unique_ptr<job>& j : jobs_) {
            result_.results.push_back(finish(tensors_[j->tensor].info(), recipes_[j->recipe].name,
                                             *j, inexact_[j->tensor], request_.histograms));
        }
        if (table_) table_->commit();
        return std::move(result_);
    }

  private:
    void plan_tensor(std::size_t t) {
        const io::tensor_info& info = tensors_[t].info();
        std::vector<grid_job> grids;
        const std::string group =
            request_.blocks_path.empty() ? std::string() : unique_group(groups_, info.name);
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            std::string reason;
            std::optional<geometry> layout = lay_out(info.shape, request_.recipes[r], reason);
            if (!layout) {
                result_.skipped.push_back({info.file, info.name, recipes_[r].name, reason});
                continue;
            }
            auto j = std::make_unique<job>();
            j->tensor = t;
            j->recipe = r;
            j->layout = *layout;
            j->totals = recipes_[r].empty;
            if (request_.histograms) j->histograms = std::make_unique<metrics::histograms>();
            if (!request_.blocks_path.empty()) {
                j->first_array = arrays_.size();
                for (io::planned_array& a :
                     block_arrays(group + "/" + recipes_[r].name, layout->grid_shape)) {
                    arrays_.push_back(std::move(a));
                }
            }
            if (layout->grid.over.elements() != 0) grids.push_back({jobs_.size(), layout->grid});
            jobs_.push_back(std::move(j));
        }
        for (pass& p : plan_passes(t, grids)) {
            first_pass_.push_back(passes_.empty() || passes_.back().tensor != t);
            passes_.push_back(std::move(p));
        }
    }

    void work(const loaded_panel& p) {
        // Every pass of a tensor reads all of it; the first one counts.
        if (first_pass_[p.pass_index]) inexact_[p.of->tensor] += p.inexact;
        for (const grid_job& g : p.of->jobs) work(p, *jobs_[g.job]);
    }

    void work(const loaded_panel& p, job& j) {
        const prepared_recipe& recipe = recipes_[j.recipe];
        metrics::totals totals;
        metrics::segment segment;
        std::unique_ptr<metrics::histograms> histograms;
        if (j.histograms) histograms = std::make_unique<metrics::histograms>();
        std::unique_ptr<block_rows> rows;
        if (table_) rows = std::make_unique<block_rows>(*table_, j.first_array);
        block_scratch scratch;
        quantize_panel(
            recipe.params, base::tensor_id(tensors_[j.tensor].info().name), j.layout.grid, p.where,
            p.x, scratch,
            [&](const block_in_panel& at, const block::block_stats& stats,
                std::span<const std::uint8_t> codes) {
                segment.add(stats);
                if (histograms) histograms->add(stats, codes);
                if (rows) rows->put(at.index, stats);
            },
            [&] { segment.flush(totals); });
        if (rows) rows->flush();
        const std::lock_guard lock(j.guard);
        j.totals.merge(totals);
        if (histograms) j.histograms->merge(*histograms);
    }

    const analysis_request& request_;
    std::vector<tensor_ref> tensors_;
    std::vector<prepared_recipe> recipes_;
    std::vector<std::unique_ptr<job>> jobs_;
    std::vector<pass> passes_;
    std::vector<bool> first_pass_;
    std::vector<std::atomic<std::uint64_t>> inexact_;
    std::set<std::string> groups_;
    std::vector<io::planned_array> arrays_;
    std::unique_ptr<io::array_writer> table_;
    analysis result_;
};

}  // namespace

analysis analyze(const std::vector<tensor_ref>& tensors, const analysis_request& request,
                 const run_control& control) {
    return analysis_run(tensors, request).run(control);
}

}  // namespace mx::pipeline

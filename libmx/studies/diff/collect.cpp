// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/collect.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "libmx/report/members.hpp"

namespace mx::diff {
namespace {

using report::tally;

// What a record says about the place of a tensor.
void add_tensor(report::record& r, const compared_under& c, const std::string& recipe) {
    const io::tensor_info& info = c.tensor->info();
    report::list shape;
    for (const std::uint64_t extent : info.shape) shape.push_back(tally(extent));
    const std::optional<engine::layer_place> place = engine::layer_of(info.name);
    r.emplace_back("shape", std::move(shape));
    r.emplace_back("role", std::string(c.role));
    r.emplace_back("layer", place ? tally(place->layer) : report::value());
    r.emplace_back("recipe", recipe);
}

report::value scale_in(const compared_under& c, std::size_t dump) {
    if (c.tensor_scales.empty()) return {};
    return c.tensor_scales[dump];
}

double share_in_zone(const drift_finding& f) {
    return static_cast<double>(f.in_zone.back()) / static_cast<double>(f.blocks);
}

}  // namespace

diff_collector::diff_collector(const diff_request& request, std::size_t dumps)
    : request_(request), count_(dumps) {
    for (const codec::recipe& r : request.recipes) {
        totals_.push_back({codec::to_string(r), 0, compared_tensor(dumps)});
    }
}

report::record diff_collector::pair_members(std::size_t pair) const {
    report::record r;
    r.emplace_back("file_a", request_.paths[pair]);
    r.emplace_back("file_b", request_.paths[pair + 1]);
    r.emplace_back("label_a", request_.labels.text[pair]);
    r.emplace_back("label_b", request_.labels.text[pair + 1]);
    return r;
}

void diff_collector::add(const compared_under& c) {
    recipe_total& total = totals_[c.recipe];
    ++total.tensors;
    for (std::size_t k = 0; k + 1 < count_; ++k) total.figures.values[k].merge(c.figures.values[k]);
    total.figures.codes.merge(c.figures.codes);
    add_pairs(c);
    const std::string& name = c.tensor->info().name;
    if (auto found = drift_of(name, total.name, c.figures.codes.dumps, request_.labels)) {
        findings_.push_back(std::move(*found));
    }
    if (count_ < 3) return;
    report::record r;
    r.emplace_back("tensor", name);
    add_tensor(r, c, total.name);
    add_series(r, c.figures);
    series_.push_back(std::move(r));
}

void diff_collector::add_pairs(const compared_under& c) {
    const auto dtype = [&](std::size_t dump) {
        return std::string(tensor::row_of(c.tensor->in[dump].info().type).name);
    };
    for (std::size_t k = 0; k + 1 < count_; ++k) {
        report::record r = pair_members(k);
        r.emplace_back("tensor", c.tensor->info().name);
        r.emplace_back("dtype", dtype(k));
        r.emplace_back("dtype_b", dtype(k + 1));
        add_tensor(r, c, totals_[c.recipe].name);
        add_pair(r, c.figures, k);
        r.emplace_back("tensor_scale_a", scale_in(c, k));
        r.emplace_back("tensor_scale_b", scale_in(c, k + 1));
        results_.push_back(r);
    }
}

void diff_collector::finish(diff_result& to) {
    for (const recipe_total& total : totals_) {
        for (std::size_t k = 0; k + 1 < count_ && total.tensors > 0; ++k) {
            report::record all = pair_members(k);
            all.emplace_back("recipe", total.name);
            all.emplace_back("tensors", tally(total.tensors));
            add_pair(all, total.figures, k);
            to.summary.push_back(std::move(all));
        }
    }
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const drift_finding& a, const drift_finding& b) {
                         return share_in_zone(a) > share_in_zone(b);
                     });
    to.results = std::move(results_);
    to.series = std::move(series_);
    to.findings = std::move(findings_);
}

}  // namespace mx::diff

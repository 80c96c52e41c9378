// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/diff/compare_panel.hpp"
#include "libmx/studies/diff/compared_groups.hpp"
#include "libmx/studies/diff/match.hpp"

namespace mx::diff {
namespace {

// Exact sums in memory at a time, half a kilobyte each.
constexpr std::size_t sums_at_once = 16384;
constexpr std::size_t sums_of_values = 5;

struct shown_pair {
    const diff_request& of;
    std::size_t k;
};
constexpr std::array pair_members = std::to_array<report::declared<shown_pair>>({
    {"file_a", "string", "", [](auto& p) { return p.of.paths[p.k]; }},
    {"file_b", "string", "", [](auto& p) { return p.of.paths[p.k + 1]; }},
    {"label_a", "string", "", [](auto& p) { return p.of.labels.text[p.k]; }},
    {"label_b", "string", "", [](auto& p) { return p.of.labels.text[p.k + 1]; }},
});

report::value scale_in(const compared_under& c, std::size_t dump) {
    if (c.tensor_scales.empty()) return {};
    return c.tensor_scales[dump];
}

struct shown_tensor {
    const compared_under& c;
    const std::string& recipe;
    std::size_t k = 0;
};
using tensor_member = report::declared<shown_tensor>;
constexpr std::array name_members{
    tensor_member{"tensor", "@members#tensor", "", [](auto& t) { return t.c.of->tensor; }}};
constexpr std::array dtype_members = std::to_array<tensor_member>({
    {"dtype", "@members#dtype?", "of the first dump; null: members of a group differ",
     [](auto& t) { return t.c.dtypes[t.k]; }},
    {"dtype_b", "@members#dtype?", "of the second", [](auto& t) { return t.c.dtypes[t.k + 1]; }},
});
constexpr std::array place_members = std::to_array<tensor_member>({
    {"shape", "@members#shape", "", [](auto& t) { return report::to_list(t.c.of->shape); }},
    {"role", "@members#role", "", [](auto& t) { return t.c.of->role; }},
    {"layer", "@members#layer", "", [](auto& t) { return t.c.of->layer; }},
    {"recipe", "string", "", [](auto& t) { return t.recipe; }},
});
constexpr std::array scale_members = std::to_array<tensor_member>({
    {"tensor_scale_a", "number?", "", [](auto& t) { return scale_in(t.c, t.k); }},
    {"tensor_scale_b", "number?", "", [](auto& t) { return scale_in(t.c, t.k + 1); }},
});

// A recipe over all tensors.
struct recipe_total {
    std::string name;
    std::uint64_t tensors = 0;
    compared_tensor figures;
};
constexpr std::array total_members = std::to_array<report::declared<recipe_total>>({
    {"recipe", "string", "", [](auto& t) { return t.name; }},
    {"tensors", "count", "", [](auto& t) { return t.tensors; }},
});

double share_in_zone(const drift_finding& f) {
    return static_cast<double>(f.in_zone.back()) / static_cast<double>(f.blocks);
}

// Receives the figures of tensors in order.
class diff_visitor final : public engine::visitor {
  public:
    /// `groups`: empty if every tensor has a record.
    diff_visitor(const diff_request& request, const std::vector<matched_tensor>& tensors,
                 std::size_t dumps, std::optional<compared_groups> groups, diff_result& to)
        : request_(request),
          tensors_(tensors),
          count_(dumps),
          groups_(std::move(groups)),
          result_(to) {
        for (const codec::recipe& r : request.recipes) {
            totals_.push_back({codec::to_string(r), 0, compared_tensor(dumps)});
            zones_.push_back(codec::clamp_zone_of(r));
        }
    }

    std::size_t tensors_at_once() const override {
        return sums_at_once / (sums_of_values * (count_ - 1) + request_.recipes.size() * count_);
    }

    codec::recipe_request requested(const engine::run_job&) const override {
        return {nullptr, codec::detail::codes};
    }

    void begin(const engine::run_batch& b) override {
        values_.clear();
        codes_.clear();
        for (std::size_t t = 0; t < b.tensors.size(); ++t) {
            values_.emplace_back();
            values_.back().figures.resize(count_ - 1);
        }
        for (const engine::run_job& j : b.jobs) {
            codes_.push_back(std::make_unique<shared_codes>());
            codes_.back()->figures = code_figures(count_);
            if (request_.roles.role_of(b.info(j)) == "norm") codes_.back()->zone = zones_[j.recipe];
        }
    }

    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override {
        return compare_panel(p, values_[p.tensor - p.batch.first], codes_);
    }

    void serialize_tensor(const engine::run_batch&, std::size_t tensor,
                          base::archive& with) override {
        for (value_figures& f : values_[tensor].figures) f.serialize(with);
    }
    void serialize_job(const engine::run_batch&, std::size_t job, base::archive& with) override {
        codes_[job]->figures.serialize(with);
    }

    void end(const engine::run_batch& b) override {
        for (const shared_values& v : values_) {
            for (const value_figures& f : v.figures) {
                result_.identical = result_.identical && f.changed + f.zero_signs == 0;
            }
        }
        for (std::size_t i = 0; i < b.jobs.size(); ++i) {
            const engine::run_job& j = b.jobs[i];
            compared_under c(tensors_[j.tensor], request_.roles.role_of(b.info(j)), j.recipe);
            if (codec::has_tensor_scale(request_.recipes[j.recipe])) {
                for (const auto& p : j.params) c.tensor_scales.push_back(double{p->tensor.decode});
            }
            c.figures.values = values_[j.tensor - b.first].figures;
            c.figures.codes = std::move(codes_[i]->figures);
            add(std::move(c), j.tensor);
        }
    }

    // Called after the last tensor.
    void finish() {
        if (groups_) {
            for (const compared_under& c : groups_->take()) add_records(c);
        }
        for (const recipe_total& total : totals_) {
            for (std::size_t k = 0; k + 1 < count_ && total.tensors > 0; ++k) {
                report::record all = report::written(pair_members, {request_, k});
                report::append(all, total_members, total);
                add_pair(all, total.figures, k);
                result_.summary.push_back(std::move(all));
            }
        }
        std::ranges::stable_sort(result_.findings, std::greater(), share_in_zone);
    }

  private:
    // Adds the findings of a tensor, and its record or that of its group.
    void add(compared_under c, std::size_t tensor) {
        recipe_total& total = totals_[c.recipe];
        ++total.tensors;
        total.figures.merge(c.figures);
        const std::string& name = c.of->tensor;
        std::vector<mean_maxima> maxima;
        for (const dump_figures& d : c.figures.codes.dumps) maxima.push_back(mean_of(d));
        if (auto found = drift_of(name, total.name, maxima, request_.labels,
                                  fall_of(c.figures.codes.moves.back(), request_.labels))) {
            result_.findings.push_back(std::move(*found));
        }
        if (maxima.back().blocks != 0) {
            result_.norms.push_back({name, total.name, std::move(maxima)});
        }
        if (groups_) {
            groups_->add(tensor, std::move(c));
        } else {
            add_records(c);
        }
    }

    void add_records(const compared_under& c) {
        const std::string& recipe = totals_[c.recipe].name;
        for (std::size_t k = 0; k + 1 < count_; ++k) {
            report::record r = report::written(pair_members, {request_, k});
            const shown_tensor shown{c, recipe, k};
            report::append(r, name_members, shown);
            report::append(r, dtype_members, shown);
            report::append(r, place_members, shown);
            if (groups_) add_worst(r, c, k);
            add_pair(r, c.figures, k);
            report::append(r, scale_members, shown);
            result_.results.push_back(r);
        }
        if (count_ < 3) return;
        report::record r = report::written(name_members, {c, recipe});
        report::append(r, place_members, {c, recipe});
        add_series(r, c.figures);
        result_.series.push_back(std::move(r));
    }

    const diff_request& request_;
    const std::vector<matched_tensor>& tensors_;
    const std::size_t count_;
    std::optional<compared_groups> groups_;
    diff_result& result_;
    std::vector<codec::clamp_zone> zones_;              // by recipe
    std::deque<shared_values> values_;                  // by tensor of the batch
    std::vector<std::unique_ptr<shared_codes>> codes_;  // by job of the batch
    std::vector<recipe_total> totals_;
};

void check(std::size_t dumps, const diff_request& request) {
    if (dumps < 2) base::refuse("one dump cannot be compared; give two or more FILEs");
    if (dumps > most_dumps) {
        base::refuse("{} dumps were given; at most {} are compared at a time", dumps, most_dumps);
    }
    if (request.paths.size() != dumps || request.labels.text.size() != dumps) {
        base::refuse("give one path and one label for each dump");
    }
}

}  // namespace

void declare_diff(report::member_list& result, report::member_list& series,
                  report::member_list& total) {
    result.add(pair_members).add(name_members).add(dtype_members).add(place_members);
    declare_worst(result);
    declare_pair(result);
    result.add(scale_members);
    declare_series(series.add(name_members).add(place_members));
    declare_pair(total.add(pair_members).add(total_members));
}

diff_result diff(std::span<const io::reader* const> dumps,
                 const std::vector<engine::tensor_ref>& chosen, const diff_request& request,
                 const engine::run_control& control) {
    check(dumps.size(), request);
    diff_result result;
    matched_dumps found = match_dumps(dumps, request.paths, chosen);
    result.left_out = std::move(found.left_out);
    result.tensors = found.tensors.size();
    result.identical = !found.tensors.empty();
    std::vector<std::vector<engine::tensor_ref>> models(dumps.size());
    for (const matched_tensor& t : found.tensors) {
        result.elements += t.info().elements;
        for (std::size_t d = 0; d < dumps.size(); ++d) models[d].push_back(t.in[d]);
    }
    std::optional<compared_groups> groups;
    if (!request.groups.empty()) {
        groups.emplace(analysis::group_tensors(models.front(), request.groups, request.roles),
                       request.recipes.size());
    }
    diff_visitor study(request, found.tensors, dumps.size(), std::move(groups), result);
    engine::visitor* const visitors[] = {&study};
    for (engine::skipped_tensor& s :
         engine::run(models, request, visitors, control, {.values = true})) {
        result.left_out.push_back(std::move(s));
    }
    study.finish();
    return result;
}

}  // namespace mx::diff

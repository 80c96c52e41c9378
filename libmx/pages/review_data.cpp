// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/review_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/policy/offers.hpp"
#include "libmx/report/command_line.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& message) {
    throw base::error(base::error_kind::input, message, {file, {}, {}});
}

// Whether a result counts: it is not from values multiplied in a phase sweep.
bool counts(const analysis::result& r) { return r.phase.value_or(0) == 0; }

// Bounds the norms left out of a run, so that sums are integers that a double represents.
constexpr double most_norms = 9007199254740992;  // 2^53

// The metrics that a page shows, their titles, and which end of their range is bad.
struct shown_metric {
    std::string_view name;
    std::string_view title;
    bool larger_is_worse;
};

constexpr std::array shown_metrics{
    shown_metric{"sqnr_db", "SQNR", false},
    shown_metric{"rmse", "R-MSE", true},
    shown_metric{"nrmse", "R-MSE / RMS", true},
    shown_metric{"clamp_rate", "clamped", true},
    shown_metric{"overflow_rate", "overflow", true},
    shown_metric{"underflow_rate", "underflow", true},
    shown_metric{"saturated_block_rate", "saturated blocks", true},
    shown_metric{"gain", "gain", false},
    shown_metric{"cosine", "cosine", false},
};

bool is_analysis(const result_set& s) {
    return report::text_of(*s.head, "schema") == "mx.analysis/1";
}

// Recipes in the order of their first results, and their cells, without baselines.
class recipe_finder {
  public:
    void see(const analysis::named_recipe& r) {
        if (seen_.insert(r.name).second) all_.push_back(r.recipe);
    }

    compare::sweep_plan take() {
        std::vector<codec::recipe> others = all_;
        policy::leave_out_baselines(others);
        for (const codec::recipe& r : all_) {
            if (std::ranges::find(others, r) != others.end()) add(r);
        }
        if (!plan_.cells.empty()) plan_.baseline = plan_.cells.front();
        return std::move(plan_);
    }

  private:
    void add(const codec::recipe& r) {
        const std::size_t run = plan_.recipes.size();
        plan_.recipes.push_back(r);
        for (compare::cell& c : plan_.cells) {
            if (!compare::is_random(r) || !(without_seed(c.recipe) == without_seed(r))) continue;
            c.runs.push_back(run);
            return;
        }
        plan_.cells.push_back({r, codec::to_string(r), {run}});
    }

    static codec::recipe without_seed(codec::recipe r) {
        r.seed = 0;
        return r;
    }
    std::set<std::string> seen_;
    std::vector<codec::recipe> all_;
    compare::sweep_plan plan_;
};

class gathering {
  public:
    gathering(std::span<const result_set> sets, bool with_metrics)
        : sets_(sets), with_metrics_(with_metrics) {}

    review_data run() {
        recipe_finder recipes;
        for (const result_set& s : sets_) {
            const std::string schema = report::text_of(*s.head, "schema");
            if (!is_analysis(s) && schema != "mx.diff/1") {
                refuse(s.name, fmt::format("schema '{}' cannot be reported; give the JSON of mx "
                                           "analyze, compare, cluster, diff, plan, gate, layer, "
                                           "gemm or runs",
                                           schema));
            }
            note_head(s);
            note_tail(s);
            if (!is_analysis(s)) continue;
            for (const analysis::result& r : *s.results) {
                if (!counts(r)) continue;
                // Costs are sums over elements.
                if (r.elements > 0 && !(r.bits_per_element > 0)) {
                    throw base::error(base::error_kind::input,
                                      "bits_per_element is not a number of bits",
                                      {s.name, r.of->tensor, {}});
                }
                recipes.see(*r.under);
                ++out_.measured;
            }
        }
        out_.plan = recipes.take();
        out_.table = analysis::results_table(out_.plan.recipes);
        for (const result_set& s : sets_) {
            if (is_analysis(s)) out_.repeated += out_.table.add(*s.results);
        }
        if (with_metrics_) fill_metrics();
        find_classes();
        return std::move(out_);
    }

  private:
    void note_head(const result_set& s) {
        if (const auto* tool = report::member<report::record>(*s.head, "tool")) {
            const std::string text = fmt::format("{} {}", report::text_of(*tool, "name"),
                                                 report::text_of(*tool, "version"));
            auto& all = out_.measured_by;
            if (std::ranges::find(all, text) == all.end()) all.push_back(text);
        }
        for (const report::record* of : records_at(*s.head, "inputs")) {
            input_file f{report::text_of(*of, "path"), 0, report::text_of(*of, "sha256"),
                         report::text_of(*of, "given")};
            f.bytes = report::whole(report::number_of(*of, "bytes").value_or(0));
            if (f.given.empty()) f.given = f.path;
            out_.given.emplace(f.path, f.given);
            const auto same = [&](const input_file& o) {
                return o.path == f.path && o.bytes == f.bytes &&
                       (o.sha256 == f.sha256 || o.sha256.empty() || f.sha256.empty());
            };
            const auto at = std::ranges::find_if(out_.inputs, same);
            if (at == out_.inputs.end()) {
                out_.inputs.push_back(std::move(f));
            } else if (at->sha256.empty()) {
                at->sha256 = f.sha256;
            }
        }
    }

    void note_tail(const result_set& s) {
        if (!is_analysis(s)) {
            out_.dumps.push_back(series_of(*s.head, *s.tail));
            return;
        }
        const auto* of = report::member<report::record>(*s.tail, "distributions");
        if (of == nullptr) return;
        std::ranges::copy(records_at(*of, "sums"), std::back_inserter(out_.sums));
        std::ranges::copy(records_at(*of, "norms"), std::back_inserter(out_.norms));
        const double left_out = report::number_of(*of, "norms_left_out").value_or(0);
        if (left_out > 0 && left_out < most_norms) {
            out_.norms_left_out += report::whole(left_out);
        }
    }

    // Means over the seeds of a cell; undefined if one of them is undefined.
    void fill_metrics() {
        for (const shown_metric& m : shown_metrics) {
            const metrics::metric& row = *metrics::find(m.name);
            report::explorer::metric to;
            to.name = std::string(m.name);
            to.title = std::string(m.title);
            to.share = row.unit == "share";
            to.unit = to.share ? "" : std::string(row.unit);
            to.definition = std::string(row.definition);
            to.larger_is_worse = m.larger_is_worse;
            for (const compare::cell& c : out_.plan.cells) {
                const auto seeds = static_cast<double>(c.runs.size());
                std::vector<float>& values = to.values.emplace_back(out_.table.tensors.size());
                for (std::size_t t = 0; t < values.size(); ++t) {
                    for (const std::size_t run : c.runs) {
                        values[t] += static_cast<float>(out_.table.of(t, run).*row.member / seeds);
                    }
                }
            }
            out_.metrics.push_back(std::move(to));
        }
    }

    void find_classes() {
        std::vector<std::string> order;
        for (const engine::role_row& r : engine::roles()) order.emplace_back(r.name);
        const auto given = [this](const analysis::tensor_identity& of) -> const std::string& {
            const auto at = out_.given.find(of.file);
            return at == out_.given.end() ? of.file : at->second;
        };
        std::set<std::string> files, named;
        std::set<std::pair<std::string_view, std::string_view>> names;
        for (const analysis::results_table::row& t : out_.table.tensors) {
            if (std::ranges::find(order, t.of->role) == order.end()) {
                order.push_back(t.of->role);
            }
            files.insert(t.of->file);
            out_.by_file = !names.emplace(given(*t.of), t.of->tensor).second || out_.by_file;
        }
        out_.tensor_files = files.size();
        for (std::size_t t = 0; t < out_.table.tensors.size(); ++t) {
            if (named.insert(out_.file_of(t)).second) out_.files.push_back(out_.file_of(t));
        }
        for (const std::string& role : order) {
            tensor_class c{role, {}};
            for (std::size_t i = 0; i < out_.table.tensors.size(); ++i) {
                if (out_.table.tensors[i].of->role == role) c.tensors.push_back(i);
            }
            if (!c.tensors.empty()) out_.classes.push_back(std::move(c));
        }
        const auto elements = [&](const tensor_class& c) {
            double sum = 0;
            for (const std::size_t t : c.tensors) {
                std::uint64_t most = 0;
                for (std::size_t run = 0; run < out_.table.recipes.size(); ++run) {
                    most = std::max(most, out_.table.of(t, run).elements);
                }
                sum += static_cast<double>(most);
            }
            return sum;
        };
        std::ranges::stable_sort(out_.classes, [&](const tensor_class& a, const tensor_class& b) {
            return elements(a) > elements(b);
        });
    }

    std::span<const result_set> sets_;
    bool with_metrics_;
    review_data out_;
};

// Whether the figure is defined in one of the results.
bool any_of(const analysis::results_table& b, double analysis::result::*figure) {
    for (std::size_t t = 0; t < b.tensors.size(); ++t) {
        for (std::size_t run = 0; run < b.recipes.size(); ++run) {
            if (!std::isnan(b.of(t, run).*figure)) return true;
        }
    }
    return false;
}

}  // namespace

bool review_data::decomposed() const { return any_of(table, &analysis::result::grid_error_share); }

bool review_data::has_regret() const { return any_of(table, &analysis::result::regret_share); }

const std::string& review_data::file_of(std::size_t tensor) const {
    const std::string& file = table.tensors[tensor].of->file;
    const auto at = by_file ? given.end() : given.find(file);
    return at == given.end() ? file : at->second;
}

std::string review_data::tensor_name(std::size_t tensor) const {
    const std::string& name = table.tensors[tensor].of->tensor;
    return files.size() > 1 ? fmt::format("{}: {}", file_name(file_of(tensor), files), name) : name;
}

std::string file_name(const std::string& path, const std::vector<std::string>& files) {
    const std::string name = report::last_part(path);
    const auto same = [&](const std::string& f) {
        return f != path && report::last_part(f) == name;
    };
    return std::ranges::any_of(files, same) ? path : name;
}

review_data gather(std::span<const result_set> sets, bool with_metrics) {
    return gathering(sets, with_metrics).run();
}

}  // namespace mx::pages

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/report/members.hpp"

namespace mx::plan {
namespace {

using report::number_of;
using report::text_of;

constexpr std::array<std::string_view, 14> needed{
    "file", "tensor", "dtype", "shape", "role",     "recipe",           "elements",
    "nan",  "inf",    "rmse",  "rms",   "poisoned", "bits_per_element", "squared_error"};

// Beyond this a product of elements and bits could leave the whole numbers of a double.
constexpr double bits_limit = 0x1p53;

struct measured {
    plan_option option;
    double poisoned = 0;
};

// A tensor while its results come in.
struct gathered {
    plan_tensor tensor;
    std::vector<measured> measurements;
    std::size_t forbidden = 0;
    std::string rule;  // one that forbade a choice
};

[[noreturn]] void refuse_input(const std::string& path, const report::record& r,
                               const std::string& why) {
    throw base::error(base::error_kind::input, why, {path, text_of(r, "tensor"), {}});
}

double count_of(const std::string& path, const report::record& r, std::string_view name) {
    const double n = number_of(r, name).value_or(0);
    if (!(n >= 0) || n != std::floor(n)) refuse_input(path, r, fmt::format("{} is no count", name));
    return n;
}

// The bits of the whole tensor: a whole number, which bits_per_element was divided from.
std::uint64_t bits_of(const std::string& path, const report::record& r, double elements) {
    const double bits = number_of(r, "bits_per_element").value_or(-1) * elements;
    const double whole = std::nearbyint(bits);
    if (!(bits >= 0) || bits > bits_limit || std::abs(bits - whole) > 1e-9 * (1 + bits)) {
        refuse_input(path, r, "bits_per_element times elements is no number of bits");
    }
    return static_cast<std::uint64_t>(whole);
}

// With --decompose the sum is there; otherwise it is what R-MSE was taken from.
std::optional<double> error_of(const report::record& r, double counted) {
    const report::value* v = report::find(r, "squared_error");
    const auto* parts = v == nullptr ? nullptr : std::get_if<report::record>(v);
    if (parts != nullptr) {
        if (const auto total = number_of(*parts, "total")) return total;
    }
    const std::optional<double> rmse = number_of(r, "rmse");
    return rmse ? std::optional(*rmse * *rmse * counted) : std::nullopt;
}

class gatherer {
  public:
    explicit gatherer(const candidate_request& request)
        : request_(request), filter_(request.recipes), rule_checked_(request.rules.size(), false) {}

    void add(const analysis::results_input& input) {
        for (const report::record& r : input.content.results) add(input.path, r);
    }

    candidates finish() {
        filter_.check(seen_);
        for (std::size_t i = 0; i < request_.rules.size(); ++i) {
            if (rule_checked_[i]) continue;
            throw base::error(base::error_kind::usage,
                              fmt::format("rule '{}': no result to plan with has that figure, or "
                                          "none is of that class",
                                          base::printable(request_.rules[i].text)));
        }
        const auto stored = static_cast<std::uint32_t>(all_.recipes.size());
        const bool any_kept = std::any_of(tensors_.begin(), tensors_.end(),
                                          [](const gathered& g) { return g.tensor.kept; });
        if (request_.keep || any_kept) all_.recipes.emplace_back(engine::stored_choice);
        for (gathered& g : tensors_) finish(g, stored);
        if (all_.tensors.empty()) {
            throw base::error(base::error_kind::usage,
                              "nothing to plan: no chosen tensor has a measured error");
        }
        return std::move(all_);
    }

  private:
    void add(const std::string& path, const report::record& r) {
        const std::string recipe = text_of(r, "recipe");
        if (std::find(seen_.begin(), seen_.end(), recipe) == seen_.end()) seen_.push_back(recipe);
        if (!filter_.takes(recipe)) return;
        const std::string name = text_of(r, "tensor");
        const auto matches = [&](const std::string& g) { return base::glob_match(g, name); };
        if (!request_.globs.empty() &&
            std::none_of(request_.globs.begin(), request_.globs.end(), matches)) {
            return;
        }
        const double elements = count_of(path, r, "elements");
        if (elements == 0) return;
        gathered& g = tensor_of(path, r, name, elements);
        const double poisoned = count_of(path, r, "poisoned");
        const double counted =
            elements - count_of(path, r, "nan") - count_of(path, r, "inf") - poisoned;
        const std::optional<double> error = error_of(r, counted);
        const std::optional<double> rms = number_of(r, "rms");
        if (!error || !rms) {
            all_.left_out.push_back({name, recipe, "no finite element was measured"});
            return;
        }
        if (!(*error >= 0) || !std::isfinite(*error) || !std::isfinite(*rms) || counted < 0) {
            refuse_input(path, r, "the error of the result cannot be");
        }
        g.tensor.signal = std::max(g.tensor.signal, *rms * *rms * counted);
        if (forbidden(g, r)) return;
        const measured m{{index_of(recipe), bits_of(path, r, elements), *error}, poisoned};
        for (const measured& known : g.measurements) {
            if (known.option.recipe != m.option.recipe) continue;
            if (known.option.bits != m.option.bits ||
                std::abs(known.option.error - *error) > 1e-9 * (known.option.error + *error)) {
                refuse_input(path, r,
                             fmt::format("{} has two results that differ; give results of one run "
                                         "per recipe",
                                         recipe));
            }
            return;
        }
        g.measurements.push_back(m);
    }

    gathered& tensor_of(const std::string& path, const report::record& r, const std::string& name,
                        double elements) {
        const auto [at, added] = places_.emplace(name, tensors_.size());
        if (added) {
            tensors_.emplace_back();
            plan_tensor& t = tensors_.back().tensor;
            t.file = text_of(r, "file");
            t.tensor = name;
            t.dtype = text_of(r, "dtype");
            t.role = text_of(r, "role");
            t.kept = engine::keeps_precision(t.role);
            t.elements = static_cast<std::uint64_t>(elements);
            const report::value* shape = report::find(r, "shape");
            const auto* extents = shape == nullptr ? nullptr : std::get_if<report::list>(shape);
            t.axes = extents == nullptr ? 0 : extents->size();
        }
        const plan_tensor& t = tensors_[at->second].tensor;
        if (t.file != text_of(r, "file")) {
            throw base::error(base::error_kind::usage,
                              fmt::format("tensor '{}' is in '{}' and in '{}'; a plan is of one "
                                          "model: give results of one, analysed under one path",
                                          base::printable(name), base::printable(t.file),
                                          base::printable(text_of(r, "file"))));
        }
        if (t.elements != static_cast<std::uint64_t>(elements)) {
            refuse_input(path, r, "has two results with different numbers of elements");
        }
        return tensors_[at->second];
    }

    bool forbidden(gathered& g, const report::record& r) {
        bool any = false;
        for (std::size_t i = 0; i < request_.rules.size(); ++i) {
            const analysis::gate_rule& rule = request_.rules[i];
            if (!analysis::concerns(rule, r)) continue;
            const analysis::finding f = analysis::judge(rule, r);
            if (f.is == analysis::finding::outcome::absent ||
                f.is == analysis::finding::outcome::no_number) {
                throw base::error(
                    base::error_kind::usage,
                    fmt::format("rule '{}': {} of tensor '{}' is no number in these results",
                                base::printable(rule.text), rule.metric,
                                base::printable(g.tensor.tensor)));
            }
            rule_checked_[i] = true;
            if (f.is == analysis::finding::outcome::holds || g.tensor.kept) continue;
            any = true;
            g.rule = rule.text;
        }
        if (any) {
            ++g.forbidden;
            ++all_.forbidden;
        }
        return any;
    }

    std::uint32_t index_of(const std::string& recipe) {
        const auto at = std::find(all_.recipes.begin(), all_.recipes.end(), recipe);
        if (at == all_.recipes.end()) all_.recipes.push_back(recipe);
        return static_cast<std::uint32_t>(
            std::find(all_.recipes.begin(), all_.recipes.end(), recipe) - all_.recipes.begin());
    }

    void finish(gathered& g, std::uint32_t stored) {
        plan_tensor& t = g.tensor;
        double least_poisoned = 0;
        for (std::size_t i = 0; i < g.measurements.size(); ++i) {
            const double here = g.measurements[i].poisoned;
            least_poisoned = i == 0 ? here : std::min(least_poisoned, here);
        }
        for (const measured& m : g.measurements) {
            if (t.kept) break;
            // Its error is over fewer elements, so that it would look better than it is.
            if (m.poisoned > least_poisoned) {
                all_.left_out.push_back({t.tensor, all_.recipes[m.option.recipe],
                                         "it poisons elements that another recipe keeps"});
                continue;
            }
            t.options.push_back(m.option);
        }
        if ((request_.keep || t.kept) && (!g.measurements.empty() || g.forbidden > 0)) {
            if (const std::optional<int> bits = engine::bits_of_dtype(t.dtype)) {
                t.options.push_back({stored, t.elements * static_cast<std::uint64_t>(*bits), 0});
            }
        }
        if (!t.options.empty()) {
            all_.tensors.push_back(std::move(t));
        } else if (g.forbidden > 0) {
            throw base::error(
                base::error_kind::usage,
                fmt::format("tensor '{}': every recipe breaks a rule ('{}' is one); give another "
                            "recipe, or --keep to leave tensors as they are stored",
                            base::printable(t.tensor), base::printable(g.rule)));
        } else if (t.kept && !g.measurements.empty()) {
            all_.left_out.push_back(
                {t.tensor, "",
                 fmt::format("it keeps its stored precision, and {} is no dtype that "
                             "mx knows the bits of",
                             base::printable(t.dtype))});
        } else {
            all_.left_out.push_back({t.tensor, "", "no recipe has a measured error"});
        }
    }

    const candidate_request& request_;
    analysis::recipe_filter filter_;
    candidates all_;
    std::vector<std::string> seen_;
    std::vector<gathered> tensors_;
    std::unordered_map<std::string, std::size_t> places_;
    std::vector<bool> rule_checked_;
};

}  // namespace

std::uint64_t candidates::elements() const {
    std::uint64_t n = 0;
    for (const plan_tensor& t : tensors) n += t.elements;
    return n;
}

double candidates::signal() const {
    double sum = 0;
    for (const plan_tensor& t : tensors) sum += t.signal;
    return sum;
}

report::read_options plan_members(const std::vector<analysis::gate_rule>& rules) {
    report::read_options options;
    options.keep = [&rules](std::string_view name) {
        return std::find(needed.begin(), needed.end(), name) != needed.end() ||
               std::any_of(rules.begin(), rules.end(), [&](const analysis::gate_rule& r) {
                   return analysis::first_member(r.metric) == name;
               });
    };
    return options;
}

candidates gather_candidates(const std::vector<analysis::results_input>& inputs,
                             const candidate_request& request) {
    for (const analysis::gate_rule& rule : request.rules) {
        if (rule.subject == analysis::rule_subject::totals) {
            throw base::error(base::error_kind::usage,
                              fmt::format("rule '{}': a plan chooses per tensor; rules over the "
                                          "summary are for mx gate",
                                          base::printable(rule.text)));
        }
    }
    gatherer all(request);
    for (const analysis::results_input& input : inputs) all.add(input);
    return all.finish();
}

}  // namespace mx::plan

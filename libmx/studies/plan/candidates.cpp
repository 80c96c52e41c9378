// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "libmx/analysis/groups.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/task.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/policy/commands.hpp"
#include "libmx/policy/operands.hpp"
#include "libmx/policy/recipe_verdicts.hpp"

namespace mx::plan {
namespace {

// Large members of results that are not requested.
constexpr std::array<std::string_view, 4> histograms{"code_histogram", "scale_histogram",
                                                     "amax_mantissa_histogram", "block_spread"};

// Beyond this a product of elements and bits could exceed the integers of a double.
constexpr double bits_limit = 0x1p53;

struct measured {
    plan_option option;
    std::uint64_t poisoned = 0;
};

// A tensor while its results are read.
struct gathered {
    plan_tensor tensor;
    std::vector<measured> measurements;
    std::size_t forbidden = 0;
    std::string rule;                                // one that forbids a choice
    std::optional<std::size_t> judged;               // index in the judged model
    std::optional<policy::reached_limit> ruled_out;  // the first one that rules out a recipe
    bool kept = false;
    bool seen = false;  // it has a result with an error
};

[[noreturn]] void refuse_input(const std::string& path, const analysis::result& r,
                               const std::string& why) {
    throw base::error(base::error_kind::input, why, {path, r.of->tensor, {}});
}

// The bits of the whole tensor: the integer from which bits_per_element was computed.
std::uint64_t bits_of(const std::string& path, const analysis::result& r) {
    const double bits =
        analysis::value_or(r.bits_per_element, -1) * static_cast<double>(r.elements);
    const double whole = std::nearbyint(bits);
    if (!(bits >= 0) || bits > bits_limit || std::abs(bits - whole) > 1e-9 * (1 + bits)) {
        refuse_input(path, r, "bits_per_element times elements is not a number of bits");
    }
    return static_cast<std::uint64_t>(whole);
}

// The bits that the tensor takes as stored; results of earlier versions only say its dtype.
std::optional<std::uint64_t> stored_bits_of(const analysis::tensor_identity& of,
                                            std::uint64_t elements) {
    if (of.stored_bytes) return 8 * static_cast<std::uint64_t>(*of.stored_bytes);
    const std::optional<int> bits = engine::bits_of_dtype(of.dtype);
    if (!bits) return {};
    return elements * static_cast<std::uint64_t>(*bits);
}

class gatherer {
  public:
    gatherer(const candidate_request& request, const policy::judged_model& judged)
        : request_(request),
          judged_(judged),
          verdicts_(judged),
          filter_(request.recipes),
          rule_checked_(request.rules.size(), false) {}

    void add(const analysis::results_input& input) {
        analysis::result_reader reader(input.path);
        base::task comparing("comparing recipes", input.content.results.size());
        for (const report::record& r : input.content.results) {
            add(input.path, r, reader.read(r));
            comparing.step();
        }
    }

    candidates finish() {
        filter_.check(seen_);
        for (std::size_t i = 0; i < request_.rules.size(); ++i) {
            if (rule_checked_[i]) continue;
            base::refuse(
                "rule '{}': no result to plan with has that figure, or none is of that class",
                base::printable(request_.rules[i].text));
        }
        const auto stored = static_cast<std::uint32_t>(all_.recipes.size());
        all_.recipes.push_back({std::string(engine::stored_choice), {}});
        for (gathered& g : tensors_) finish(g, stored);
        if (all_.tensors.empty()) refuse_nothing();
        share_storage();
        group(stored);
        return std::move(all_);
    }

  private:
    // Tensors of one storage, of one fused matrix and of one --group get one recipe, and so do
    // those that such tensors connect.
    void group(std::uint32_t stored) {
        const std::size_t count = all_.tensors.size();
        std::vector<std::size_t> first(count);  // a tensor before it in its group, or itself
        std::vector<std::string> names;         // by the first tensor of a group
        const auto first_of = [&](std::size_t t) {
            while (first[t] != t) t = first[t] = first[first[t]];
            return t;
        };
        const auto join = [&](std::size_t a, std::size_t b) {
            a = first_of(a), b = first_of(b);
            first[std::max(a, b)] = std::min(a, b);
        };
        std::map<std::string, std::size_t> fused;
        for (std::size_t t = 0; t < count; ++t) {
            first[t] = t;
            const std::string& name = all_.tensors[t].of->tensor;
            // What the policy recommends is of each tensor for itself.
            names.push_back(request_.separate || request_.follow ? name : engine::fused_name(name));
            if (names[t] != name) join(t, fused.emplace(names[t], t).first->second);
        }
        if (!request_.groups.empty()) {
            const analysis::grouping found = analysis::group_tensors(
                count, [&](std::size_t t) { return *all_.tensors[t].of; }, request_.groups);
            std::vector<std::size_t> begins(found.groups.size(), count);
            for (std::size_t t = 0; t < count; ++t) {
                const std::size_t g = found.group_of[t];
                begins[g] = std::min(begins[g], t);
                if (found.groups[g].tensors == 1) continue;
                join(t, begins[g]);
                names[first_of(t)] = found.groups[g].of->tensor;
            }
        }
        for (std::size_t t = 0; t < count; ++t) {
            if (all_.tensors[t].shares) join(t, *all_.tensors[t].shares);
        }
        std::map<std::size_t, std::size_t> places;  // by first tensor
        for (std::size_t t = 0; t < count; ++t) {
            const std::size_t at = first_of(t);
            const auto [place, is_new] = places.emplace(at, all_.groups.size());
            if (is_new) all_.groups.push_back({names[at], {}});
            all_.groups[place->second].tensors.push_back(t);
        }
        for (plan_group& g : all_.groups) {
            if (g.tensors.size() == 1) g.name = all_.tensors[g.tensors.front()].of->tensor;
            if (all_.options_of(g).empty()) keep_stored(g, stored);
        }
    }

    // The first of the tensors with one storage takes its bits.
    void share_storage() {
        std::map<std::size_t, std::size_t> places;  // by index in the judged model
        for (std::size_t i = 0; i < all_.tensors.size(); ++i) {
            const auto judged =
                judged_.table.find(all_.tensors[i].of->file, all_.tensors[i].of->tensor);
            if (judged) places.emplace(*judged, i);
        }
        std::map<std::size_t, plan_group> alike;  // by index of the first
        for (const auto& [judged, i] : places) {
            const auto owner = judged_.tensors[judged].counted_with;
            const auto first = owner ? places.find(*owner) : places.end();
            if (first == places.end()) continue;
            plan_group& g =
                alike.try_emplace(first->second, plan_group{{}, {first->second}}).first->second;
            g.tensors.push_back(i);
            if (all_.options_of(g).empty()) {  // treated apart: both take their bits
                g.tensors.pop_back();
                continue;
            }
            all_.tensors[i].shares = first->second;
            for (plan_option& o : all_.tensors[i].options) o.bits = 0;
        }
    }

    // No recipe is a choice for all of them.
    void keep_stored(const plan_group& g, std::uint32_t stored) {
        for (const std::size_t i : g.tensors) {
            plan_tensor& t = all_.tensors[i];
            auto bits = stored_bits_of(*t.of, t.elements);
            if (!bits || !request_.rules.empty()) {
                base::refuse(
                    "group '{}': no recipe is a choice for all of its {} tensors; give more "
                    "recipes, --keep to leave tensors as they are stored, or --separate to plan "
                    "fused matrices apart",
                    base::printable(g.name), g.tensors.size());
            }
            if (t.shares) bits = 0;
            t.options = {{stored, *bits, 0, policy::verdict::safe}};
            if (t.reason.empty()) t.reason = "no recipe is a choice for all of its group";
        }
    }

    // `members`: all that the file says of the result, for the rules.
    void add(const std::string& path, const report::record& members, const analysis::result& r) {
        if (r.group) {
            refuse_input(path, r,
                         "is a group of tensors: analyse without --group, and give --group "
                         "to mx plan");
        }
        const std::string& recipe = r.under->name;
        if (std::ranges::find(seen_, recipe) == seen_.end()) seen_.push_back(recipe);
        if (!filter_.takes(recipe)) return;
        if (!codec::has_blocks(r.under->recipe))
            return;  // a baseline: mx quantize --plan writes blocks
        const auto matches = [&](const std::string& g) {
            return base::glob_match(g, r.of->tensor);
        };
        if (!request_.globs.empty() && std::ranges::none_of(request_.globs, matches)) return;
        if (r.elements == 0) return;
        gathered& g = tensor_of(path, r);
        if (g.kept) {
            forbidden(g, members, false);
            return;
        }
        // With --decompose the results contain the sum; otherwise it follows from R-MSE.
        const double sum = r.squared_error.front();
        const double error = std::isnan(sum) ? r.rmse * r.rmse * r.counted() : sum;
        if (std::isnan(error) || std::isnan(r.rms)) {
            all_.left_out.push_back({r.of->tensor, recipe, "no finite element was measured"});
            return;
        }
        if (!(error >= 0) || !std::isfinite(error) || !std::isfinite(r.rms) || r.counted() < 0) {
            refuse_input(path, r, "the error of the result cannot be");
        }
        g.tensor.signal = std::max(g.tensor.signal, r.rms * r.rms * r.counted());
        const std::optional<policy::verdict> is = offered(g, recipe);
        if (forbidden(g, members, is.has_value()) || !is) return;
        const measured m{{index_of(*r.under), bits_of(path, r), error, *is}, r.poisoned};
        for (const measured& known : g.measurements) {
            if (known.option.recipe != m.option.recipe) continue;
            if (known.option.bits != m.option.bits ||
                std::abs(known.option.error - error) > 1e-9 * (known.option.error + error)) {
                refuse_input(path, r,
                             fmt::format("{} has two results that differ; give results of one run "
                                         "per recipe",
                                         recipe));
            }
            return;
        }
        g.measurements.push_back(m);
    }

    gathered& tensor_of(const std::string& path, const analysis::result& r) {
        const auto [at, added] = places_.emplace(r.of->tensor, tensors_.size());
        if (added) {
            plan_tensor& t = tensors_.emplace_back().tensor;
            t.of = r.of;
            t.elements = r.elements;
            gathered& g = tensors_.back();
            g.judged = judged_.table.find(r.of->file, r.of->tensor);
            if (g.judged) {
                const policy::decision& d = judged_.says.decisions[*g.judged];
                g.kept = !d.whole_blocks;
                if (g.kept || request_.follow) t.reason = d.reason;
            }
        }
        const plan_tensor& t = tensors_[at->second].tensor;
        if (t.of->file != r.of->file) {
            base::refuse(
                "tensor '{}' is in '{}' and in '{}'; a plan is of one "
                "model: give results of one, analysed under one path",
                base::printable(r.of->tensor), base::printable(t.of->file),
                base::printable(r.of->file));
        }
        if (t.elements != r.elements) {
            refuse_input(path, r, "has two results with different numbers of elements");
        }
        return tensors_[at->second];
    }

    // `offered`: whether the rule removes a choice.
    bool forbidden(gathered& g, const report::record& r, bool offered) {
        bool any = false;
        for (std::size_t i = 0; i < request_.rules.size(); ++i) {
            const analysis::gate_rule& rule = request_.rules[i];
            if (!analysis::concerns(rule, r)) continue;
            const analysis::finding f = analysis::judge(rule, r);
            if (f.is == analysis::finding::outcome::absent ||
                f.is == analysis::finding::outcome::no_number) {
                base::refuse("rule '{}': {} of tensor '{}' is not a number in these results",
                             base::printable(rule.text), rule.metric,
                             base::printable(g.tensor.of->tensor));
            }
            rule_checked_[i] = true;
            if (f.is == analysis::finding::outcome::holds || !offered) continue;
            any = true;
            g.rule = rule.text;
        }
        if (any) {
            ++g.forbidden;
            ++all_.forbidden;
        }
        return any;
    }

    std::uint32_t index_of(const analysis::named_recipe& r) {
        const auto at = std::ranges::find(all_.recipes, r.name, &analysis::named_recipe::name);
        const auto index = static_cast<std::uint32_t>(at - all_.recipes.begin());
        if (at == all_.recipes.end()) all_.recipes.push_back(r);
        return index;
    }

    void finish(gathered& g, std::uint32_t stored) {
        plan_tensor& t = g.tensor;
        const std::optional<std::uint64_t> stored_bits = stored_bits_of(*t.of, t.elements);
        if (g.kept) {
            auto bits = stored_bits;
            if (g.judged && judged_.tensors[*g.judged].counted_with) {
                bits = 8 * judged_.says.decisions[*g.judged].bytes;
            }
            all_.kept.push_back({t.of, t.elements, bits, t.reason});
            return;
        }
        std::uint64_t least_poisoned = t.elements;
        for (const measured& m : g.measurements) {
            least_poisoned = std::min(least_poisoned, m.poisoned);
        }
        for (const measured& m : g.measurements) {
            // Its error covers fewer elements, so it would look better than it is.
            if (m.poisoned > least_poisoned) {
                all_.left_out.push_back({t.of->tensor, all_.recipes[m.option.recipe].name,
                                         "it poisons elements that another recipe keeps"});
                continue;
            }
            t.options.push_back(m.option);
        }
        sort_options(g);
        const bool by_policy =
            request_.follow
                ? g.judged && judged_.says.decisions[*g.judged].recipe == policy::keep_choice
                : t.options.empty() && g.ruled_out && g.forbidden == 0;
        const bool quantized = g.judged && judged_.says.decisions[*g.judged].quantized;
        const bool asked =
            (request_.keep || quantized) && (!g.measurements.empty() || g.forbidden > 0);
        if (request_.follow && by_policy) t.options.clear();
        if ((asked || by_policy) && stored_bits) {
            // First: of equal choices it is the one.
            t.options.insert(t.options.begin(), {stored, *stored_bits, 0, policy::verdict::safe});
        }
        if (by_policy && !request_.follow) t.reason = "it " + policy::describe(*g.ruled_out);
        if (!t.options.empty()) {
            all_.tensors.push_back(std::move(t));
        } else if (g.forbidden > 0) {
            base::refuse(
                "tensor '{}': every recipe breaks a rule ('{}' is one); give another "
                "recipe, or --keep to leave tensors as they are stored",
                base::printable(t.of->tensor), base::printable(g.rule));
        } else if (by_policy) {
            all_.left_out.push_back(
                {t.of->tensor, "",
                 fmt::format("it keeps its stored precision, and how many bits {} takes is "
                             "unknown",
                             base::printable(t.of->dtype))});
        } else if (g.seen) {
            all_.left_out.push_back(
                {t.of->tensor, "",
                 fmt::format("it was measured under no recipe that the policy {} names for it",
                             judged_.by.name)});
        } else {
            all_.left_out.push_back({t.of->tensor, "", "no recipe has a measured error"});
        }
    }

    // Of equal choices a plan takes the first: that of fewest bits, then of the policy's order.
    void sort_options(gathered& g) const {
        std::vector<std::string> order;
        if (g.judged) {
            for (const policy::rule* r :
                 judged_.by.candidates(judged_.says.decisions[*g.judged].role)) {
                order.push_back(policy::recipe_key(*r->recipe));
            }
        }
        const auto place = [&](const plan_option& o) {
            const auto key = policy::recipe_key(all_.recipes[o.recipe].recipe);
            const auto at = std::ranges::find(order, key);
            return std::tuple(o.bits, at - order.begin(),
                              std::string_view(all_.recipes[o.recipe].name));
        };
        std::ranges::stable_sort(g.tensor.options, {}, place);
    }

    // The policy's verdict on a choice; nullopt if it may not be chosen.
    std::optional<policy::verdict> offered(gathered& g, const std::string& recipe) {
        g.seen = true;
        const auto column = judged_.table.find(recipe);
        if (!g.judged || !column) return {};
        const policy::decision& d = judged_.says.decisions[*g.judged];
        if (request_.follow) {
            if (d.undecided) refuse_undecided(g, d);
            return d.recipe == recipe ? std::optional(d.is) : std::nullopt;
        }
        const std::optional<policy::recipe_verdict> v = verdicts_.of(*g.judged, *column);
        if (!v || (request_.recipes.empty() && !v->candidate)) return {};
        if (v->is != policy::verdict::no) return v->is;
        if (v->why) {
            ++all_.vetoed;
            if (!g.ruled_out) g.ruled_out = v->why;
        }
        return {};
    }

    // The measurements that are missing for a decision, as a sentence; empty if none are.
    std::string how_to_measure() const {
        if (judged_.says.missing.empty()) return {};
        const std::string command =
            policy::command_of(judged_.says.missing.front(), judged_.options);
        // A message that is cut short would end with a part of it.
        constexpr std::size_t most = 600;
        if (command.empty() || command.size() > most) return {};
        return "; measure it with: " + command;
    }

    [[noreturn]] void refuse_undecided(const gathered& g, const policy::decision& d) const {
        base::refuse("tensor '{}': the policy {} is undecided: {}{}",
                     base::printable(g.tensor.of->tensor), judged_.by.name, d.reason,
                     how_to_measure());
    }

    [[noreturn]] void refuse_nothing() const {
        std::string why = "no chosen tensor has a measured error";
        const bool measured =
            std::ranges::any_of(tensors_, [](const gathered& g) { return !g.kept && g.seen; });
        if (measured) {
            why = fmt::format(
                "no result is of a recipe that the policy {} names for its tensor{}{}",
                judged_.by.name, request_.recipes.empty() ? "; choose one with --recipe" : "",
                how_to_measure());
        } else if (!all_.kept.empty()) {
            const kept_tensor& t = all_.kept.front();
            why = fmt::format("the policy {} keeps what is chosen as it is stored ('{}': {})",
                              judged_.by.name, base::printable(t.of->tensor), t.reason);
        }
        base::refuse("nothing to plan: " + why);
    }

    const candidate_request& request_;
    const policy::judged_model& judged_;
    policy::recipe_verdicts verdicts_;
    analysis::recipe_filter filter_;
    candidates all_;
    std::vector<std::string> seen_;
    std::vector<gathered> tensors_;
    base::text_map<std::size_t> places_;
    std::vector<bool> rule_checked_;
};

}  // namespace

std::vector<plan_option> candidates::options_of(const plan_group& g) const {
    std::vector<plan_option> common;
    for (const plan_option& o : tensors[g.tensors.front()].options) {
        plan_option sum{o.recipe, 0, 0, o.is};
        const bool all = std::ranges::all_of(g.tensors, [&](std::size_t t) {
            const plan_option* const at = option_of(t, o.recipe);
            if (at == nullptr) return false;
            sum.bits += at->bits;
            sum.error += at->error;
            return true;
        });
        if (all) common.push_back(sum);
    }
    return common;
}

const plan_option* candidates::option_of(std::size_t tensor, std::uint32_t recipe) const {
    const std::vector<plan_option>& options = tensors[tensor].options;
    const auto at = std::ranges::find(options, recipe, &plan_option::recipe);
    return at == options.end() ? nullptr : &*at;
}

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

report::read_options plan_members() {
    report::read_options options;
    options.keep = [](std::string_view name) {
        return std::ranges::find(histograms, name) == histograms.end();
    };
    return options;
}

candidates gather_candidates(const std::vector<analysis::results_input>& inputs,
                             const candidate_request& request, const policy::judged_model& judged) {
    for (const analysis::gate_rule& rule : request.rules) {
        if (rule.compare == nullptr) {
            base::refuse("rule '{}': every plan goes by the policy; this rule is for mx gate",
                         base::printable(rule.text));
        }
        if (rule.subject == analysis::rule_subject::totals) {
            base::refuse(
                "rule '{}': a plan chooses per tensor; rules over the summary are for mx gate",
                base::printable(rule.text));
        }
    }
    gatherer all(request, judged);
    for (const analysis::results_input& input : inputs) all.add(input);
    return all.finish();
}

}  // namespace mx::plan

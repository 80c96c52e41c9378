// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "libmx/base/decibels.hpp"
#include "libmx/policy/measurements.hpp"
#include "libmx/policy/offers.hpp"
#include "libmx/policy/operands.hpp"
#include "libmx/policy/risks.hpp"
#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::uint64_t bytes_of(double bits_per_element, std::uint64_t elements) {
    return static_cast<std::uint64_t>(
        std::ceil(bits_per_element * static_cast<double>(elements) / 8));
}

// "already stored in 4.25 bits per element; keeping loses nothing"
std::string kept_text(double bits, std::uint64_t elements) {
    return fmt::format("already stored in {:.4g} bits per element; keeping loses nothing",
                       bits / static_cast<double>(elements));
}

// Results of other programs may lack the bits of an element.
double bits_in(const analysis::result& r) {
    return analysis::value_or(r.bits_per_element, codec::bits_per_element(r.under->recipe));
}

// Empty for tensors with values.
std::string why_not_measurable(const measured_tensor& t) {
    if (!is_floating(t.dtype)) return "integers: indices, masks or counts";
    if (!t.left_out.empty()) return t.left_out;
    return t.elements == 0 ? "it has no elements" : "";
}

class judging {
  public:
    judging(const measured_model& m, const policy& by, const target& on,
            std::span<const score> scores)
        : model_(m),
          tensors_(m.tensors),
          by_(by),
          on_(on),
          scores_(scores),
          whole_blocks_(by.setting("whole_blocks") != 0),
          known_(m, whole_blocks_) {}

    judgement run() {
        out_.policy_name = by_.name;
        out_.policy_version = by_.version;
        out_.target_name = on_.name;
        out_.confidence = "tensor error only";
        out_.decisions.resize(tensors_.size());
        sort_out();
        missing_list missing;
        std::size_t operands = 0;
        for (class_judgement& c : out_.classes) {
            judge_class(c, offers_.at(c.role));
            list_missing(c, offers_.at(c.role), missing);
            operands += c.operands.size();
        }
        out_.missing = missing.take(operands);
        find_unused_scores();
        count_shared_storage();
        rank_risks(out_, model_, known_);
        add_up();
        return std::move(out_);
    }

  private:
    void find_unused_scores() {
        for (const score& s : scores_) {
            const std::string key = recipe_key(s.recipe);
            const bool used = std::ranges::any_of(offers_, [&](const auto& of_role) {
                return std::ranges::find(of_role.second, key, &offer::key) != of_role.second.end();
            });
            if (used || std::ranges::find(out_.unused_scores, key) != out_.unused_scores.end()) {
                continue;
            }
            out_.unused_scores.push_back(key);
        }
    }

    // A dump of a training step has NAME.x, NAME.weight and NAME.dy of its layers, and gradients.
    void find_step() {
        constexpr std::string_view weight = ".weight";
        for (const measured_tensor& t : tensors_) {
            out_.of_a_step = out_.of_a_step || t.name.ends_with(output_gradient);
            if (t.role != "norm" || !t.name.ends_with(weight)) continue;
            norms_.insert(t.name.substr(0, t.name.size() - weight.size()));
        }
    }

    // Empty for the operands of a training step, and outside of one.
    std::string why_no_operand_of_step(const measured_tensor& t, const decision& d) const {
        constexpr std::string_view input = ".x";
        if (!out_.of_a_step) return {};
        if (d.role == "gradient" && !t.name.ends_with(output_gradient)) {
            return "a result of products, dW, not an operand of one";
        }
        if (t.name.ends_with(input) &&
            norms_.contains(t.name.substr(0, t.name.size() - input.size()))) {
            return "the input of a norm, not of a product";
        }
        return {};
    }

    // Which tensors are operands, by class.
    void sort_out() {
        find_step();
        std::map<std::pair<std::string, bool>, class_judgement> classes;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const measured_tensor& t = tensors_[i];
            decision& d = out_.decisions[i];
            d.role = by_.role_of(t.role, t.name);
            d.bytes = t.bytes;
            d.reason = why_no_operand(t, d);
            d.counted = d.reason.empty() || (!out_.of_a_step && d.role != "optimizer");
            if (!d.reason.empty()) continue;
            d.operand = true;
            d.reason = why_not_whole(i);
            d.whole_blocks = d.reason.empty();
            if (!d.whole_blocks) d.padded = padded_extent(t, leading(i).front()->recipe);
            if (std::string why = why_quantized(t, by_); !why.empty()) {
                d.quantized = true;
                d.reason = std::move(why);
            }
            if (!d.whole_blocks && !holds_a_block(i)) continue;
            class_judgement& c = classes[{d.role, d.quantized}];
            c.role = d.role;
            c.quantized = d.quantized;
            c.operands.push_back(i);
            if (!d.whole_blocks) continue;
            c.elements += t.elements;
            c.bytes += t.counted_bytes();
        }
        for (auto& [key, c] : classes) out_.classes.push_back(std::move(c));
        std::stable_sort(out_.classes.begin(), out_.classes.end(),
                         [](const auto& a, const auto& b) { return a.elements > b.elements; });
    }

    // Empty for operands.
    std::string why_no_operand(const measured_tensor& t, decision& d) {
        const rule* keep = by_.kept(d.role);
        if (keep != nullptr && keep->recipe && is_floating(t.dtype) && t.left_out.empty()) {
            const std::uint64_t bytes =
                bytes_of(codec::bits_per_element(*keep->recipe), t.elements);
            d.could_save = t.bytes > bytes ? t.bytes - bytes : 0;
        }
        d.by_rule = keep != nullptr && !keep->why.empty() && why_not_measurable(t).empty();
        if (std::string why = why_kept(t, d.role, by_); !why.empty()) return why;
        if (std::string why = why_no_operand_of_step(t, d); !why.empty()) return why;
        auto at = offers_.find(d.role);
        if (at == offers_.end()) {
            at = offers_.emplace(d.role, offers_of(by_, d.role, on_, scores_)).first;
        }
        if (at->second.empty())
            return fmt::format("{} has no recipe of the policy for it", on_.name);
        return {};
    }

    // What decides whether blocks are whole: the offers that are safe, or all if none is.
    std::vector<const offer*> leading(std::size_t i) const {
        const std::vector<offer>& offers = offers_.at(out_.decisions[i].role);
        const bool any_safe =
            std::any_of(offers.begin(), offers.end(), [](const offer& o) { return o.safe(); });
        std::vector<const offer*> out;
        for (const offer& o : offers) {
            if (o.safe() || !any_safe) out.push_back(&o);
        }
        return out;
    }

    // Empty if an offer's blocks are whole.
    std::string why_not_whole(std::size_t i) const {
        if (!whole_blocks_) return {};
        const std::vector<const offer*> first = leading(i);
        const bool whole = std::any_of(first.begin(), first.end(), [&](const offer* o) {
            return holds_whole_blocks(tensors_[i], o->recipe) || known_.find(i, o->key).has_value();
        });
        return whole ? std::string() : padding_text(tensors_[i], first.front()->recipe);
    }

    // Whether there is a whole block to judge; a part of one along an axis says nothing.
    bool holds_a_block(std::size_t i) const {
        const offer& first = *leading(i).front();
        return summed_extent(tensors_[i]) >= static_cast<std::uint64_t>(first.recipe.block.cols);
    }

    // A recipe over the tensors of a class; none if it was measured on none.
    std::optional<class_recipe> over(const class_judgement& c, const std::string& key,
                                     verdict at_best) {
        class_recipe r;
        r.recipe = key;
        r.is = at_best;
        double bits = 0, noise = 0, most = 0;
        const codec::recipe* recipe = nullptr;
        for (const std::size_t i : c.operands) {
            const bool whole = out_.decisions[i].whole_blocks;
            const auto column = known_.find(i, key, !whole);
            if (!column) {
                r.trials.emplace_back();
                continue;
            }
            recipe = &model_.table.recipes[*column].recipe;
            const measured_tensor& t = tensors_[i];
            const analysis::result result = model_.table.of(i, *column);
            const trial tried =
                judge_tensor(vetoes_, dominated_, t, *column, result, known_.normal(key));
            r.trials.push_back(tried);
            if (!whole) continue;
            const auto elements = static_cast<double>(t.elements);
            r.elements += t.elements;
            bits += bits_in(result) * elements;
            if (!shares_choice(i)) r.bytes += bytes_of(bits_in(result), t.elements);
            const double n = result.nrmse;
            const double own = std::isnan(n) ? 0 : n * n * elements;
            noise += own;
            if (own > most) {
                most = own;
                r.dominant = i;
            }
            if (tried.is == verdict::no) {
                r.vetoed.push_back(i);
                r.vetoed_elements += t.elements;
            } else if (tried.is == verdict::evaluate) {
                r.doubtful.push_back(i);
            }
        }
        if (recipe == nullptr) return {};
        r.preset = recipe->preset;
        r.on_target = support_of(on_, r.preset).is;
        r.normal_db = known_.normal(key).sqnr_db;
        const auto all = static_cast<double>(r.elements);
        r.bits = all > 0 ? bits / all : codec::bits_per_element(*recipe);
        r.sqnr_db = noise > 0 ? base::decibels_of_power(noise / all) : infinite;
        if (c.operands.size() < 2 || most <= by_.setting("dominant") * noise) r.dominant.reset();
        if (r.is == verdict::evaluate && keeps_values(c, r)) r.is = verdict::safe;
        return r;
    }

    // Whether the storage of a tensor is that of another of its class, and is quantized with it.
    bool shares_choice(std::size_t i) const {
        const auto owner = tensors_[i].counted_with;
        return owner && out_.decisions[*owner].role == out_.decisions[i].role;
    }

    bool suits(const class_recipe& r) const {
        return static_cast<double>(r.vetoed_elements) <=
               by_.setting("exceptions") * static_cast<double>(r.elements);
    }

    // Whether a recipe changes no weight of the class. Of activations, a dump is a sample.
    bool keeps_values(const class_judgement& c, const class_recipe& r) const {
        return c.role == "weight" && by_.setting("exact_is_safe") != 0 && r.elements > 0 &&
               r.elements == c.elements && r.sqnr_db == infinite;
    }

    void judge_class(class_judgement& c, const std::vector<offer>& offers) {
        vetoes_ = by_.vetoes(c.role);
        dominated_ = by_.setting("dominated");
        std::vector<const offer*> unmeasured;
        for (const offer& o : offers) {
            auto r = over(c, o.key, o.at_best);
            if (!r) {
                if (o.safe()) unmeasured.push_back(&o);
                continue;
            }
            name_better_scale_rule(c, *r);
            r->scored = o.scored;
            c.candidates.push_back(std::move(*r));
        }
        best_by_width(c);
        for (const codec::recipe& r : baselines()) {
            auto of = over(c, recipe_key(r), verdict::evaluate);
            if (of) c.baselines.push_back(std::move(*of));
        }
        choose(c);
        // Recipes that were not measured might have been chosen.
        for (const offer* o : unmeasured) {
            if (c.elements == 0 || c.quantized) break;
            if (c.chosen && c.candidates[*c.chosen].bits <= codec::bits_per_element(o->recipe))
                continue;
            c.chosen.reset();
            c.undecided = true;
            c.reason = fmt::format("{}, which the policy would choose, was not measured", o->key);
            break;
        }
        decide(c);
    }

    // The scale rule with which the same recipe gains most, if that is enough. It is named, not
    // chosen: which rules were measured depends on the command, and the choice must not.
    void name_better_scale_rule(const class_judgement& c, class_recipe& r) {
        const auto recipes = known_.recipes(c.operands);
        const auto* rule = recipes.at(r.recipe).rule;
        double most = by_.setting("scale_margin_db");
        for (const auto& [key, recipe] : recipes) {
            codec::recipe same = recipe;
            same.rule = rule;
            if (key == r.recipe || recipe_key(same) != r.recipe) continue;
            const auto other = over(c, key, r.is);
            if (!other || other->elements != r.elements || r.elements == 0 || !suits(*other))
                continue;
            const double gain = gain_db(other->sqnr_db, r.sqnr_db);
            if (gain < most || (gain == most && !r.reason.empty())) continue;
            most = gain;
            r.reason = std::isinf(gain) ? fmt::format("{} is exact", key)
                                        : fmt::format("{} gains {:.2f} dB", key, gain);
        }
    }

    // The place of a recipe in the policy's order; those that it does not name come last.
    static std::size_t place_of(const std::vector<const rule*>& named, const std::string& recipe) {
        const auto at = std::ranges::find_if(
            named, [&](const rule* n) { return recipe_key(*n->recipe) == recipe; });
        return static_cast<std::size_t>(at - named.begin());
    }

    void best_by_width(class_judgement& c) {
        const std::vector<const rule*> named = by_.candidates(c.role);
        // Another recipe than the policy's must be better by as much as another scale rule. Of
        // equal ones, that of fewest bits is better, then the first in the policy's order.
        const auto demerit = [&](const class_recipe& r) {
            const std::size_t place = place_of(named, r.recipe);
            const double own = place < named.size() ? by_.setting("scale_margin_db") : 0;
            return std::tuple(r.vetoed_elements, -(r.sqnr_db + own), r.bits, place);
        };
        std::vector<codec::recipe> recipes;
        for (const auto& known : known_.recipes(c.operands)) recipes.push_back(known.second);
        leave_out_baselines(recipes);
        for (const codec::recipe& recipe : recipes) {
            const std::string key = recipe_key(recipe);
            auto r = over(c, key, verdict::evaluate);
            if (!r || r->elements < c.elements || r->elements == 0) continue;
            if (on_.any() ? !supported_anywhere(r->preset) : r->on_target == support::absent) {
                continue;
            }
            auto* best = r->bits > 3 && r->bits <= 5   ? &c.four
                         : r->bits > 5 && r->bits <= 7 ? &c.six
                         : r->bits > 7 && r->bits <= 9 ? &c.eight
                                                       : nullptr;
            if (best == nullptr) continue;
            for (const class_recipe& known : c.candidates) {
                if (known.recipe == key) r->is = known.is;
            }
            if (!*best || demerit(*r) < demerit(**best)) *best = std::move(r);
        }
    }

    void choose(class_judgement& c) {
        if (c.quantized) {
            double bits = 0;
            std::uint64_t elements = 0;
            for (const std::size_t i : c.operands) {
                bits += 8 * static_cast<double>(tensors_[i].bytes);
                elements += tensors_[i].elements;
            }
            c.reason = kept_text(bits, elements);
            return;
        }
        if (c.elements == 0) {
            c.reason = "none of its tensors has an axis of whole blocks";
            return;
        }
        const class_recipe *refused = nullptr, *scored = nullptr;
        for (std::size_t k = 0; k < c.candidates.size(); ++k) {
            const class_recipe& r = c.candidates[k];
            if (scored == nullptr && !r.scored.empty()) scored = &r;
            if (r.is != verdict::safe) continue;
            if (!suits(r)) {
                refused = &r;
            } else if (!c.chosen || r.bits < c.candidates[*c.chosen].bits) {
                c.chosen = k;
            }
        }
        if (c.chosen) {
            const class_recipe& r = c.candidates[*c.chosen];
            const auto tried = std::count_if(
                c.operands.begin(), c.operands.end(), [&, k = std::size_t{0}](auto i) mutable {
                    return r.trials[k++].column && out_.decisions[i].whole_blocks;
                });
            c.reason = fmt::format("{} suits {} of {}", r.recipe,
                                   static_cast<std::size_t>(tried) - r.vetoed.size(),
                                   report::plural(tried, "tensor"));
            if (!r.reason.empty()) c.reason += "; " + r.reason;
            if (!r.scored.empty()) {
                c.reason += "; " + r.scored;
                out_.confidence = r.scored;
            }
        } else if (refused != nullptr) {
            c.reason =
                fmt::format("{} is ruled out for {} % of the elements", refused->recipe,
                            report::percent_text(static_cast<double>(refused->vetoed_elements) /
                                                 static_cast<double>(refused->elements)));
        } else if (scored != nullptr) {
            c.reason = fmt::format("{} {}: {}", scored->recipe,
                                   scored->is == verdict::no ? "is ruled out" : "needs evaluation",
                                   scored->scored);
            out_.confidence = scored->scored;
        } else {
            c.reason = fmt::format("{} has no recipe for it that is safe without evaluation",
                                   on_.any() ? "the policy" : on_.name);
        }
    }

    // The decisions on the tensors of a class.
    void decide(const class_judgement& c) {
        if (c.quantized) return;
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
            const std::size_t i = c.operands[k];
            decision& d = out_.decisions[i];
            const class_recipe* own = c.recommended();
            if (own != nullptr) d.veto = own->trials[k].worst;
            if (!d.whole_blocks) continue;
            if (own == nullptr) {
                d.undecided = c.undecided;
                d.reason = c.reason;
                const auto refused =
                    std::find_if(c.candidates.begin(), c.candidates.end(),
                                 [](const class_recipe& r) { return r.is == verdict::safe; });
                if (refused != c.candidates.end()) d.veto = refused->trials[k].worst;
            } else if (!own->trials[k].column) {
                d.undecided = true;
                d.reason = own->recipe + " was not measured on it";
            } else if (own->trials[k].is != verdict::no) {
                give(i, *own, own->trials[k]);
            } else {
                d.reason = fmt::format("{} is ruled out: it {} (limit {})", own->recipe,
                                       describe(*d.veto->of, d.veto->value),
                                       value_text(*d.veto->of, d.veto->limit));
                if (const class_recipe* next = safe_for(c, k)) {
                    give(i, *next, next->trials[k]);
                }
            }
        }
    }

    // The smallest safe candidate that is not ruled out for an operand, or nullptr.
    static const class_recipe* safe_for(const class_judgement& c, std::size_t operand) {
        const class_recipe* best = nullptr;
        for (const class_recipe& r : c.candidates) {
            const trial& t = r.trials[operand];
            if (r.is != verdict::safe || !t.column || t.is == verdict::no) continue;
            if (best == nullptr || r.bits < best->bits) best = &r;
        }
        return best;
    }

    void give(std::size_t i, const class_recipe& r, const trial& tried) {
        decision& d = out_.decisions[i];
        const std::uint64_t bytes =
            bytes_of(bits_in(model_.table.of(i, *tried.column)), tensors_[i].elements);
        if (bytes >= tensors_[i].bytes) {
            d.reason = fmt::format("stored in as few bytes as {} takes", r.recipe);
            return;
        }
        d.recipe = model_.table.recipes[*tried.column].name;
        d.column = tried.column;
        d.over_normal = tried.over_normal;
        d.is = std::max(r.is, tried.is);
        d.bytes = bytes;
    }

    // A tensor that shares its storage takes no bytes of its own if it is treated alike.
    void count_shared_storage() {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const auto owner = tensors_[i].counted_with;
            if (!owner) continue;
            decision& d = out_.decisions[i];
            if (d.recipe == out_.decisions[*owner].recipe) d.bytes = d.could_save = 0;
        }
    }

    void list_missing(const class_judgement& c, const std::vector<offer>& offers,
                      missing_list& to) const {
        for (const std::size_t i : c.operands) {
            const decision& d = out_.decisions[i];
            for (const offer& o : offers) {
                if (known_.find(i, o.key, !d.whole_blocks)) continue;
                if (whole_blocks_ && !holds_whole_blocks(tensors_[i], o.recipe)) continue;
                to.add(tensors_[i], codec::to_string(o.recipe), o.safe() && d.undecided);
            }
        }
    }

    void add_up() {
        judgement_totals& all = out_.totals;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const measured_tensor& t = tensors_[i];
            const decision& d = out_.decisions[i];
            if (!d.counted) {
                all.not_counted += t.counted_bytes();
                continue;
            }
            all.elements += t.elements;
            all.stored += t.counted_bytes();
            all.recommended += d.bytes;
            if (d.operand) all.operand_elements += t.elements;
            if (d.recipe == keep_choice && !d.undecided) all.kept += d.bytes;
            if (d.undecided) all.undecided += t.counted_bytes();
        }
    }

    static constexpr std::string_view output_gradient = ".dy";

    const measured_model& model_;
    const std::vector<measured_tensor>& tensors_;
    const policy& by_;
    const target& on_;
    std::span<const score> scores_;
    bool whole_blocks_;
    measurements known_;
    judgement out_;
    std::map<std::string, std::vector<offer>> offers_;  // by role
    std::set<std::string> norms_;                       // without ".weight"
    std::vector<const rule*> vetoes_;                   // of the class that is judged
    double dominated_ = 0;
};

}  // namespace

double judgement_totals::ratio() const {
    return recommended == 0 ? 1 : static_cast<double>(stored) / static_cast<double>(recommended);
}

judgement judge(const measured_model& m, const policy& by, const target& on,
                std::span<const score> scores) {
    return judging(m, by, on, scores).run();
}

std::string why_kept(const measured_tensor& t, std::string_view role, const policy& by) {
    if (std::string why = why_not_measurable(t); !why.empty()) return why;
    if (const rule* keep = by.kept(role)) {
        return keep->why.empty() ? fmt::format("the policy {} keeps it", by.name) : keep->why;
    }
    if (long_axes(t.shape) < static_cast<int>(by.setting("least_axes"))) {
        return "a vector, not an operand of a product";
    }
    if (by.candidates(role).empty()) {
        return fmt::format("the policy {} names no recipe for it", by.name);
    }
    return {};
}

std::string why_quantized(const measured_tensor& t, const policy& by) {
    const double bits = 8 * static_cast<double>(t.bytes);
    const bool few = bits < by.setting("quantized_bits") * static_cast<double>(t.elements);
    return few ? kept_text(bits, t.elements) : std::string();
}

std::string_view default_policy(std::span<const measured_tensor> tensors) {
    const bool trains = std::any_of(tensors.begin(), tensors.end(), [](const auto& t) {
        return t.role == "gradient" || t.role == "optimizer";
    });
    return trains ? "training" : "inference";
}

policy policy_for(const std::optional<policy>& stated, std::span<const measured_tensor> tensors) {
    return stated ? *stated : find_policy(default_policy(tensors));
}

}  // namespace mx::policy

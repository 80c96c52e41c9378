// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/policy/operands.hpp"
#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

// A command names this many tensors at most; one for more measures all.
constexpr std::size_t named_tensors = 16;
constexpr double infinite = std::numeric_limits<double>::infinity();

std::string percent(double share) { return report::percent_text(share) + " %"; }

std::string limit_words(const reached_limit& l) {
    return fmt::format("{} (limit {})", words_of(*l.of, l.value), value_text(*l.of, l.limit));
}

std::uint64_t bytes_of(double bits_per_element, std::uint64_t elements) {
    return static_cast<std::uint64_t>(
        std::ceil(bits_per_element * static_cast<double>(elements) / 8));
}

// Bits per element of a recipe in whole blocks.
double nominal_bits(const codec::recipe& r) {
    const double block = static_cast<double>(r.block.rows) * r.block.cols;
    const int offset = r.offset == codec::offset_kind::fp16 ? 16 : 0;
    return r.element->bits() + (r.scale_format->bits() + offset) / block;
}

trial judged(const std::vector<const rule*>& vetoes, double dominated, const measured_tensor& t,
             const measurement& m, const metrics::row& normal) {
    trial out;
    out.of = &m;
    out.lost = lost_share(m);
    for (const rule* v : vetoes) {
        const auto value = v->measured->value({t, m, normal, dominated});
        if (!value) continue;
        const auto reaches = [&](const std::optional<double>& limit, verdict is) {
            if (!limit || *value < *limit) return;
            // Of equally bad ones, the first in the policy's order stands for all.
            if (is <= out.is) return;
            out.is = is;
            out.worst = reached_limit{v->measured, *value, *limit, is};
        };
        reaches(v->no, verdict::no);
        reaches(v->evaluate, verdict::evaluate);
    }
    return out;
}

// A candidate as the target has it.
struct offer {
    std::string key;
    codec::recipe recipe;
    verdict at_best = verdict::evaluate;
    support on_target = support::emulated;
    std::string scored;  // what the scores of a task say; empty: nothing
};

class judging {
  public:
    judging(std::span<const measured_tensor> tensors, const policy& by, const target& on,
            std::span<const score> scores)
        : tensors_(tensors), by_(by), on_(on), scores_(scores) {}

    judgement run() {
        out_.policy_name = by_.name;
        out_.policy_version = by_.version;
        out_.target_name = on_.name;
        out_.confidence = "tensor error only";
        out_.decisions.resize(tensors_.size());
        index();
        sort_out();
        for (class_judgement& c : out_.classes) judge_class(c);
        list_missing();
        rank_risks();
        add_up();
        return std::move(out_);
    }

  private:
    // Which tensors are operands, by class.
    void sort_out() {
        std::map<std::string, std::vector<std::size_t>> classes;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            decision& d = out_.decisions[i];
            d.role = by_.role_of(tensors_[i].role, tensors_[i].name);
            d.bytes = tensors_[i].bytes;
            d.reason = why_kept(tensors_[i], d);
            d.operand = d.reason.empty();
            if (d.operand) classes[d.role].push_back(i);
        }
        for (auto& [role, operands] : classes) {
            class_judgement c;
            c.role = role;
            for (const std::size_t i : operands) {
                c.elements += tensors_[i].elements;
                c.bytes += tensors_[i].bytes;
            }
            c.operands = std::move(operands);
            out_.classes.push_back(std::move(c));
        }
        std::stable_sort(out_.classes.begin(), out_.classes.end(),
                         [](const auto& a, const auto& b) { return a.elements > b.elements; });
    }

    // Empty for operands.
    std::string why_kept(const measured_tensor& t, decision& d) const {
        if (!is_floating(t.dtype)) return "whole numbers: indices, masks or counts";
        if (const rule* keep = by_.kept(d.role)) {
            if (keep->recipe) {
                const std::uint64_t bytes = bytes_of(nominal_bits(*keep->recipe), t.elements);
                d.could_save = t.bytes > bytes ? t.bytes - bytes : 0;
            }
            return keep->why;
        }
        const auto& offers = offers_for(d.role);
        if (offers.empty()) {
            return by_.candidates(d.role).empty()
                       ? fmt::format("the policy {} names no recipe for it", by_.name)
                       : fmt::format("{} has none of the policy's recipes for it", on_.name);
        }
        if (long_axes(t.shape) < static_cast<int>(by_.setting("least_axes"))) {
            return "a vector: no operand of a product";
        }
        const auto fits = [&](const offer& o) { return along(t, o.recipe).has_value(); };
        if (std::any_of(offers.begin(), offers.end(), fits)) return {};
        return fmt::format("no axis holds whole blocks of {}",
                           offers.front().recipe.block.rows * offers.front().recipe.block.cols);
    }

    std::optional<codec::recipe> along(const measured_tensor& t, const codec::recipe& r) const {
        if (by_.setting("whole_blocks") == 0) return r;
        return along_whole_blocks(t.shape, r);
    }

    // The candidates of a role that the target has; scores of a task have changed what they are.
    const std::vector<offer>& offers_for(const std::string& role) const {
        const auto known = offers_.find(role);
        if (known != offers_.end()) return known->second;
        std::vector<offer> offers;
        for (const rule* r : by_.candidates(role)) {
            if (r->at_best == verdict::no) continue;
            const supported_format f = support_of(on_, r->recipe->preset);
            if (f.is == support::absent || (r->native_only && f.is != support::native)) continue;
            offer o{{}, *r->recipe, r->at_best, f.is, {}};
            const bool plain = r->recipe->round == format::rounding::rtne &&
                               r->recipe->rotate.what == transform::kind::none;
            if (!f.recipe.empty() && plain) o.recipe = codec::parse_recipe(f.recipe);
            o.key = recipe_key(o.recipe);
            double loss = -infinite;
            for (const score& s : scores_) {
                if (recipe_key(codec::parse_recipe(s.recipe)) != o.key || s.loss() < loss) continue;
                loss = s.loss();
                o.scored = s.text();
                o.at_best = loss <= by_.setting("task_loss") ? verdict::safe : verdict::no;
            }
            offers.push_back(std::move(o));
        }
        return offers_.emplace(role, std::move(offers)).first->second;
    }

    // What two measurements of one recipe share. Spellings are few, measurements many.
    void index() {
        const bool whole = by_.setting("whole_blocks") != 0;
        std::unordered_map<std::string_view, const std::string*> spellings;
        keys_of_.resize(tensors_.size());
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            for (const measurement& m : tensors_[i].measured) {
                const std::string*& key = spellings[m.text];
                if (key == nullptr) key = &*keys_.insert(recipe_key(m.recipe)).first;
                const bool fits = !whole || holds_whole_blocks(tensors_[i].shape, m.recipe);
                keys_of_[i].push_back(fits ? key : nullptr);
            }
        }
    }

    // The recipes that operands of a class were measured under.
    std::set<std::string> keys_in(const class_judgement& c) const {
        std::set<const std::string*> found;
        for (const std::size_t i : c.operands) {
            found.insert(keys_of_[i].begin(), keys_of_[i].end());
        }
        found.erase(nullptr);
        std::set<std::string> keys;
        for (const std::string* key : found) keys.insert(*key);
        return keys;
    }

    const metrics::row& normal(const std::string& key, const codec::recipe& r) {
        auto at = normals_.find(key);
        if (at == normals_.end()) at = normals_.emplace(key, figures_on_normal_data(r)).first;
        return at->second;
    }

    // The tensor's measurement under the recipe, in whole blocks.
    const measurement* measured(std::size_t i, const std::string& key) const {
        const auto known = keys_.find(key);
        if (known == keys_.end()) return nullptr;
        const auto at = std::find(keys_of_[i].begin(), keys_of_[i].end(), &*known);
        if (at == keys_of_[i].end()) return nullptr;
        return &tensors_[i].measured[static_cast<std::size_t>(at - keys_of_[i].begin())];
    }

    // A recipe over the tensors of a class; none where it was measured on none.
    std::optional<class_recipe> over(const class_judgement& c, const std::string& key,
                                     verdict at_best) {
        class_recipe r;
        r.recipe = key;
        r.is = at_best;
        double bits = 0, noise = 0, most = 0;
        const codec::recipe* recipe = nullptr;
        for (const std::size_t i : c.operands) {
            const measurement* m = measured(i, key);
            if (m == nullptr) {
                r.trials.emplace_back();
                continue;
            }
            recipe = &m->recipe;
            const measured_tensor& t = tensors_[i];
            trial tried = judged(vetoes_, dominated_, t, *m, normal(key, m->recipe));
            const auto elements = static_cast<double>(t.elements);
            r.elements += t.elements;
            bits += m->figures.bits_per_element * elements;
            r.bytes += bytes_of(m->figures.bits_per_element, t.elements);
            const double n = m->figures.nrmse;
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
            r.trials.push_back(std::move(tried));
        }
        if (recipe == nullptr || r.elements == 0) return {};
        const auto all = static_cast<double>(r.elements);
        r.preset = recipe->preset;
        r.on_target = support_of(on_, r.preset).is;
        r.bits = bits / all;
        r.sqnr_db = noise > 0 ? -10 * std::log10(noise / all) : infinite;
        r.normal_db = normal(key, *recipe).sqnr_db;
        if (c.operands.size() < 2 || most <= by_.setting("dominant") * noise) r.dominant.reset();
        return r;
    }

    bool suits(const class_recipe& r) const {
        return static_cast<double>(r.vetoed_elements) <=
               by_.setting("exceptions") * static_cast<double>(r.elements);
    }

    void judge_class(class_judgement& c) {
        vetoes_ = by_.vetoes(c.role);
        dominated_ = by_.setting("dominated");
        const std::vector<offer>& offers = offers_for(c.role);
        std::string wanted;
        bool any_safe = false;
        for (const offer& o : offers) {
            any_safe = any_safe || o.at_best == verdict::safe;
            auto r = over(c, o.key, o.at_best);
            if (!r) {
                if (o.at_best == verdict::safe && wanted.empty()) wanted = o.key;
                continue;
            }
            try_other_scale_rules(c, *r);
            if (!o.scored.empty()) {
                r->reason = o.scored;
                out_.confidence = o.scored;
            }
            c.candidates.push_back(std::move(*r));
        }
        best_by_width(c);
        if (!wanted.empty()) {
            c.undecided = true;
            c.reason = fmt::format("{}, which the policy would choose, was not measured", wanted);
        } else {
            choose(c, any_safe);
        }
        decide(c);
    }

    // The same recipe with another scale rule, where that gains enough.
    void try_other_scale_rules(const class_judgement& c, class_recipe& r) {
        const auto first = std::find_if(r.trials.begin(), r.trials.end(),
                                        [](const trial& t) { return t.of != nullptr; });
        const codec::recipe wanted = first->of->recipe;
        std::set<std::string> others;
        for (const std::string& key : keys_in(c)) {
            codec::recipe same = codec::parse_recipe(key);
            same.rule = wanted.rule;
            if (recipe_key(same) == r.recipe && key != r.recipe) others.insert(key);
        }
        const std::string named = r.recipe;
        for (const std::string& key : others) {
            auto other = over(c, key, r.is);
            if (!other || other->elements != r.elements || !suits(*other)) continue;
            if (other->sqnr_db < r.sqnr_db + by_.setting("scale_margin_db")) continue;
            other->reason =
                fmt::format("gains {:.2f} dB over {}", other->sqnr_db - r.sqnr_db, named);
            r = std::move(*other);
        }
    }

    void best_by_width(class_judgement& c) {
        for (const std::string& key : keys_in(c)) {
            auto r = over(c, key, verdict::evaluate);
            if (!r || r->on_target == support::absent || r->elements < c.elements) continue;
            auto* best = r->bits > 3 && r->bits <= 5   ? &c.four
                         : r->bits > 5 && r->bits <= 7 ? &c.six
                         : r->bits > 7 && r->bits <= 9 ? &c.eight
                                                       : nullptr;
            if (best == nullptr) continue;
            for (const class_recipe& named : c.candidates) {
                if (named.recipe == key) r->is = named.is;
            }
            const auto better = [&](const class_recipe& a, const class_recipe& b) {
                if (a.vetoed_elements != b.vetoed_elements) {
                    return a.vetoed_elements < b.vetoed_elements;
                }
                return a.sqnr_db > b.sqnr_db;
            };
            if (!*best || better(*r, **best)) *best = std::move(r);
        }
    }

    void choose(class_judgement& c, bool any_safe) {
        const class_recipe* refused = nullptr;
        for (std::size_t k = 0; k < c.candidates.size(); ++k) {
            const class_recipe& r = c.candidates[k];
            if (r.is != verdict::safe) continue;
            if (!suits(r)) {
                refused = &r;
                continue;
            }
            if (!c.chosen || r.bits < c.candidates[*c.chosen].bits) c.chosen = k;
        }
        if (c.chosen) {
            const class_recipe& r = c.candidates[*c.chosen];
            const std::size_t tried = static_cast<std::size_t>(std::count_if(
                r.trials.begin(), r.trials.end(), [](const trial& t) { return t.of != nullptr; }));
            c.reason = fmt::format("{} suits {} of {}", r.recipe, tried - r.vetoed.size(),
                                   report::plural(c.operands.size(), "tensor"));
            if (!r.reason.empty()) c.reason += "; " + r.reason;
        } else if (refused != nullptr) {
            c.reason =
                fmt::format("{} is ruled out for {} of the elements: the class keeps its precision",
                            refused->recipe,
                            percent(static_cast<double>(refused->vetoed_elements) /
                                    static_cast<double>(refused->elements)));
        } else if (!any_safe) {
            c.reason = fmt::format("{} has no recipe for it that is safe without evaluation",
                                   on_.any() ? "the policy" : on_.name);
        }
    }

    // The decisions on the tensors of a class.
    void decide(const class_judgement& c) {
        for (std::size_t k = 0; k < c.operands.size(); ++k) {
            const std::size_t i = c.operands[k];
            decision& d = out_.decisions[i];
            const bool untried = c.chosen && c.candidates[*c.chosen].trials[k].of == nullptr;
            if (c.undecided || untried) {
                d.undecided = true;
                d.reason =
                    untried ? c.candidates[*c.chosen].recipe + " was not measured on it" : c.reason;
                continue;
            }
            if (!c.chosen) {
                d.reason = c.reason;
                continue;
            }
            const class_recipe& own = c.candidates[*c.chosen];
            d.veto = own.trials[k].worst;
            if (own.trials[k].is != verdict::no) {
                give(d, i, own, own.trials[k]);
                continue;
            }
            d.reason = fmt::format("{} is ruled out: it {}", own.recipe, limit_words(*d.veto));
            const class_recipe* next = nullptr;
            for (const class_recipe& r : c.candidates) {
                if (r.is != verdict::safe || r.trials[k].of == nullptr ||
                    r.trials[k].is == verdict::no) {
                    continue;
                }
                if (next == nullptr || r.bits < next->bits) next = &r;
            }
            if (next != nullptr) give(d, i, *next, next->trials[k]);
        }
    }

    void give(decision& d, std::size_t i, const class_recipe& r, const trial& t) {
        const std::uint64_t bytes = bytes_of(t.of->figures.bits_per_element, tensors_[i].elements);
        if (bytes >= tensors_[i].bytes) {
            d.reason = fmt::format("stored in as few bytes as {} takes", r.recipe);
            return;
        }
        d.recipe = t.of->text;
        d.figures = t.of;
        d.is = std::max(r.is, t.is);
        d.bytes = bytes;
    }

    void list_missing() {
        // Recipes that are missing on the same tensors for the same reason are one command.
        struct group {
            std::set<std::string> tensors;
            bool needed = false;
        };
        std::map<std::string, group> by_recipe;
        std::size_t operands = 0;
        for (const class_judgement& c : out_.classes) {
            operands += c.operands.size();
            for (const std::size_t i : c.operands) {
                for (const offer& o : offers_for(c.role)) {
                    if (measured(i, o.key) != nullptr) continue;
                    const auto r = along(tensors_[i], o.recipe);
                    if (!r) continue;
                    group& g = by_recipe[codec::to_string(*r)];
                    g.tensors.insert(tensors_[i].name);
                    g.needed = g.needed || o.at_best == verdict::safe;
                }
            }
        }
        std::map<std::pair<std::set<std::string>, bool>, missing_recipes> merged;
        for (const auto& [recipe, g] : by_recipe) {
            missing_recipes& m = merged[{g.tensors, g.needed}];
            m.recipes.push_back(recipe);
            m.needed = g.needed;
            if (g.tensors.size() < operands && g.tensors.size() <= named_tensors) {
                m.tensors.assign(g.tensors.begin(), g.tensors.end());
            }
        }
        for (auto& [key, m] : merged) out_.missing.push_back(std::move(m));
        std::stable_sort(out_.missing.begin(), out_.missing.end(),
                         [](const auto& a, const auto& b) { return a.needed > b.needed; });
    }

    void rank_risks() {
        double all = 0, lost = 0, most = 0;
        for (const class_judgement& c : out_.classes) {
            all += static_cast<double>(c.elements);
            const std::size_t own = c.chosen.value_or(first_safe(c));
            for (std::size_t k = 0; k < c.operands.size(); ++k) {
                risk worst;
                worst.tensor = c.operands[k];
                bool found = false;
                for (std::size_t n = 0; n < c.candidates.size(); ++n) {
                    const trial& t = c.candidates[n].trials[k];
                    if (t.of == nullptr) continue;
                    risk r{c.operands[k],
                           c.candidates[n].recipe,
                           n == own,
                           t.lost,
                           0,
                           t.is,
                           t.worst,
                           {}};
                    if (!found || worse(r, worst)) worst = std::move(r);
                    found = true;
                    if (n != own) continue;
                    const double here =
                        t.lost * static_cast<double>(tensors_[c.operands[k]].elements);
                    lost += here;
                    if (here > most) {
                        most = here;
                        out_.dominant = c.operands[k];
                    }
                }
                if (!found) continue;
                worst.mend = mend_of(c, k, worst);
                out_.risks.push_back(std::move(worst));
            }
        }
        if (most <= by_.setting("dominant") * lost) out_.dominant.reset();
        for (risk& r : out_.risks) {
            r.of_operands = r.lost * static_cast<double>(tensors_[r.tensor].elements) / all;
        }
        std::stable_sort(out_.risks.begin(), out_.risks.end(),
                         [this](const risk& a, const risk& b) { return worse(a, b); });
    }

    static std::size_t first_safe(const class_judgement& c) {
        const auto at = std::find_if(c.candidates.begin(), c.candidates.end(),
                                     [](const class_recipe& r) { return r.is == verdict::safe; });
        return static_cast<std::size_t>(at - c.candidates.begin());
    }

    bool worse(const risk& a, const risk& b) const {
        const auto key = [&](const risk& r) {
            return std::tuple(r.is == verdict::no, r.lost, r.is, r.recommended,
                              tensors_[r.tensor].elements);
        };
        return key(a) > key(b);
    }

    std::string mend_of(const class_judgement& c, std::size_t k, const risk& r) const {
        const decision& d = out_.decisions[r.tensor];
        if (d.undecided) return "undecided";
        if (d.recipe == keep_choice) return "keep its stored precision";
        if (d.figures == nullptr || (r.recommended && r.is != verdict::no)) return {};
        for (const class_recipe& own : c.candidates) {
            const trial& t = own.trials[k];
            if (t.of == d.figures) return fmt::format("{} loses {}", d.recipe, percent(t.lost));
        }
        return d.recipe;
    }

    void add_up() {
        judgement_totals& all = out_.totals;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const decision& d = out_.decisions[i];
            all.elements += tensors_[i].elements;
            all.stored += tensors_[i].bytes;
            all.recommended += d.bytes;
            if (d.operand) {
                all.operand_elements += tensors_[i].elements;
            } else {
                all.kept += tensors_[i].bytes;
            }
            if (d.undecided) all.undecided += tensors_[i].bytes;
        }
    }

    std::span<const measured_tensor> tensors_;
    const policy& by_;
    const target& on_;
    std::span<const score> scores_;
    judgement out_;
    std::vector<const rule*> vetoes_;  // of the class that is judged
    double dominated_ = 0;
    mutable std::map<std::string, std::vector<offer>> offers_;  // by role
    std::set<std::string> keys_;
    std::vector<std::vector<const std::string*>> keys_of_;  // by tensor and measurement; null
                                                            // where blocks are not whole
    std::map<std::string, metrics::row> normals_;           // by key
};

}  // namespace

double judgement_totals::ratio() const {
    return recommended == 0 ? 1 : static_cast<double>(stored) / static_cast<double>(recommended);
}

trial judge_tensor(const policy& by, std::string_view role, const measured_tensor& t,
                   const measurement& m, const metrics::row& normal) {
    return judged(by.vetoes(role), by.setting("dominated"), t, m, normal);
}

judgement judge(std::span<const measured_tensor> tensors, const policy& by, const target& on,
                std::span<const score> scores) {
    return judging(tensors, by, on, scores).run();
}

std::string_view default_policy(std::span<const measured_tensor> tensors) {
    const bool trains = std::any_of(tensors.begin(), tensors.end(), [](const measured_tensor& t) {
        return t.role == "gradient" || t.role == "optimizer";
    });
    return trains ? "training" : "inference";
}

std::string command_of(const missing_recipes& m, std::span<const measured_tensor> tensors) {
    // What a shell would take apart goes into quotes.
    const auto quoted = [](const std::string& text) {
        constexpr std::string_view plain =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
        if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
        std::string out = "'";
        for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return out + "'";
    };
    std::string command = "mx analyze";
    std::set<std::string> files;
    for (const measured_tensor& t : tensors) {
        if (files.insert(t.file).second) command += " " + quoted(t.file);
    }
    for (const std::string& r : m.recipes) command += " -r " + quoted(r);
    for (const std::string& t : m.tensors) {
        std::string glob;
        for (const char c : t) {
            if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
            glob += c;
        }
        command += " -t " + quoted(glob);
    }
    return command;
}

}  // namespace mx::policy

// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "libmx/engine/fused.hpp"
#include "libmx/pages/requested_recipes.hpp"
#include "libmx/pages/review_data.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/policy/commands.hpp"
#include "libmx/policy/operands.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

using policy::class_judgement;
using policy::class_recipe;
using policy::decision;
using policy::judged_model;
using report::cell;

constexpr std::size_t first_risks = 3;
constexpr std::size_t worst_shown = 10;
constexpr std::size_t commands_shown = 3;
constexpr std::size_t named_files = 3;
constexpr std::size_t evaluated_recipes = 3;
constexpr std::size_t named_extents = 3;

// The treatment of a tensor.
enum class outcome : std::uint8_t {
    quantized,
    undecided,
    ruled_out,
    in_few_bits,
    no_whole_blocks,
    no_operand,
    not_counted
};

outcome outcome_of(const decision& d) {
    if (d.column) return outcome::quantized;
    if (!d.operand) return d.counted ? outcome::no_operand : outcome::not_counted;
    if (d.quantized) return outcome::in_few_bits;
    if (!d.whole_blocks) return outcome::no_whole_blocks;
    return d.undecided ? outcome::undecided : outcome::ruled_out;
}

// Tensors with the same treatment: of one role if they are or could be quantized; of any role if
// their kind or shape keeps their precision.
struct group {
    std::vector<std::string> roles;
    std::string recipe;
    outcome is = outcome::no_operand;
    std::size_t doubtful = 0;
    std::uint64_t elements = 0, stored = 0, bytes = 0;
    std::vector<std::size_t> tensors = {};

    bool no_operands() const { return is == outcome::no_operand || is == outcome::not_counted; }
    bool shared() const { return is == outcome::no_whole_blocks || no_operands(); }
};

// Tensors that are or could be quantized come first, ordered by the bytes of their role.
std::vector<group> groups_of(const judged_model& m) {
    std::vector<group> groups;
    std::map<std::string, std::uint64_t> of_role;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        of_role[m.says.decisions[i].role] += m.tensors[i].counted_bytes();
    }
    std::vector<std::size_t> order(m.tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        const std::string &x = m.says.decisions[a].role, &y = m.says.decisions[b].role;
        return std::tuple(of_role[y], x) < std::tuple(of_role[x], y);
    });
    for (const std::size_t i : order) {
        const decision& d = m.says.decisions[i];
        const policy::measured_tensor& t = m.tensors[i];
        const auto same = [&](const group& g) {
            return g.is == outcome_of(d) && g.recipe == d.recipe &&
                   (g.shared() || g.roles.front() == d.role);
        };
        auto at = std::ranges::find_if(groups, same);
        if (at == groups.end()) at = groups.insert(at, group{{}, d.recipe, outcome_of(d)});
        if (at->roles.empty() || at->roles.back() != d.role) at->roles.push_back(d.role);
        at->tensors.push_back(i);
        at->doubtful += d.is == policy::verdict::evaluate ? 1u : 0u;
        at->elements += t.counted_elements();
        at->stored += t.counted_bytes();
        at->bytes += d.bytes;
    }
    std::ranges::stable_sort(groups, {}, [&](const group& g) {
        return g.shared() ? std::tuple(true, ~std::uint64_t{0}, g.is, ~g.stored)
                          : std::tuple(false, ~of_role[g.roles.front()], g.is, ~g.stored);
    });
    return groups;
}

// The class of a role's operands; `in_few_bits`: of those that are quantized already.
const class_judgement* class_of(const judged_model& m, std::string_view role,
                                bool in_few_bits = false) {
    const auto at = std::ranges::find_if(m.says.classes, [&](const class_judgement& c) {
        return c.role == role && c.quantized == in_few_bits;
    });
    return at == m.says.classes.end() ? nullptr : &*at;
}

const class_recipe* chosen_of(const class_judgement* c) {
    return c == nullptr ? nullptr : c->recommended();
}

// An SQNR in a table.
report::value db_value(double sqnr_db) {
    return std::isinf(sqnr_db) ? report::value("exact") : report::value(sqnr_db);
}

std::string db_text(const class_recipe& r) {
    if (std::isinf(r.sqnr_db)) return "exact";
    return fmt::format("{} dB (normal data {})", report::fixed_text(r.sqnr_db, 1),
                       report::fixed_text(r.normal_db, 1));
}

// What was measured of norms that the policy keeps: their largest error relative to their spread,
// under the recipe for which it is smallest, and the blocks that clamp or collapse under it. Empty
// if none was measured.
std::string measured_text(const judged_model& m, std::string_view role) {
    struct figures {
        double error = 0;
        std::size_t tensors = 0, clamped = 0, collapsed = 0, judged = 0;
    };
    std::map<std::string_view, figures> worst;  // by recipe
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        if (m.says.decisions[i].role != role) continue;
        for (const analysis::result& r : m.table.all_of(i)) {
            const codec::recipe& under = r.under->recipe;
            const bool blocks =
                codec::has_blocks(under) && under.block.cols < codec::max_block_elements;
            if (std::isnan(r.spread_error) || !blocks) continue;
            figures& f = worst[r.under->name];
            f.error = std::max(f.error, r.spread_error);
            ++f.tensors;
            f.clamped += r.clamp_rate > 0 || r.saturated_block_rate > 0 ? 1u : 0u;
            f.collapsed += r.collapsed_block_rate > 0 ? 1u : 0u;
            f.judged += std::isnan(r.collapsed_block_rate) ? 0u : 1u;
        }
    }
    const auto least =
        std::ranges::min_element(worst, {}, [](const auto& w) { return w.second.error; });
    if (least == worst.end()) return {};
    const std::string_view recipe = least->first;
    const figures& f = least->second;
    const auto blocks = [&](std::size_t n, const char* what) {
        return n == 0 ? fmt::format("no block {}s", what)
                      : fmt::format("blocks of {} of {} {}", n, f.tensors, what);
    };
    return fmt::format(
        "; measured under {}: {}, {}{}, and the error is up to {} of the gains' standard deviation",
        recipe, blocks(f.clamped, "clamp"), blocks(f.collapsed, "collapse"),
        f.judged == f.tensors ? ""
                              : fmt::format(" ({} of {} have no block with two values)",
                                            f.tensors - f.judged, f.tensors),
        percent(f.error));
}

void add_once(std::vector<std::string>& to, std::string text) {
    if (std::ranges::find(to, text) == to.end()) to.push_back(std::move(text));
}

// A class whose tensors are not operands, or which the policy keeps.
struct kept_class {
    std::string role;
    std::size_t tensors = 0;
    std::uint64_t stored = 0, could_save = 0;
    std::vector<std::string> reasons = {};
};

// The classes of such a group, largest in bytes first.
std::vector<kept_class> kept_classes(const judged_model& m, const group& g) {
    std::vector<kept_class> all;
    for (const std::string& role : g.roles) {
        kept_class& k = all.emplace_back();
        k.role = role;
        for (const std::size_t i : g.tensors) {
            const decision& d = m.says.decisions[i];
            if (d.role != role) continue;
            ++k.tensors;
            k.stored += m.tensors[i].counted_bytes();
            k.could_save += d.could_save;
            // What the policy says is a motive, and no measurement.
            add_once(k.reasons, d.by_rule ? fmt::format("policy: \"{}\"", d.reason) : d.reason);
        }
    }
    std::ranges::stable_sort(all, std::greater{}, &kept_class::stored);
    return all;
}

std::string reason_of(const judged_model& m, const kept_class& k) {
    return fmt::format("{}{}", fmt::join(k.reasons, ", or "), measured_text(m, k.role));
}

std::string roles_text(const judged_model& m, const group& g) {
    std::vector<std::string> roles;
    if (!g.no_operands()) return fmt::format("{}", fmt::join(g.roles, ", "));
    for (const kept_class& k : kept_classes(m, g)) roles.push_back(k.role);
    return fmt::format("{}", fmt::join(roles, ", "));
}

// "172", "27, 48, 12, ...": the K of the group's tensors.
std::string extents_text(const judged_model& m, const group& g) {
    std::vector<std::string> extents;
    for (const std::size_t i : g.tensors) {
        add_once(extents, std::to_string(policy::summed_extent(m.tensors[i])));
    }
    const bool some = extents.size() > named_extents;
    if (some) extents.resize(named_extents);
    return fmt::format("{}{}", fmt::join(extents, ", "), some ? ", ..." : "");
}

// "K = 172 is not a multiple of the block"
std::string uneven_text(const judged_model& m, const group& g) {
    const bool by_rows = std::ranges::any_of(g.tensors, [&](std::size_t i) {
        return m.says.decisions[i].padded == policy::summed_extent(m.tensors[i]);
    });
    if (by_rows) return "blocks do not divide their shape";
    const std::string extents = extents_text(m, g);
    return fmt::format("K = {} {}", extents,
                       extents.find(',') == std::string::npos ? "is not a multiple of the block"
                                                              : "are not multiples of the block");
}

// What padding would cost: of one K in the words of the decision, of several together.
std::string padding_text(const judged_model& m, const group& g) {
    std::vector<std::string> reasons;
    double stored = 0, padded = 0;
    for (const std::size_t i : g.tensors) {
        const policy::decision& d = m.says.decisions[i];
        const std::uint64_t k = policy::summed_extent(m.tensors[i]);
        const auto elements = static_cast<double>(m.tensors[i].elements);
        add_once(reasons, d.reason);
        stored += elements;
        padded += k == 0 ? 0 : elements * static_cast<double>(d.padded) / static_cast<double>(k);
    }
    if (reasons.size() == 1) return reasons.front();
    return fmt::format("K = {} are not multiples of the block; padded they cost {:.1f} % more",
                       extents_text(m, g), stored > 0 ? 100 * (padded - stored) / stored : 0.0);
}

std::string reason_of(const judged_model& m, const group& g) {
    if (g.no_operands()) {
        if (g.roles.size() == 1) return reason_of(m, kept_classes(m, g).front());
        return "not matmul inputs, or kept by the policy: see below";
    }
    if (g.is == outcome::no_whole_blocks) {
        return padding_text(m, g);
    }
    const class_recipe* r = chosen_of(class_of(m, g.roles.front()));
    std::size_t largest = g.tensors.front();
    bool one_reason = true;
    for (const std::size_t i : g.tensors) {
        one_reason = one_reason && m.says.decisions[i].reason == m.says.decisions[largest].reason;
        if (m.tensors[i].bytes > m.tensors[largest].bytes) largest = i;
    }
    const decision& d = m.says.decisions[largest];
    if (g.is == outcome::quantized && r != nullptr && d.reason.empty()) {
        std::string why = db_text(*r);
        why += r->vetoed.empty() && r->doubtful.empty() ? "; no limit reached" : "";
        if (!r->reason.empty()) why += "; " + r->reason;
        if (!r->scored.empty()) why += "; " + r->scored;
        return why;
    }
    if (one_reason) return d.reason;
    if (g.is == outcome::in_few_bits) return class_of(m, g.roles.front(), true)->reason;
    return fmt::format("{} ({}, the largest)", d.reason, tensor_name(m, largest));
}

std::string verdict_text(const group& g) {
    switch (g.is) {
        case outcome::quantized:
            if (g.doubtful == 0) return "safe";
            if (g.doubtful == g.tensors.size()) return "needs evaluation";
            return fmt::format("safe; {} {} evaluation", g.doubtful,
                               g.doubtful == 1 ? "needs" : "need");
        case outcome::undecided:
            return "undecided";
        default:
            return "keep";
    }
}

// The tensors with most of the error of a class.
std::vector<std::string> dominance(const judged_model& m) {
    std::vector<std::string> said;
    for (const class_judgement& c : m.says.classes) {
        const class_recipe* r = c.recommended();
        if (r == nullptr || !r->dominant) continue;
        const double share = static_cast<double>(m.tensors[*r->dominant].elements) /
                             static_cast<double>(r->elements);
        said.push_back(
            fmt::format("More than half of the error of {} under {} is that of one tensor, {}, "
                        "which has {} of the elements.",
                        c.role, r->recipe, tensor_name(m, *r->dominant), percent(share)));
    }
    return said;
}

// "gradient (Dgrad)": with the product of a training step whose K is the axis of the blocks.
std::string class_text(const judged_model& m, const group& g) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> products{
        {{"weight", "Fprop"}, {"activation", "Fprop"}, {"gradient", "Dgrad"}}};
    std::string text = roles_text(m, g);
    if (!m.says.of_a_step || g.no_operands() || g.roles.size() != 1) return text;
    for (const auto& [role, in] : products) {
        if (role == g.roles.front()) text += fmt::format(" ({})", in);
    }
    return text;
}

report::section classes_section(const judged_model& m, const std::vector<group>& groups) {
    const byte_unit unit = unit_of(m.says.totals.stored);
    report::section s{
        .heading = m.says.of_a_step ? "Operands of the step's products" : "What to ship",
        .columns = columns_of(
            {"role", "tensors", "recipe", "verdict", "bits",
             column_of("stored", fmt::format("stored\n{}", unit.name), cell::significant, 3),
             column_of("bytes", fmt::format("then\n{}", unit.name), cell::significant, 3),
             "reason"})};
    for (const group& g : groups) {
        if (g.is == outcome::not_counted) continue;
        const double bits =
            g.elements == 0 ? 0
                            : 8 * static_cast<double>(g.bytes) / static_cast<double>(g.elements);
        s.add(class_text(m, g), g.tensors.size(), g.is == outcome::undecided ? "-" : g.recipe,
              verdict_text(g), bits, static_cast<double>(g.stored) / unit.bytes,
              static_cast<double>(g.bytes) / unit.bytes, reason_of(m, g));
    }
    const std::vector<std::string> dominant = dominance(m);
    s.notes.assign(dominant.begin(), dominant.end());
    return s;
}

// The recommended recipe of each class beside what inference uses today and what the file stores.
// Without rows if no baseline was measured.
report::section baselines_section(const judged_model& m) {
    const byte_unit unit = unit_of(m.says.totals.stored);
    report::section s{
        .heading = "Beside today's formats",
        .columns = columns_of({"role", "recipe", "bits",
                               column_of("bytes", std::string(unit.name), cell::significant, 3),
                               column_of("sqnr_db", 1), column_of("normal_db", 1)})};
    for (const class_judgement& c : m.says.classes) {
        if (c.baselines.empty() || c.elements == 0) continue;
        const auto add = [&](const class_recipe& r) {
            s.add(c.role, r.recipe, r.bits, static_cast<double>(r.bytes) / unit.bytes,
                  db_value(r.sqnr_db), db_value(r.normal_db));
        };
        const class_recipe* const chosen = c.recommended();
        if (chosen != nullptr) add(*chosen);
        for (const class_recipe& today : c.baselines) {
            add(today);
            if (chosen == nullptr || today.bits > chosen->bits) continue;
            if (!(today.sqnr_db > chosen->sqnr_db + m.by.setting("scale_margin_db"))) continue;
            s.notes.push_back(
                fmt::format("{} has a smaller error than {} ({}) in no more bits: it is no "
                            "candidate of the policy, which chooses among formats with blocks.",
                            today.recipe, chosen->recipe, c.role));
        }
        const auto bytes = static_cast<double>(c.bytes);
        s.add(c.role, "as stored", 8 * bytes / static_cast<double>(c.elements), bytes / unit.bytes,
              "exact", "-");
    }
    return s.rows.empty() ? report::section{} : s;
}

std::size_t operands_of(const judged_model& m, const std::string& role) {
    return static_cast<std::size_t>(std::ranges::count_if(
        m.says.decisions, [&](const decision& d) { return d.operand && d.role == role; }));
}

// "17 of 20 weight": a share of the class's operands.
std::string part_of_class(const judged_model& m, const group& g) {
    const std::string& role = g.roles.front();
    const std::size_t operands = operands_of(m, role);
    if (operands != g.tensors.size()) {
        return fmt::format("{} of {} {}", g.tensors.size(), operands, role);
    }
    return fmt::format("{}{} {}", operands == 1 ? "" : "all ", operands, role);
}

std::string tensors_word(std::size_t count) { return count == 1 ? "tensor" : "tensors"; }

// A sentence for each recipe and its classes.
report::notes recipe_sentences(const judged_model& m, const std::vector<group>& groups) {
    report::notes said;
    std::vector<std::string> recipes;
    for (const group& g : groups) {
        if (g.is == outcome::quantized) add_once(recipes, g.recipe);
    }
    for (const std::string& recipe : recipes) {
        std::vector<std::string> parts;
        std::uint64_t stored = 0, bytes = 0;
        std::size_t operands = 0;
        for (const group& g : groups) {
            if (g.is != outcome::quantized || g.recipe != recipe) continue;
            parts.push_back(part_of_class(m, g));
            if (g.doubtful > 0) parts.back() += fmt::format(" ({} to be evaluated)", g.doubtful);
            stored += g.stored;
            bytes += g.bytes;
            operands += operands_of(m, g.roles.front());
        }
        said.push_back(report::item(fmt::format("{} for {} {}: {} instead of {}.", recipe,
                                                listed(parts), tensors_word(operands),
                                                bytes_text(bytes), bytes_text(stored))));
    }
    return said;
}

report::notes undecided_sentences(const judged_model& m, const std::vector<group>& groups) {
    report::notes said;
    for (const group& g : groups) {
        if (g.is != outcome::undecided) continue;
        said.push_back(report::item(
            fmt::format("No recommendation for {} {}: {}.", part_of_class(m, g),
                        tensors_word(operands_of(m, g.roles.front())), reason_of(m, g))));
    }
    return said;
}

// "5.9 % more bytes", "as many bytes"
std::string more_bytes(std::uint64_t bytes, std::uint64_t than) {
    if (bytes == than) return "as many bytes";
    const auto [small, large] = std::minmax(bytes, than);
    const double share = static_cast<double>(large - small) / static_cast<double>(than);
    return fmt::format("{} {} bytes", percent(share), bytes > than ? "more" : "fewer");
}

// "already stored in 4.25 bits per element; keeping loses nothing; re-quantizing to mxfp4 is exact
// and takes as many bytes, to nvfp4 leaves 29.1 dB and takes 5.9 % more bytes": each recipe against
// what is stored.
std::string again_text(const judged_model& m, const group& g) {
    std::string text = reason_of(m, g);
    const class_judgement* c = class_of(m, g.roles.front(), true);
    std::vector<std::string> costs;
    for (const class_recipe& r : c == nullptr ? std::vector<class_recipe>() : c->candidates) {
        if (r.elements != c->elements || r.elements == 0) continue;
        costs.push_back(fmt::format("to {} {}{}", r.recipe,
                                    std::isinf(r.sqnr_db)
                                        ? "is exact and takes "
                                        : fmt::format("leaves {:.1f} dB and takes ", r.sqnr_db),
                                    more_bytes(r.bytes, c->bytes)));
    }
    if (!costs.empty()) text += "; re-quantizing " + fmt::format("{}", fmt::join(costs, ", "));
    return text;
}

// The axes that only shapes suggest; none if the files state them all.
std::optional<std::string> assumption_text(const judged_model& m) {
    if (m.says.of_a_step) {
        return "Blocks run along the last axis, K of Fprop and, for gradients, of Dgrad. Wgrad, "
               "and "
               "weights in Dgrad, need blocks along the other: mx layer measures all three "
               "products.";
    }
    std::size_t matrices = 0, kernels = 0;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const engine::summed_axes& k = m.tensors[i].sums_over;
        if (!m.says.decisions[i].operand || !k.assumed) continue;
        ++(k.last - k.first > 1 ? kernels : matrices);
    }
    if (matrices + kernels == 0) return {};
    std::vector<std::string> along;
    const auto weights = [](std::size_t n) { return report::plural(n, "weight"); };
    if (matrices > 0) along.push_back(fmt::format("the last axis of {}", weights(matrices)));
    if (kernels > 0) {
        along.push_back(fmt::format("all axes after the first of {}", weights(kernels)));
    }
    return fmt::format("{} is assumed: blocks run along {} (--transpose, axis=).",
                       kernels == 0 ? "[out, in]" : "[out, in, ...]", fmt::join(along, " and "));
}

// Operands that keep their precision, and tensors that keep it because they are not operands.
report::notes kept_sentences(const judged_model& m, const std::vector<group>& groups) {
    report::notes said;
    const auto of_bytes = [&](const group& g) {
        return m.says.totals.stored == 0 ? percent(0)
                                         : percent(static_cast<double>(g.stored) /
                                                   static_cast<double>(m.says.totals.stored));
    };
    for (const group& g : groups) {
        if (g.is == outcome::ruled_out) {
            said.push_back(report::item(
                fmt::format("Keep {} {} as stored ({} of the bytes): no safe recipe suits {}.",
                            part_of_class(m, g), tensors_word(operands_of(m, g.roles.front())),
                            of_bytes(g), g.tensors.size() == 1 ? "it" : "them")));
        } else if (g.is == outcome::in_few_bits) {
            said.push_back(report::item(fmt::format(
                "Keep {} {} as stored ({} of the bytes): {}.", part_of_class(m, g),
                tensors_word(operands_of(m, g.roles.front())), of_bytes(g), again_text(m, g))));
        } else if (g.is == outcome::no_whole_blocks) {
            said.push_back(report::item(fmt::format("Keep {} as stored ({} of the bytes): {}.",
                                                    report::plural(g.tensors.size(), "operand"),
                                                    of_bytes(g), uneven_text(m, g))));
        } else if (g.is == outcome::no_operand && std::ranges::all_of(g.tensors, [&](auto i) {
                       return m.tensors[i].elements == 0;
                   })) {
            said.push_back(report::item(
                fmt::format("{} without elements.", report::plural(g.tensors.size(), "tensor"))));
        } else if (g.no_operands()) {
            std::vector<std::string> names, savers;
            std::uint64_t could_save = 0;
            for (const kept_class& k : kept_classes(m, g)) {
                names.push_back(fmt::format("{} {}", k.tensors, k.role));
                could_save += k.could_save;
                if (k.could_save > 0) savers.push_back(k.role);
            }
            const std::string which =
                fmt::format("{} {}", listed(names), tensors_word(g.tensors.size()));
            if (g.is == outcome::not_counted) {
                said.push_back(report::item(fmt::format(
                    "Not counted: {} ({}){}.", which, bytes_text(g.stored),
                    m.says.of_a_step ? ", which no product of the step quantizes" : "")));
                continue;
            }
            said.push_back(report::item(fmt::format(
                "Not quantized: {} ({} of the bytes){}.", which, of_bytes(g),
                could_save == 0 ? std::string()
                                : fmt::format("; {} in 8 bits would save another {}",
                                              listed(savers), bytes_text(could_save)))));
        }
    }
    return said;
}

// "1.04 MB to 531 kB, 1.96 times smaller", "1.04 MB, as stored".
std::string cost_of(const policy::judgement_totals& t) {
    if (t.recommended == t.stored) return bytes_text(t.stored) + ", as stored";
    return fmt::format("{} to {}, {}", bytes_text(t.stored), bytes_text(t.recommended),
                       size_change(t.stored, t.recommended));
}

std::string cost_text(const judged_model& m) {
    const policy::judgement_totals& t = m.says.totals;
    std::string text = "Cost: " + cost_of(t);
    if (t.kept > 0 && t.recommended != t.stored) {
        text += fmt::format(", including {} ({}) as stored", bytes_text(t.kept),
                            percent(static_cast<double>(t.kept) / static_cast<double>(t.stored)));
    }
    if (t.undecided > 0) {
        text += fmt::format(", including {} that are undecided", bytes_text(t.undecided));
    }
    return text + ".";
}

// The tensors whose storage another tensor counts; empty if there are none.
std::string tied_text(const judged_model& m) {
    std::vector<std::string> said;
    std::size_t more = 0;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        const auto owner = m.tensors[i].counted_with;
        if (!owner) continue;
        if (said.size() == named_files) {
            ++more;
            continue;
        }
        said.push_back(
            fmt::format("{} has the storage of {}", tensor_name(m, i), tensor_name(m, *owner)));
    }
    if (said.empty()) return {};
    if (more > 0) said.push_back(fmt::format("{} more are tied", more));
    return fmt::format("Counted once: {}.", listed(said));
}

std::string confidence_text(const judged_model& m) {
    const bool tensors_only = m.says.confidence == "tensor error only";
    const std::vector<std::string>& unused = m.says.unused_scores;
    std::string scores;
    if (!unused.empty()) {
        scores = fmt::format("; of --eval, {} {} no candidate{}", listed(unused),
                             unused.size() == 1 ? "is" : "are", unused.size() == 1 ? "" : "s");
    } else if (tensors_only) {
        const bool any = std::ranges::any_of(m.says.classes, [](const class_judgement& c) {
            return std::ranges::any_of(c.candidates,
                                       [](const class_recipe& r) { return !r.scored.empty(); });
        });
        scores = any ? "; no task was evaluated with what is recommended"
                     : "; no task was evaluated (--eval)";
    }
    return fmt::format("Confidence: {}{}. Policy {}, version {}; target {}{}.", m.says.confidence,
                       scores, m.says.policy_name, m.says.policy_version, m.says.target_name,
                       m.on->any() ? " (--target)" : "");
}

// The command whose scores answer "needs evaluation", of a model that has an embedding and matrices
// named like those of language models; empty where no recipe is left, or a task was evaluated.
std::string evaluation_command(const judged_model& m, const std::vector<group>& groups,
                               const std::vector<requested_recipe>& requested) {
    const bool embeds = std::ranges::any_of(
        m.says.decisions, [](const decision& d) { return d.role == "embedding"; });
    const bool named = std::ranges::any_of(m.tensors, [](const policy::measured_tensor& t) {
        return engine::fused_name(t.name) != t.name;
    });
    std::vector<std::string> recipes;
    for (const group& g : groups) {
        if (g.is == outcome::quantized && recipes.empty()) recipes.push_back(g.recipe);
    }
    for (const requested_recipe& r : requested) recipes.push_back(r.recipe);
    if (!embeds || !named || m.says.of_a_step || m.files.size() != 1 || recipes.empty() ||
        m.says.confidence != "tensor error only") {
        return {};
    }
    recipes.resize(std::min(recipes.size(), evaluated_recipes));
    for (std::string& r : recipes) r = "-r " + report::shell_word(r);
    return fmt::format("mx eval {} --sample 2000 {} --scores scores.json",
                       report::shell_word(m.files.front()), fmt::join(recipes, " "));
}

// "1.31 times the squared error of normal data", "exact".
std::string times_normal(double over_normal) {
    if (over_normal == 0) return "exact";
    return fmt::format("{} times the squared error of normal data",
                       report::significant_text(over_normal, 3));
}

std::string limit_text(const policy::reached_limit& l) {
    return fmt::format("{} (limit {})", policy::describe(*l.of, l.value),
                       policy::value_text(*l.of, l.limit));
}

// "has 1.31 times the squared error of normal data", "has 2 % of its elements clamped (limit 1 %)".
std::string harm_text(const policy::risk& r) {
    if (r.why) return limit_text(*r.why);
    std::string words = "has " + times_normal(r.over_normal);
    if (r.one_element > 0) {
        words += fmt::format(", and one element with {} of its squares",
                             report::percent_text(r.one_element) + " %");
    }
    return words;
}

std::string remedy_text(const decision& d, const policy::risk& r) {
    if (!r.remedy.empty() || d.undecided) return r.remedy;
    return r.is == policy::verdict::evaluate ? "evaluate it, or keep its stored precision"
                                             : "within the limits";
}

report::section risks_section(const judged_model& m) {
    report::section s;
    if (m.says.risks.empty()) return s;
    s.heading = "Largest risks";
    s.warns = true;
    const auto limits = static_cast<std::size_t>(std::ranges::count_if(
        m.says.risks, [](const policy::risk& r) { return r.why.has_value(); }));
    for (const policy::risk& r : m.says.risks) {
        if (!r.noted() || s.notes.size() == first_risks) break;
        const std::string mend = remedy_text(m.says.decisions[r.tensor], r);
        s.notes.push_back(
            report::item(fmt::format("{} {} under {}{}{}.", tensor_name(m, r.tensor), harm_text(r),
                                     r.recipe, mend.empty() ? "" : ": ", mend)));
    }
    if (limits > 0) {
        s.notes.push_back(fmt::format("{} of {} {} a limit of the policy.", limits,
                                      report::plural(m.says.risks.size(), "operand"),
                                      limits == 1 ? "reaches" : "reach"));
    } else if (s.notes.empty()) {
        const policy::risk& r = m.says.risks.front();
        s.notes.push_back(fmt::format(
            "No operand reaches a limit of the policy. The largest error is that of {} under {}: "
            "{}.",
            tensor_name(m, r.tensor), r.recipe, times_normal(r.over_normal)));
    } else {
        s.notes.push_back("No operand reaches a limit of the policy.");
    }
    return s;
}

// The reasons for keeping the classes of one table row, class by class.
report::section kept_reasons_section(const judged_model& m, const std::vector<group>& groups) {
    report::section s;
    for (const group& g : groups) {
        if (!g.no_operands() || g.roles.size() == 1) continue;
        s.heading = m.says.of_a_step ? "Not quantized" : "Kept as stored";
        s.columns = columns_of({"role", "tensors", "bytes", "reason"});
        for (const kept_class& k : kept_classes(m, g)) {
            s.add(k.role, k.tensors, k.stored, reason_of(m, k));
        }
    }
    return s;
}

report::section widths_section(const judged_model& m) {
    report::section s{.heading = "Best format per width",
                      .columns = columns_of({"role", column_of("about", "width", cell::integer),
                                             "recipe", "bits", column_of("sqnr_db", 1),
                                             column_of("normal_db", 1), "ruled_out", "verdict"})};
    for (const class_judgement& c : m.says.classes) {
        const auto add = [&](int about, const std::optional<class_recipe>& r) {
            if (!r) return;
            const bool no = 2 * r->vetoed_elements > r->elements;
            s.add(c.role, about, r->recipe, r->bits, db_value(r->sqnr_db), r->normal_db,
                  r->vetoed.size(), no ? "no" : std::string(policy::to_string(r->is)));
        };
        add(4, c.four);
        add(6, c.six);
        add(8, c.eight);
    }
    if (s.rows.empty()) return {};
    s.notes.push_back(
        "Among measured recipes of formats that a target supports. Lower than normal data: the "
        "tensors have outliers that the format "
        "handles badly.");
    return s;
}

report::section missing_section(const judged_model& m) {
    report::section s{.heading = "Not measured"};
    std::size_t shown = 0;
    for (const policy::missing_recipes& missing : m.says.missing) {
        if (shown++ == commands_shown) break;
        const std::string command = policy::command_of(missing, m.options);
        s.notes.push_back(fmt::format("{}{}{}", listed(missing.recipes),
                                      missing.needed ? ", needed for a decision" : "",
                                      command.empty() ? "." : ":"));
        if (!command.empty()) s.notes.push_back(report::command(command));
    }
    if (s.notes.empty()) return {};
    if (m.says.missing.size() > commands_shown) {
        s.notes.push_back(
            fmt::format("The JSON has {} more.", m.says.missing.size() - commands_shown));
    }
    return s;
}

// Statements that are in no table.

}  // namespace

std::string tensor_name(const judged_model& m, std::size_t tensor) {
    const std::string& name = m.tensors[tensor].name;
    return m.files.size() > 1 ? fmt::format("{}: {}", file_name(m.file_of(tensor), m.files), name)
                              : name;
}

std::vector<std::string> verdict_warnings(const judged_model& m, const verdict_context& c) {
    std::vector<std::string> said = dominance(m);
    said.insert(said.end(), c.warnings.begin(), c.warnings.end());
    return said;
}

std::vector<report::section> verdict_sections(const judged_model& m, const verdict_context& c) {
    if (m.tensors.empty()) return {};
    const std::vector<group> groups = groups_of(m);
    const std::vector<requested_recipe> requested = requested_recipes(m);
    report::section words{.heading = "Verdict"};
    words.notes =
        requested.empty() ? recipe_sentences(m, groups) : requested_sentences(m, requested);
    const report::notes undecided = undecided_sentences(m, groups);
    if (requested.empty())
        words.notes.insert(words.notes.end(), undecided.begin(), undecided.end());
    if (words.notes.empty()) {
        const bool operands = std::ranges::any_of(m.says.decisions, &decision::operand);
        const bool in_few_bits = std::ranges::any_of(
            groups, [](const group& g) { return g.is == outcome::in_few_bits; });
        const bool others = std::ranges::any_of(groups, [](const group& g) {
            return g.is == outcome::ruled_out || g.is == outcome::no_whole_blocks;
        });
        words.notes.push_back(
            !operands
                ? report::item("Quantize nothing: no tensor is an operand of a matrix product.")
            : !in_few_bits
                ? report::item("Quantize nothing: no operand has both whole blocks and a safe "
                               "recipe.")
            : others
                ? report::item("Quantize nothing: operands are quantized already, or have no whole "
                               "blocks or no safe recipe.")
                : report::item("Quantize nothing: every operand is quantized already."));
    }
    for (report::note& said : kept_sentences(m, groups)) words.notes.push_back(std::move(said));
    words.notes.insert(words.notes.end(), undecided.begin(),
                       requested.empty() ? undecided.begin() : undecided.end());
    if (requested.empty()) words.notes.push_back(cost_text(m));
    if (std::string tied = tied_text(m); !tied.empty()) words.notes.push_back(std::move(tied));
    for (const std::string& said : c.warnings) words.notes.push_back(said);
    if (auto assumed = assumption_text(m)) words.notes.push_back(std::move(*assumed));
    words.notes.push_back(confidence_text(m));
    std::vector<report::section> all{std::move(words)};
    for (report::section& s :
         std::vector{requested.empty() ? classes_section(m, groups) : requested_table(m, requested),
                     risks_section(m), baselines_section(m), kept_reasons_section(m, groups),
                     widths_section(m), missing_section(m)}) {
        if (!s.heading.empty()) all.push_back(std::move(s));
    }
    if (const std::string command = evaluation_command(m, groups, requested); !command.empty()) {
        all[1].notes.push_back("What it does to the model, if that is a language model:");
        all[1].notes.push_back(report::command(command));
    }
    if (!c.repeat.empty()) {
        // After the table, because it is long for many recipes.
        all[1].notes.push_back("To repeat this:");
        all[1].notes.push_back(report::command(c.repeat));
    }
    return all;
}

std::string verdict_line(const judged_model& m) {
    std::vector<std::string> files, parts;
    for (const std::string& f : m.files) files.push_back(file_name(f, m.files));
    const std::size_t more = files.size() > named_files ? files.size() - named_files : 0;
    files.resize(files.size() - more);
    if (more > 0) files.push_back(fmt::format("{} more", more));
    std::size_t kept = 0;
    for (const group& g : groups_of(m)) {
        if (g.is == outcome::quantized) {
            parts.push_back(
                fmt::format("{} for {}", g.recipe,
                            report::plural(g.tensors.size(), g.roles.front() + " tensor")));
        } else if (g.is == outcome::undecided) {
            parts.push_back(report::plural(g.tensors.size(), g.roles.front() + " tensor") +
                            " undecided");
        } else {
            kept += g.tensors.size();
        }
    }
    if (kept > 0) parts.push_back(fmt::format("{} kept", report::plural(kept, "tensor")));
    parts.push_back(cost_of(m.says.totals));
    if (!m.says.risks.empty()) {
        const policy::risk& r = m.says.risks.front();
        parts.push_back(
            fmt::format("worst: {} under {} {}", tensor_name(m, r.tensor), r.recipe, harm_text(r)));
    }
    parts.push_back(m.says.confidence);
    return fmt::format("{}: {}", listed(files), fmt::join(parts, "; "));
}

report::section worst_section(const judged_model& m) {
    report::section s;
    for (const policy::risk& r : m.says.risks) {
        if (s.rows.size() == worst_shown) break;
        const decision& d = m.says.decisions[r.tensor];
        auto of_class = policy::verdict::safe;
        for (const class_recipe& c : class_of(m, d.role, d.quantized)->candidates) {
            if (c.recipe == r.recipe) of_class = c.is;
        }
        s.columns =
            columns_of({"tensor", "role", column_of("recipe", "under"),
                        column_of("over_normal", "error over\nnormal data", cell::significant, 3),
                        column_of("energy", "of its\nenergy %", cell::share),
                        column_of("underflow", "become\nzero %", cell::share),
                        column_of("normal_underflow", "of normal\ndata %", cell::share), "verdict",
                        "limit", column_of("decided", "recommended")});
        s.add(tensor_name(m, r.tensor), d.role, r.recipe, r.over_normal, r.energy, r.underflow,
              r.normal_underflow, policy::to_string(std::max(r.is, of_class)),
              r.why ? limit_text(*r.why) : std::string(), d.recipe);
    }
    if (s.rows.empty()) {
        s.heading = "Tensors";
        s.notes.push_back("No operand of a product has an error under any candidate.");
        return s;
    }
    s.heading = fmt::format("{} with the largest error relative to normal data",
                            report::plural(s.rows.size(), "operand"));
    s.notes.push_back(
        "Error: the squared error over that of the recipe on normal data of as much energy; its "
        "share of the tensor's energy beside it. Operands for which the recipe is ruled out come "
        "first. Each is listed under the recipe of its class or, where there is none, under the "
        "candidate that suits it least.");
    const std::vector<harmed_tensor> worst = most_harmed(m, first_risks);
    const auto known = [](const harmed_tensor& t) { return t.by != nullptr; };
    if (!std::ranges::all_of(worst, known) || worst.empty()) return s;  // arrays in memory
    s.notes.push_back("To see their blocks under each scale rule:");
    for (const harmed_tensor& t : worst) {
        s.notes.push_back(report::command(policy::show_command(t.by, t.file, t.tensor, t.recipe)));
    }
    return s;
}

std::vector<harmed_tensor> most_harmed(const judged_model& m, std::size_t most) {
    std::vector<harmed_tensor> all;
    for (const policy::risk& r : m.says.risks) {
        if (all.size() == most) break;
        const policy::measured_tensor& t = m.tensors[r.tensor];
        all.push_back({t.file, t.name, r.recipe, t.by.get()});
        for (std::size_t c = 0; c < m.table.recipes.size(); ++c) {
            const auto& [name, recipe] = m.table.recipes[c];
            if (!m.table.has(r.tensor, c) || policy::recipe_key(recipe) != r.recipe) continue;
            all.back().recipe = name;                                // with its axis
            if (const auto group = m.table.of(r.tensor, c).group) {  // without blocks of its own
                all.back().file = group->worst_file;
                all.back().tensor = group->worst_member;
            }
            break;
        }
    }
    return all;
}

report::section candidates_section(const judged_model& m) {
    const byte_unit unit = unit_of(m.says.totals.stored);
    report::section s{
        .heading = "What would change the verdict",
        .columns = columns_of(
            {"role", "recipe", "verdict", column_of("on_target", "on the\ntarget"), "bits",
             column_of("bytes", std::string(unit.name), cell::significant, 3), "sqnr_db",
             "normal_db", "ruled_out", column_of("doubtful", "to\nevaluate", cell::integer),
             column_of("note", "")})};
    for (const class_judgement& c : m.says.classes) {
        for (std::size_t i = 0; i < c.candidates.size(); ++i) {
            const class_recipe& r = c.candidates[i];
            if (r.elements == 0) continue;
            std::vector<std::string> notes;
            if (i == c.chosen) notes.emplace_back("recommended");
            if (!r.reason.empty()) notes.push_back(r.reason);
            if (!r.scored.empty()) notes.push_back(r.scored);
            s.add(c.role, r.recipe, policy::to_string(r.is),
                  m.on->any() ? "-" : policy::to_string(r.on_target), r.bits,
                  static_cast<double>(r.bytes) / unit.bytes, db_value(r.sqnr_db),
                  db_value(r.normal_db), r.vetoed.size(), r.doubtful.size(),
                  fmt::format("{}", fmt::join(notes, "; ")));
        }
    }
    if (s.rows.empty()) return {};
    if (m.on->any()) std::erase_if(s.columns, [](const auto& c) { return c.field == "on_target"; });
    s.notes.push_back(
        "The smallest safe candidate that suits more than half of a class is recommended. Metrics "
        "of a task (--eval) make a candidate that needs evaluation safe, or rule it out; another "
        "policy (--policy) or target (--target) has other candidates. mx explain policy prints "
        "the limits and their sources.");
    return s;
}

}  // namespace mx::pages

// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "libmx/codec/recipe.hpp"
#include "libmx/policy/targets.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/plan/ecosystems.hpp"

namespace mx::plan {
namespace {

using report::record;
using report::value;

constexpr std::string_view weight_suffix = ".weight";

std::string text(std::string_view s) { return std::string(s); }

std::string upper(std::string_view s) {
    std::string out(s);
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}

// The counterpart of a recipe: its arguments, null if there are none, and a note.
struct counterpart {
    value words;
    value same_scales;
    std::string note;
};

counterpart none(std::string_view why) { return {value(), value(), text(why)}; }

// Why a recipe differs from its preset by more than the scale rule; empty if it does not.
std::string beyond_preset(const codec::recipe& r) {
    const codec::recipe plain = codec::parse_block_recipe(r.preset);
    if (r.element != plain.element) return "another element format than its preset";
    if (r.scale_format != plain.scale_format) return "another scale format than its preset";
    if (!(r.block == plain.block)) return "other blocks than its preset";
    if (!(r.axis == plain.axis)) return "blocks along another axis";
    if (r.round != format::rounding::rtne) return "a rounding other than to nearest even";
    if (r.offset != codec::offset_kind::none) return "an offset";
    if (!(r.rotate == plain.rotate)) return "a transform";
    return {};
}

std::string joined(std::string_view a, std::string_view b) {
    if (a.empty() || b.empty()) return text(a.empty() ? b : a);
    return fmt::format("{}; {}", a, b);
}

counterpart in_torchao(const codec::recipe& r) {
    const policy::supported_format there =
        policy::support_of(policy::find_target("torchao"), r.preset);
    const torchao_words* known = find_words(torchao_list, r.preset);
    if (known == nullptr) return none(there.note);
    const torchao_words& words = *known;
    const bool emulated = there.is == policy::support::emulated;
    const std::string beyond = beyond_preset(r);
    if (!beyond.empty()) return none("the recipe has " + beyond);
    if (r.select != codec::four_over_six::none) return none("the recipe chooses between scales");
    const std::string rule(r.rule->name);
    if (!codec::lists(words.rules, rule)) return none(fmt::format("it has no scale rule {}", rule));
    record arguments;
    if (words.config == mx_config) {
        arguments = {{"block_size", static_cast<std::int64_t>(r.block.cols)},
                     {"activation_dtype", text(words.dtype)},
                     {"weight_dtype", text(words.dtype)},
                     {"kernel_preference",
                      text(emulated ? "KernelPreference.EMULATED" : "KernelPreference.AUTO")},
                     {"scaling_mode", "ScaleCalculationMode." + upper(rule)}};
    } else {
        arguments = {{"use_dynamic_per_tensor_scale", rule == "two-level"}};
    }
    const bool same = r.by->id == codec::dialect_id::torchao;
    return {record{{"config", text(words.config)}, {"arguments", std::move(arguments)}}, true,
            joined(joined(joined(words.note, there.note), emulated ? "emulated" : ""),
                   same ? "" : "the corners of its arithmetic: dialect=torchao")};
}

record weights_of(const compressed_words& words) {
    record w{{"num_bits", static_cast<std::int64_t>(words.num_bits)},
             {"type", text("float")},
             {"symmetric", true},
             {"dynamic", false},
             {"strategy", text(words.strategy)}};
    if (words.group_size > 0) {
        w.emplace_back("group_size", static_cast<std::int64_t>(words.group_size));
    } else {
        w.emplace_back("block_structure", report::list{std::int64_t{128}, std::int64_t{128}});
    }
    if (!words.scale_dtype.empty()) w.emplace_back("scale_dtype", text(words.scale_dtype));
    return w;
}

counterpart in_compressed_tensors(const codec::recipe& r) {
    const compressed_words* known = find_words(compressed_list, r.preset);
    if (known == nullptr) {
        return none(policy::support_of(policy::find_target("compressed-tensors"), r.preset).note);
    }
    const compressed_words& words = *known;
    const std::string beyond = beyond_preset(r);
    if (!beyond.empty()) return none("the recipe has " + beyond);
    std::string scheme(words.scheme);
    record weights = weights_of(words);
    if (r.select == codec::four_over_six::mse && words.format == "nvfp4-pack-quantized") {
        scheme += "_46";
        weights.emplace_back("observer", text("fouroversix"));
    } else if (r.select != codec::four_over_six::none) {
        return none("the recipe chooses between scales");
    }
    const std::string rule(r.rule->name);
    const bool own = r.by->id == codec::dialect_id::compressed_tensors;
    const bool same = own || codec::lists(words.rules, rule);
    std::string note = own ? std::string() : text(words.note);
    if (!own) {
        note = joined(note, same ? "the corners of its arithmetic: dialect=compressed-tensors"
                                 : fmt::format("it has no scale rule {}, so that the error there "
                                               "is another: measure dialect=compressed-tensors",
                                               rule));
    }
    return {record{{"scheme", std::move(scheme)},
                   {"weights", std::move(weights)},
                   {"format", text(words.format)}},
            same, std::move(note)};
}

record described(const std::string& recipe, const counterpart& c) {
    return {{"recipe", recipe},
            {"words", c.words},
            {"same_scale_rule", c.same_scales},
            {"note", c.note.empty() ? value() : value(c.note)}};
}

// Why a tensor is not the matrix of a module; empty if it is.
std::string not_a_module(const analysis::tensor_identity& t) {
    if (t.shape.size() != 2) return "no matrix";
    if (t.role != "weight" && t.role != "head") return fmt::format("of the role {}", t.role);
    const std::string& name = t.tensor;
    const bool weight = name.size() > weight_suffix.size() && name.ends_with(weight_suffix);
    return weight ? "" : "not called MODULE.weight";
}

std::string module_of(const analysis::tensor_identity& t) {
    return t.tensor.substr(0, t.tensor.size() - weight_suffix.size());
}

}  // namespace

report::record mapping_of(const candidates& from, const plan& p) {
    std::vector<std::optional<counterpart>> torchao(from.recipes.size());
    std::vector<std::optional<counterpart>> compressed(from.recipes.size());
    std::vector<bool> used(from.recipes.size(), false);
    std::vector<report::list> targets(from.recipes.size());
    record fqns;
    report::list left, ignore;
    for (std::size_t i = 0; i < from.tensors.size(); ++i) {
        const plan_tensor& t = from.tensors[i];
        const std::uint32_t r = t.options[p.chosen[i]].recipe;
        const auto& [recipe, parsed] = from.recipes[r];
        const std::string why = not_a_module(*t.of);
        if (!why.empty()) {
            left.emplace_back(
                record{{"tensor", t.of->tensor}, {"recipe", recipe}, {"reason", why}});
            continue;
        }
        if (!used[r]) {
            used[r] = true;
            const bool stored = recipe == engine::stored_choice;
            torchao[r] = stored ? none("left as it is stored") : in_torchao(parsed);
            compressed[r] = stored ? none("left as it is stored") : in_compressed_tensors(parsed);
        }
        std::string module = module_of(*t.of);
        const bool has_torchao = !std::holds_alternative<std::monostate>(torchao[r]->words);
        const bool has_compressed = !std::holds_alternative<std::monostate>(compressed[r]->words);
        fqns.emplace_back(module, has_torchao ? value(recipe) : value());
        (has_compressed ? targets[r] : ignore).emplace_back(std::move(module));
    }

    for (const kept_tensor& t : from.kept) {
        const std::string why = not_a_module(*t.of);
        if (why.empty()) {
            fqns.emplace_back(module_of(*t.of), value());
            ignore.emplace_back(module_of(*t.of));
        } else {
            left.emplace_back(record{{"tensor", t.of->tensor},
                                     {"recipe", text(engine::stored_choice)},
                                     {"reason", why}});
        }
    }

    report::list torchao_recipes, compressed_recipes;
    record groups;
    std::vector<std::string> formats;
    for (std::size_t r = 0; r < from.recipes.size(); ++r) {
        if (!used[r]) continue;
        torchao_recipes.emplace_back(described(from.recipes[r].name, *torchao[r]));
        compressed_recipes.emplace_back(described(from.recipes[r].name, *compressed[r]));
        const auto* words = std::get_if<record>(&compressed[r]->words);
        if (words == nullptr) continue;
        const std::string format = report::text_of(*words, "format");
        if (std::ranges::find(formats, format) == formats.end()) formats.push_back(format);
        groups.emplace_back(fmt::format("group_{}", groups.size()),
                            record{{"targets", std::move(targets[r])},
                                   {"weights", *report::find(*words, "weights")},
                                   {"format", format}});
    }
    const value format = formats.empty()       ? value()
                         : formats.size() == 1 ? value(formats.front())
                                               : value(text("mixed-precision"));
    return {{"not_mapped", std::move(left)},
            {"torchao", record{{"entry", text("torchao.quantization.FqnToConfig")},
                               {"recipes", std::move(torchao_recipes)},
                               {"fqn_to_config", std::move(fqns)}}},
            {"compressed_tensors",
             record{{"recipes", std::move(compressed_recipes)},
                    {"quantization_config", record{{"quant_method", text("compressed-tensors")},
                                                   {"format", format},
                                                   {"config_groups", std::move(groups)},
                                                   {"ignore", std::move(ignore)}}}}}};
}

}  // namespace mx::plan

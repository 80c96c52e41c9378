// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/llm/model_weights.hpp"
#include "libmx/policy/targets.hpp"
#include "libmx/report/json_line.hpp"
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

template <std::size_t N, typename... Values>
requires(sizeof...(Values) == N) record
    record_of(const std::array<report::member_type, N>& members, Values&&... values) {
    record r;
    const auto* m = members.begin();
    (r.emplace_back((m++)->name, value(std::forward<Values>(values))), ...);
    return r;
}

// Members of records in the words of each tool.
constexpr std::array torchao_words_members = std::to_array<report::member_type>({
    {"config", "string", "class"},
    {"arguments", "{any}", ""},
});
constexpr std::array torchao_members = std::to_array<report::member_type>({
    {"entry", "string", "class that takes fqn_to_config"},
    {"recipes", "[#torchao_recipe]", ""},
    {"fqn_to_config", "{string?}", "by module: its recipe; null: left as stored"},
});
constexpr std::array compressed_words_members = std::to_array<report::member_type>({
    {"scheme", "string", ""},
    {"weights", "{any}", ""},
    {"format", "string", ""},
});
constexpr std::array config_group_members = std::to_array<report::member_type>({
    {"targets", "[string]", ""},
    {"weights", "{any}", ""},
    {"format", "string", ""},
});
constexpr report::member_type input_activations{"input_activations", "{any}", "", false};
constexpr std::array quantization_config_members = std::to_array<report::member_type>({
    {"quant_method", "=compressed-tensors", ""},
    {"format", "string?", ""},
    {"config_groups", "{#config_group}", ""},
    {"ignore", "[string]", ""},
});
constexpr std::array compressed_members = std::to_array<report::member_type>({
    {"recipes", "[#compressed_recipe]", ""},
    {"quantization_config", "#quantization_config", ""},
});
constexpr std::array modelopt_words_members = std::to_array<report::member_type>({
    {"num_bits", "[integer]", "exponent and mantissa"},
    {"block_sizes", "{any}", "by axis; ModelOpt takes axes as integers"},
});
constexpr std::array modelopt_config_members = std::to_array<report::member_type>({
    {"quant_cfg", "[#quantizer]", ""},
    {"algorithm", "string", ""},
});
constexpr report::member_type quantizer_name{"quantizer_name", "string", ""};
constexpr report::member_type quantizer_enable{"enable", "boolean", "", false};
constexpr report::member_type quantizer_cfg{"cfg", "{any}", "", false};
constexpr std::array modelopt_members = std::to_array<report::member_type>({
    {"recipes", "[#modelopt_recipe]", ""},
    {"config", "#modelopt_config", "what modelopt.torch.quantization.quantize takes"},
});
constexpr std::array ggml_words_members = std::to_array<report::member_type>({
    {"type", "string", "of ggml"},
});
constexpr std::array ggml_members = std::to_array<report::member_type>({
    {"recipes", "[#ggml_recipe]", ""},
    {"tensor_types", "{string?}",
     "by name in GGUF: a type of ggml; null: it has none for the recipe"},
});
constexpr std::array mapping_members = std::to_array<report::member_type>({
    {"not_mapped", "[#not_mapped]", "tensors that have no module"},
    {"torchao", "#torchao", ""},
    {"compressed_tensors", "#compressed_tensors", ""},
    {"modelopt", "#modelopt", ""},
    {"llama_cpp", "#llama_cpp", ""},
});

// The counterpart of a recipe: its arguments, null if there are none, and a note.
struct counterpart {
    value words;
    value same_scales;
    std::string note;
};

counterpart none(std::string_view why) { return {value(), value(), text(why)}; }

// Why a recipe differs from its preset, under the dialect of the tool if that is its own, by more
// than the scale rule; empty if it does not.
std::string beyond_preset(const codec::recipe& r, codec::dialect_id tool) {
    const codec::recipe plain = codec::parse_block_recipe(
        r.by->id == tool ? fmt::format("{}:dialect={}", r.preset, r.by->name) : r.preset);
    if (r.element != plain.element) return "another element format than its preset";
    if (r.scale_format != plain.scale_format) return "another scale format than its preset";
    if (!(r.block == plain.block)) return "other blocks than its preset";
    if (!(r.axis == plain.axis)) return "blocks along another axis";
    if (r.round != plain.round) return "another rounding than its preset";
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
    const std::string beyond = beyond_preset(r, codec::dialect_id::torchao);
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
    const bool same = codec::family_of(*r.by) == "torchao";
    return {record_of(torchao_words_members, text(words.config), std::move(arguments)), true,
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
    const std::string beyond = beyond_preset(r, codec::dialect_id::compressed_tensors);
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
    return {record_of(compressed_words_members, std::move(scheme), std::move(weights),
                      text(words.format)),
            same, std::move(note)};
}

// Why a tool that computes a few scale rules does not have a recipe; empty if it does.
template <typename Words>
std::string not_expressible(const Words* known, const codec::recipe& r, codec::dialect_id tool) {
    if (known == nullptr) return "it has no such format";
    if (const std::string beyond = beyond_preset(r, tool); !beyond.empty()) {
        return "the recipe has " + beyond;
    }
    if (r.select != codec::four_over_six::none) return "the recipe chooses between scales";
    const std::string rule(r.rule->name);
    return codec::lists(known->rules, rule) ? "" : fmt::format("it has no scale rule {}", rule);
}

counterpart in_modelopt(const codec::recipe& r) {
    const modelopt_words* const known = find_words(modelopt_list, r.preset);
    const std::string why = not_expressible(known, r, codec::dialect_id::modelopt);
    if (!why.empty()) return none(why);
    const auto pair = [](int exponent, int mantissa) {
        return report::list{std::int64_t{exponent}, std::int64_t{mantissa}};
    };
    record blocks{{"-1", std::int64_t{known->cols}}};
    if (known->rows > 1) blocks.emplace_back("-2", std::int64_t{known->rows});
    if (known->scale_exponent_bits > 0) {
        blocks.emplace_back("type", text("dynamic"));
        blocks.emplace_back("scale_bits",
                            pair(known->scale_exponent_bits, known->scale_mantissa_bits));
    }
    const bool own = r.by->id == codec::dialect_id::modelopt;
    return {record_of(modelopt_words_members, pair(known->exponent_bits, known->mantissa_bits),
                      std::move(blocks)),
            true, own ? std::string() : text(known->note)};
}

counterpart in_ggml(const codec::recipe& r) {
    const ggml_words* const known = find_words(ggml_list, r.preset);
    const std::string why = not_expressible(known, r, codec::dialect_id::ggml);
    if (!why.empty()) return none(why);
    const bool own = r.by->id == codec::dialect_id::ggml;
    return {record_of(ggml_words_members, text(known->type)), true,
            own ? std::string() : text(known->note)};
}

struct described_recipe {
    const std::string& recipe;
    const counterpart& there;
};
constexpr std::array described_members = std::to_array<report::declared<described_recipe>>({
    {"recipe", "string", "", [](auto& r) { return r.recipe; }},
    {"words", "any", "null: it has no such format", [](auto& r) { return r.there.words; }},
    {"same_scale_rule", "boolean?", "", [](auto& r) { return r.there.same_scales; }},
    {"note", "string?", "",
     [](auto& r) { return r.there.note.empty() ? value() : value(r.there.note); }},
});

// What a tool calls the recipes of a plan.
struct vocabulary {
    std::vector<std::optional<counterpart>> of;  // by recipe; none for those that no tensor has

    vocabulary(const candidates& from, const plan& p, counterpart (*in_tool)(const codec::recipe&))
        : of(from.recipes.size()) {
        for (std::size_t t = 0; t < from.tensors.size(); ++t) {
            const std::uint32_t r = from.tensors[t].options[p.chosen[t]].recipe;
            if (of[r]) continue;
            const auto& [name, parsed] = from.recipes[r];
            of[r] = name == engine::stored_choice ? none("left as it is stored") : in_tool(parsed);
        }
    }
    const record* words(std::size_t recipe) const {
        return of[recipe] ? std::get_if<record>(&of[recipe]->words) : nullptr;
    }
    report::list described(const candidates& from) const {
        report::list all;
        for (std::size_t r = 0; r < of.size(); ++r) {
            if (!of[r]) continue;
            all.emplace_back(report::written(described_members, {from.recipes[r].name, *of[r]}));
        }
        return all;
    }
};

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

// A matrix of a module.
struct planned_module {
    std::string name;
    std::optional<std::size_t> recipe;  // none: kept
};

// The recipe of the inputs of layers whose weights have that recipe; empty for none.
std::string inputs_of(const candidates& from, std::size_t recipe) {
    const std::string given = recipe < from.inputs.size() ? from.inputs[recipe] : "none";
    return given == "none" ? "" : given;
}

// The attributes of a tool's quantizer of these inputs, whose scales are computed when the model
// runs; null if it has none. torchao has no other than that of the weights.
counterpart inputs_in(counterpart (*in_tool)(const codec::recipe&), const candidates& from,
                      std::size_t recipe) {
    const std::string inputs = inputs_of(from, recipe);
    if (inputs.empty() || inputs == "mixed") return none("");
    const codec::recipe parsed = codec::parse_recipe(inputs);
    counterpart there = in_tool(parsed);
    const auto* const words = std::get_if<record>(&there.words);
    if (words == nullptr || in_tool == in_ggml) return none("");
    if (in_tool == in_torchao) {
        const bool of_weights = inputs == from.recipes[recipe].name;
        return of_weights && report::text_of(*words, "config") == mx_config ? there : none("");
    }
    if (parsed.block.rows > 1) return none("");
    if (in_tool == in_compressed_tensors) {
        auto quantizer = std::get<record>(*report::find(*words, "weights"));
        const bool two_level = report::text_of(quantizer, "strategy") == "tensor_group";
        for (auto& [name, of] : quantizer) {
            if (name == "dynamic") of = two_level ? value(text("local")) : value(true);
        }
        if (two_level) quantizer.emplace_back("observer", text("static_minmax"));
        there.words = std::move(quantizer);
    }
    return there;
}

record in_words_of_torchao(const candidates& from, const vocabulary& words,
                           const std::vector<planned_module>& modules) {
    record fqns;
    for (const planned_module& m : modules) {
        const bool known = m.recipe && words.words(*m.recipe) != nullptr;
        fqns.emplace_back(m.name, known ? value(from.recipes[*m.recipe].name) : value());
    }
    return record_of(torchao_members, text("torchao.quantization.FqnToConfig"),
                     words.described(from), std::move(fqns));
}

record in_words_of_compressed_tensors(const candidates& from, const vocabulary& words,
                                      const std::vector<planned_module>& modules) {
    std::vector<report::list> targets(from.recipes.size());
    report::list ignore;
    for (const planned_module& m : modules) {
        const bool known = m.recipe && words.words(*m.recipe) != nullptr;
        (known ? targets[*m.recipe] : ignore).emplace_back(m.name);
    }
    record groups;
    std::vector<std::string> formats;
    for (std::size_t r = 0; r < from.recipes.size(); ++r) {
        const record* const of = words.words(r);
        if (of == nullptr) continue;
        const std::string format = report::text_of(*of, "format");
        if (std::ranges::find(formats, format) == formats.end()) formats.push_back(format);
        record group = record_of(config_group_members, std::move(targets[r]),
                                 *report::find(*of, "weights"), format);
        value inputs = inputs_in(in_compressed_tensors, from, r).words;
        if (inputs != value()) group.emplace_back(input_activations.name, std::move(inputs));
        groups.emplace_back(fmt::format("group_{}", groups.size()), std::move(group));
    }
    const value format = formats.empty()       ? value()
                         : formats.size() == 1 ? value(formats.front())
                                               : value(text("mixed-precision"));
    return record_of(compressed_members, words.described(from),
                     record_of(quantization_config_members, text("compressed-tensors"), format,
                               std::move(groups), std::move(ignore)));
}

record in_words_of_modelopt(const candidates& from, const vocabulary& words,
                            const std::vector<planned_module>& modules) {
    // Later entries override earlier ones: everything is off but what the plan quantizes.
    const auto quantizer = [](const std::string& name, const report::member_type& m, value of) {
        return record{{std::string(quantizer_name.name), name},
                      {std::string(m.name), std::move(of)}};
    };
    report::list entries{quantizer("*", quantizer_enable, false)};
    for (const planned_module& m : modules) {
        const record* const cfg = m.recipe ? words.words(*m.recipe) : nullptr;
        if (cfg == nullptr) continue;
        entries.emplace_back(quantizer(m.name + ".weight_quantizer", quantizer_cfg, *cfg));
        value inputs = inputs_in(in_modelopt, from, *m.recipe).words;
        if (inputs == value()) continue;
        entries.emplace_back(
            quantizer(m.name + ".input_quantizer", quantizer_cfg, std::move(inputs)));
    }
    return record_of(modelopt_members, words.described(from),
                     record_of(modelopt_config_members, std::move(entries), text("max")));
}

// A matrix in llama.cpp.
struct ggml_tensor {
    std::string tensor, recipe;
    std::string name;  // empty: mx does not know one
    std::string type;  // empty: there is none
    std::string why;   // of what is empty
};

// The type of ggml with the tensor's dtype, empty if its file has another encoding of it.
std::string stored_type(const analysis::tensor_identity& t, std::uint64_t elements) {
    for (const auto& [dtype, type] :
         {std::pair("F32", "f32"), std::pair("F16", "f16"), std::pair("BF16", "bf16")}) {
        if (t.dtype != dtype) continue;
        const auto bits = static_cast<std::uint64_t>(*engine::bits_of_dtype(dtype)) * elements;
        const bool decoded =
            t.stored_bytes && 8 * static_cast<std::uint64_t>(*t.stored_bytes) != bits;
        return decoded ? "" : type;
    }
    return {};
}

std::vector<ggml_tensor> ggml_tensors(const candidates& from, const plan& p,
                                      const vocabulary& words) {
    std::vector<ggml_tensor> all;
    std::map<std::string, std::size_t> stacks;  // by name
    const auto add = [&](const analysis::tensor_identity& of, std::uint64_t elements,
                         const std::string& recipe, const counterpart* known) {
        ggml_tensor t{of.tensor, recipe, llm::gguf_name(of.tensor), {}, {}};
        if (known == nullptr) {
            t.type = stored_type(of, elements);
            if (t.type.empty()) t.why = fmt::format("it has no type for {} as stored", of.dtype);
        } else if (const auto* const found = std::get_if<record>(&known->words)) {
            t.type = report::text_of(*found, "type");
            const auto row = std::ranges::find(ggml_list, t.type, &ggml_words::type);
            const std::uint64_t columns = of.shape.empty() ? 0 : of.shape.back();
            if (columns % row->block != 0) {
                t.type.clear();
                t.why = fmt::format("its rows of {} are no multiple of {}", columns, row->block);
            }
        } else {
            t.why = known->note;
        }
        if (t.name.empty()) t.why = "mx does not know its name there";
        const auto [at, is_new] = stacks.emplace(t.name, all.size());
        if (!is_new && !t.name.empty()) {  // a further expert
            ggml_tensor& stack = all[at->second];
            if (stack.type != t.type && stack.why.empty()) {
                stack.type.clear();
                stack.why = "experts of its stack have different types";
            }
            return;
        }
        all.push_back(std::move(t));
    };
    for (std::size_t i = 0; i < from.tensors.size(); ++i) {
        const plan_tensor& t = from.tensors[i];
        const std::uint32_t r = t.options[p.chosen[i]].recipe;
        const std::string& recipe = from.recipes[r].name;
        add(*t.of, t.elements, recipe, recipe == engine::stored_choice ? nullptr : &*words.of[r]);
    }
    for (const kept_tensor& t : from.kept) {
        // llama-quantize does not touch others, such as norms and routers.
        const std::string name = llm::gguf_name(t.of->tensor);
        if (t.of->shape.size() < 2 || name.empty() || name.find("ffn_gate_inp") != name.npos)
            continue;
        add(*t.of, t.elements, text(engine::stored_choice), nullptr);
    }
    return all;
}

// Every tool with what it is called, and the recipes that it has.
struct tool {
    std::string_view name;
    counterpart (*in)(const codec::recipe&);
    std::string recipes;
};

template <typename List>
std::string recipes_of(const List& list) {
    std::vector<std::string> all;
    for (const auto& row : list) {
        all.push_back(row.rules.empty() ? text(row.preset)
                                        : fmt::format("{} (scale={})", row.preset, row.rules));
    }
    return base::joined(all, ", ");
}

std::vector<tool> all_tools() {
    return {{"torchao", in_torchao, recipes_of(torchao_list)},
            {"compressed-tensors", in_compressed_tensors, recipes_of(compressed_list)},
            {"modelopt", in_modelopt, recipes_of(modelopt_list)},
            {"llama.cpp", in_ggml, recipes_of(ggml_list)}};
}

[[noreturn]] void refuse_export(const tool& to, const std::string& tensor,
                                const std::string& recipe, const std::string& why) {
    base::refuse("--export {}: '{}' has {}: {}; {} has {}", to.name, base::printable(tensor),
                 recipe, base::printable(why), to.name, to.recipes);
}

std::string arguments_of(const tool& to, const std::vector<ggml_tensor>& tensors) {
    std::string all;
    for (const ggml_tensor& t : tensors) {
        if (!t.why.empty()) refuse_export(to, t.tensor, t.recipe, t.why);
        // The name is searched for: ^ tells output.weight from blk.0.attn_output.weight.
        all += fmt::format("--tensor-type ^{}={}\n", t.name, t.type);
    }
    return all;
}

}  // namespace

const std::vector<std::string_view>& export_tools() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const tool& t : all_tools()) all.push_back(t.name);
        return all;
    }();
    return names;
}

namespace {

struct not_mapped {
    const std::string& tensor;
    std::string recipe;
    const std::string& reason;
};
constexpr std::array not_mapped_members = std::to_array<report::declared<not_mapped>>({
    {"tensor", "@members#tensor", "", [](auto& t) { return t.tensor; }},
    {"recipe", "string", "", [](auto& t) { return t.recipe; }},
    {"reason", "string", "", [](auto& t) { return t.reason; }},
});

}  // namespace

report::record mapping_of(const candidates& from, const plan& p) {
    std::vector<planned_module> modules;
    report::list left;
    const auto add = [&](const analysis::tensor_identity& of, std::optional<std::size_t> recipe) {
        const std::string why = not_a_module(of);
        if (why.empty()) {
            modules.push_back({module_of(of), recipe});
            return;
        }
        const std::string name = recipe ? from.recipes[*recipe].name : text(engine::stored_choice);
        left.emplace_back(report::written(not_mapped_members, {of.tensor, name, why}));
    };
    for (std::size_t t = 0; t < from.tensors.size(); ++t) {
        add(*from.tensors[t].of, from.tensors[t].options[p.chosen[t]].recipe);
    }
    for (const kept_tensor& t : from.kept) add(*t.of, {});

    const vocabulary ggml(from, p, in_ggml);
    record types;
    for (const ggml_tensor& t : ggml_tensors(from, p, ggml)) {
        if (!t.name.empty()) types.emplace_back(t.name, t.type.empty() ? value() : value(t.type));
    }
    return record_of(
        mapping_members, std::move(left),
        in_words_of_torchao(from, vocabulary(from, p, in_torchao), modules),
        in_words_of_compressed_tensors(from, vocabulary(from, p, in_compressed_tensors), modules),
        in_words_of_modelopt(from, vocabulary(from, p, in_modelopt), modules),
        record_of(ggml_members, ggml.described(from), std::move(types)));
}

void define_mapping(report::document_schema& to) {
    const auto define_recipe = [&](std::string_view name, std::string_view words) {
        report::member_list all;
        for (report::member_type m : described_members) {
            if (m.name == "words") m.type = words;
            all.add(m);
        }
        to.define(name, all);
    };
    define_recipe("torchao_recipe", "#torchao_words?");
    define_recipe("compressed_recipe", "#compressed_words?");
    define_recipe("modelopt_recipe", "#modelopt_words?");
    define_recipe("ggml_recipe", "#ggml_words?");
    to.define("mapping", mapping_members)
        .define("not_mapped", not_mapped_members)
        .define("torchao", torchao_members)
        .define("torchao_words", torchao_words_members)
        .define("compressed_tensors", compressed_members)
        .define("compressed_words", compressed_words_members)
        .define("quantization_config", quantization_config_members)
        .define("config_group",
                report::member_list().add(config_group_members).add(input_activations))
        .define("modelopt", modelopt_members)
        .define("modelopt_words", modelopt_words_members)
        .define("modelopt_config", modelopt_config_members)
        .define("quantizer", std::array{quantizer_name, quantizer_enable, quantizer_cfg})
        .define("llama_cpp", ggml_members)
        .define("ggml_words", ggml_words_members);
}

export_text exported(const candidates& from, const plan& p, std::string_view tool_name) {
    const std::vector<tool> tools = all_tools();
    const tool& to = *std::ranges::find(tools, tool_name, &tool::name);
    const vocabulary words(from, p, to.in);
    export_text done;
    std::set<std::string> inputs;  // of which there are remarks
    for (std::size_t r = 0; r < words.of.size(); ++r) {
        const std::string recipe = words.of[r] ? inputs_of(from, r) : std::string();
        const counterpart there = inputs_in(to.in, from, r);
        const bool told = there.words != value();
        if (recipe.empty() || (told && there.same_scales != value(false))) continue;
        if (!inputs.insert(recipe).second) continue;
        done.remarks.push_back(
            fmt::format("--export {}: inputs of layers in {}{}", to.name, recipe,
                        told ? ": " + there.note : " are not carried: set them there"));
    }
    if (to.in == in_ggml) {
        done.text = arguments_of(to, ggml_tensors(from, p, words));
        return done;
    }
    for (std::size_t t = 0; t < from.tensors.size(); ++t) {
        const std::uint32_t r = from.tensors[t].options[p.chosen[t]].recipe;
        const auto& [recipe, parsed] = from.recipes[r];
        if (recipe == engine::stored_choice) continue;
        const analysis::tensor_identity& of = *from.tensors[t].of;
        std::string why = not_a_module(of);
        if (why.empty() && words.words(r) == nullptr) why = words.of[r]->note;
        if (!why.empty()) refuse_export(to, of.tensor, recipe, why);
    }
    for (std::size_t r = 0; r < words.of.size(); ++r) {
        if (words.words(r) == nullptr || words.of[r]->same_scales != value(false)) continue;
        done.remarks.push_back(
            fmt::format("--export {}: {}: {}", to.name, from.recipes[r].name, words.of[r]->note));
    }
    const record all = mapping_of(from, p);
    const auto part = [&](const record& r, const char* name) {
        return std::get<record>(report::value_of(r, name));
    };
    done.text = report::json_indented(
        to.in == in_torchao    ? part(all, "torchao")
        : to.in == in_modelopt ? part(part(all, "modelopt"), "config")
                               : part(part(all, "compressed_tensors"), "quantization_config"));
    return done;
}

}  // namespace mx::plan

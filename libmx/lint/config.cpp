// SPDX-License-Identifier: Apache-2.0
// quantization_config against the tensors, both ways.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "libmx/base/text_tables.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/stated_layouts.hpp"
#include "libmx/lint/checkpoint.hpp"
#include "libmx/lint/patterns.hpp"

namespace mx::lint {
namespace {

using io::stated_layout;
using io::stated_layouts;

constexpr std::array<std::string_view, 4> ignore_lists{
    "ignore.", "exclude_modules.", "modules_to_not_convert.", "ignored_layers."};

// Matrices of layers that are quantized unless a list excludes them.
constexpr std::array<std::string_view, 7> usual_matrices{
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

std::string entry(const io::config_entries& of, const std::string& key) {
    const auto at = of.find(key);
    return at == of.end() ? std::string() : at->second;
}

void add_list(const io::config_entries& of, std::string_view prefix, module_list& to) {
    for (auto at = of.lower_bound(std::string(prefix));
         at != of.end() && at->first.starts_with(prefix); ++at) {
        to.add(at->second);
    }
}

// The numbers that a group of config_groups, or the configuration itself, states of weights.
struct stated_numbers {
    std::string where;
    module_list targets;  ///< none: all
    std::string bits, group;
    bool of_class = false;  ///< a target is the name of a class of modules
    bool takes(std::string_view module) const {
        return of_class || targets.empty() || targets.match(module) != nullptr;
    }
};

// What GPTQModel (dynamic.PATTERN.KEY, "+:" before an expression) and AutoRound
// (extra_config.MODULE.KEY) state of modules by themselves.
module_list exceptions_of(const io::config_entries& q) {
    module_list found;
    std::string_view before;
    for (const std::string_view prefix : {"dynamic.", "extra_config."}) {
        for (auto at = q.lower_bound(std::string(prefix));
             at != q.end() && at->first.starts_with(prefix); ++at) {
            std::string_view name = at->first;
            name = name.substr(prefix.size(), name.rfind('.') - prefix.size());
            if (name.starts_with("+:") || name.starts_with("-:")) name.remove_prefix(2);
            if (name == before) continue;
            before = name;
            const bool plain = name.find_first_of("*+?[](){}|^$\\") == std::string_view::npos;
            found.add(plain ? std::string(name) : fmt::format("re:{}", name));
        }
    }
    return found;
}

// More than a configuration has recipes.
constexpr std::size_t most_groups = 64;

std::vector<stated_numbers> numbers_of(const io::config_entries& q) {
    std::vector<stated_numbers> all;
    std::string last;
    constexpr std::string_view groups = "config_groups.";
    for (auto at = q.lower_bound(std::string(groups));
         at != q.end() && at->first.starts_with(groups); ++at) {
        const std::string name = at->first.substr(0, at->first.find('.', groups.size()));
        if (name == last) continue;
        if (all.size() == most_groups) break;
        last = name;
        stated_numbers& s = all.emplace_back();
        s.where = name;
        s.bits = entry(q, name + ".weights.num_bits");
        s.group = entry(q, name + ".weights.group_size");
        add_list(q, name + ".targets.", s.targets);
        s.of_class = std::ranges::any_of(s.targets.entries(), [](const module_pattern& t) {
            return t.is_name() && t.text().find('.') == std::string::npos;
        });
    }
    const auto first_of = [&](const char* a, const char* b) {
        const std::string v = entry(q, a);
        return v.empty() ? entry(q, b) : v;
    };
    stated_numbers& s = all.emplace_back();
    s.bits = first_of("bits", "w_bit");
    s.group = first_of("group_size", "q_group_size");
    return all;
}

// One finding for each statement, with the first tensor that contradicts it.
class contradictions {
  public:
    void add(const std::string& statement, const std::string& tensor, std::string message,
             std::string found, std::string effect, std::string repair) {
        const auto [at, added] = places_.emplace(statement, all_.size());
        if (added) {
            all_.push_back(finding_at(severity::error, tensor, std::move(message), std::move(found),
                                      std::move(effect), std::move(repair)));
            counts_.push_back(0);
        }
        ++counts_[at->second];
    }
    void finish(std::vector<finding>& out) {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (counts_[i] > 1) all_[i].found += fmt::format("; {} tensors in all", counts_[i]);
            out.push_back(std::move(all_[i]));
        }
    }

  private:
    std::map<std::string, std::size_t> places_;
    std::vector<finding> all_;
    std::vector<std::size_t> counts_;
};

bool is_plain_matrix(const checkpoint& c, const module& m) {
    if (m.coded || !m.codes) return false;
    const io::tensor_info& t = c.info(*m.codes);
    const bool real = t.type == tensor::dtype::f32 || t.type == tensor::dtype::bf16 ||
                      t.type == tensor::dtype::f16;
    return real && t.shape.size() >= 2 && t.name.ends_with(".weight");
}

// The names of a checkpoint's modules and of those around them.
base::text_set modules_around(const checkpoint& c) {
    base::text_set all;
    for (std::size_t i = 0; i < c.arrays().size(); ++i) {
        std::string_view name = without_wrappers(c.info(i).name);
        for (std::size_t at = name.rfind('.'); at != std::string_view::npos; at = name.rfind('.')) {
            name = name.substr(0, at);
            if (!all.insert(std::string(name)).second) break;
        }
    }
    return all;
}

void find_unknown_modules(const checkpoint& c, const module_list& ignored,
                          std::vector<finding>& out) {
    const base::text_set known = modules_around(c);
    for (const module_pattern& p : ignored.entries()) {
        const std::string_view name = without_wrappers(p.text());
        const std::size_t dot = name.rfind('.');
        // The module itself may have no tensors; that nothing around it has any is a wrong name.
        if (!p.is_name() || dot == std::string_view::npos || known.contains(name) ||
            known.contains(name.substr(0, dot))) {
            continue;
        }
        out.push_back(
            finding_at(severity::warning, p.text(), "is excluded and in no file",
                       "an entry of the list of modules that are not quantized",
                       "the entry excludes nothing; the module that was meant is quantized",
                       "correct the name"));
    }
}

void find_stated_layout(const checkpoint& c, const module& m, contradictions& all) {
    const io::pairing* const p = c.pairing_of(m);
    if (p == nullptr) return;
    for (const stated_layout& s : stated_layouts) {
        if (entry(c.quantization(), std::string(s.key)) != s.value) continue;
        // gptq_marlin and AWQ of AutoRound have the same codes under other methods.
        if (p->layout->name.starts_with(s.layout)) continue;
        // DeepSeek-V4 states FP8 and stores its experts in MXFP4.
        if (s.layout == "fp8" && p->layout->name == "mxfp4") continue;
        const bool words = s.layout == "gptq" || s.layout == "awq";
        if (words && (p->layout->name == "gptq" || p->layout->name == "awq")) continue;
        all.add(fmt::format("{}={} {}", s.key, s.value, p->layout->name), c.info(*m.codes).name,
                fmt::format("is not stored as {} '{}' says", s.key, s.value),
                fmt::format("{}, by its dtypes and shapes", p->layout->title),
                "an engine refuses it or reads codes in another format",
                fmt::format("correct '{}', or quantize the tensor so", s.key));
    }
}

void find_stated_numbers(const checkpoint& c, const module& m,
                         const std::vector<stated_numbers>& groups, contradictions& all) {
    const io::pairing* const p = c.pairing_of(m);
    if (p == nullptr) return;
    for (const stated_numbers& s : groups) {
        if (!s.takes(m.name)) continue;
        const std::string where = s.where.empty() ? s.where : s.where + ".weights.";
        int bits = 0;
        const auto read = [](const std::string& text, auto& number) {
            return std::from_chars(text.data(), text.data() + text.size(), number).ec ==
                   std::errc();
        };
        if (read(s.bits, bits) && bits != p->code_bits) {
            all.add(where + "bits", c.info(*m.codes).name,
                    fmt::format("does not have the {} bits of '{}'", bits, where + "num_bits"),
                    fmt::format("{} bits, by its dtypes and shapes", p->code_bits),
                    "an engine refuses it or unpacks codes of another width",
                    "correct the configuration, or quantize the tensor so");
        }
        std::int64_t group = 0;
        std::uint64_t found = std::max(p->grid.block_cols, p->grid.block_rows);
        const std::uint64_t length = std::max(p->grid.over.cols, p->grid.over.rows);
        const bool in_groups = std::min(p->grid.block_cols, p->grid.block_rows) == 1;
        // Columns of GPTQ choose their group; as many groups as without that are stored.
        const io::tensor_info& codes = c.info(*m.codes);
        if (p->groups && m.scale && c.info(*m.scale).shape.front() != 0) {
            found = codes.shape.front() * 32 / static_cast<std::uint64_t>(p->code_bits) /
                    c.info(*m.scale).shape.front();
        }
        if ((in_groups || p->groups) && read(s.group, group) && group > 0 &&
            static_cast<std::uint64_t>(group) != found &&
            !(!p->groups && found >= length && static_cast<std::uint64_t>(group) >= length)) {
            all.add(where + "group", c.info(*m.codes).name,
                    fmt::format("does not have groups of {}, as '{}' says", group,
                                where + "group_size"),
                    fmt::format("a scale for {} values", found),
                    "an engine refuses it or scales values by the scales of others",
                    "correct the configuration, or quantize the tensor so");
        }
        break;  // the first group that takes a module counts
    }
    std::array<std::uint64_t, 2> tile{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::string v = entry(c.quantization(), fmt::format("weight_block_size.{}", i));
        if (std::from_chars(v.data(), v.data() + v.size(), tile[i]).ec != std::errc()) return;
    }
    const io::tensor_info& codes = c.info(*m.codes);
    if (!p->layout->name.starts_with("fp8") || !m.scale || codes.shape.size() < 2 || tile[0] == 0 ||
        tile[1] == 0) {
        return;
    }
    const std::uint64_t rows = codes.shape[codes.shape.size() - 2], cols = codes.shape.back();
    const std::uint64_t scales =
        ((rows - 1) / tile[0] + 1) * ((cols - 1) / tile[1] + 1) * (codes.elements / (rows * cols));
    if (c.info(*m.scale).elements != scales) {
        all.add("weight_block_size", c.info(*m.codes).name,
                fmt::format("does not have tiles of {}x{}, as 'weight_block_size' says", tile[0],
                            tile[1]),
                fmt::format("{} scales for {}x{} values, not {}", c.info(*m.scale).elements, rows,
                            cols, scales),
                "an engine refuses it or scales values by the scales of others",
                "correct the configuration, or quantize the tensor so");
    }
}

// Whether all quantized tensors have one layout: several groups may have several.
bool format_is_uniform(const io::config_entries& q) {
    return entry(q, "format") != "mixed-precision" && entry(q, "quant_algo") != "MIXED_PRECISION" &&
           q.lower_bound("config_groups.group_1") == q.lower_bound("config_groups.group_2");
}

// modelopt's mixed precision names every quantized layer.
void find_listed(const checkpoint& c, contradictions& all) {
    constexpr std::string_view prefix = "quantized_layers.", suffix = ".quant_algo";
    base::text_map<std::string> listed;
    for (const auto& [key, value] : c.quantization()) {
        if (!key.starts_with(prefix) || !key.ends_with(suffix)) continue;
        listed.emplace(key.substr(prefix.size(), key.size() - prefix.size() - suffix.size()),
                       value);
    }
    if (listed.empty()) return;
    for (const module& m : c.modules()) {
        const auto at = listed.find(m.name);
        if (is_plain_matrix(c, m) && at != listed.end()) {
            all.add("listed " + m.name, c.info(*m.codes).name, "is listed as quantized and is not",
                    "'quantized_layers': " + at->second, "an engine refuses the layer",
                    "remove it from the list, or quantize it");
        }
    }
}

}  // namespace

void find_config(const checkpoint& c, std::vector<finding>& out) {
    const io::config_entries& q = c.quantization();
    const auto coded = std::ranges::find_if(
        c.modules(), [&](const module& m) { return m.coded && c.info(*m.codes).layout.empty(); });
    const bool any = coded != c.modules().end();
    if (q.empty()) {
        const bool own = std::ranges::any_of(c.arrays(), [](const io::tensor_ref& a) {
            return std::ranges::any_of(a.file->metadata(), [](const auto& entry_of) {
                return entry_of.first.starts_with("mx");
            });
        });
        if (any && !own && !c.config().empty()) {
            out.push_back(finding_at(severity::warning, c.info(*coded->codes).name,
                                     "is quantized, which config.json does not say",
                                     "no quantization_config", "an engine reads codes as values",
                                     "add quantization_config"));
        }
        return;
    }
    const std::string method = entry(q, "quant_method");
    const bool known = std::ranges::any_of(stated_layouts, [&](const stated_layout& s) {
        return entry(q, std::string(s.key)) == s.value && s.layout != "bnb";
    });
    if (!any && known && !c.modules().empty()) {
        out.push_back(finding_at(severity::error, c.info(c.modules().front().first()).name,
                                 "no tensor is quantized, as quantization_config says",
                                 method.empty() ? entry(q, "quant_algo") : method,
                                 "an engine refuses the checkpoint: scales are missing",
                                 "remove quantization_config, or quantize"));
        return;
    }
    module_list ignored;
    for (const std::string_view list : ignore_lists) add_list(q, list, ignored);
    const std::vector<stated_numbers> numbers = numbers_of(q);
    base::text_set quantized_alike;  // patterns and fused matrices with quantized parts
    for (const module& m : c.modules()) {
        if (!m.coded) continue;
        quantized_alike.insert(pattern_of(m.name));
        quantized_alike.insert(engine::fused_name(m.name, engine::expert_fusion::apart));
    }
    const bool listed = std::ranges::any_of(
        q, [](const auto& e) { return e.first.starts_with("quantized_layers."); });
    const module_list exceptions = exceptions_of(q);
    // These quantize all matrices that no list excludes; others convert while they load.
    const bool strict = method == "compressed-tensors" || method == "modelopt" ||
                        method == "modelopt_fp4" || !entry(q, "quant_algo").empty();
    const bool checks_plain = known || strict;
    contradictions all;
    for (const module& m : c.modules()) {
        if (m.coded) {
            if (const module_pattern* by = ignored.match(m.name); by != nullptr) {
                all.add("ignored " + m.name, c.info(*m.codes).name,
                        "is quantized though the configuration excludes it",
                        fmt::format("entry '{}'", io::short_name(by->text())),
                        "an engine loads codes as values, or refuses the scales",
                        "remove the entry, or store the tensor unquantized");
            }
            if (format_is_uniform(q)) find_stated_layout(c, m, all);
            if (!exceptions.may_match(m.name)) find_stated_numbers(c, m, numbers, all);
            continue;
        }
        if (!checks_plain || listed || !exceptions.empty() || !is_plain_matrix(c, m)) continue;
        const std::string_view last = std::string_view(m.name).substr(m.name.rfind('.') + 1);
        const bool alike =
            quantized_alike.contains(pattern_of(m.name)) ||
            quantized_alike.contains(engine::fused_name(m.name, engine::expert_fusion::apart));
        const bool usual =
            strict && std::ranges::find(usual_matrices, last) != usual_matrices.end();
        const bool targeted = std::ranges::any_of(numbers, [&](const stated_numbers& s) {
            return s.takes(m.name) && (!s.where.empty() || numbers.size() == 1);
        });
        if ((!alike && !usual) || !targeted || ignored.may_match(m.name)) continue;
        all.add("plain " + m.name, c.info(*m.codes).name,
                "is not quantized, and the configuration does not exclude it",
                described_array(c.info(*m.codes)),
                "an engine expects codes and scales here and refuses the layer",
                "add the module to the list of those that are not quantized");
    }
    find_listed(c, all);
    all.finish(out);
    find_unknown_modules(c, ignored, out);
}

}  // namespace mx::lint

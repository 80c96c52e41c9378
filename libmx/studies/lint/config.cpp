// SPDX-License-Identifier: Apache-2.0
// What the configuration states, against the tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "libmx/base/text_tables.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/studies/lint/module_list.hpp"
#include "libmx/studies/lint/parts.hpp"

namespace mx::lint {
namespace {

using io::pairing;

// What a format, an algorithm or a method of configurations stores: beginnings of layouts' names.
struct stated_format {
    std::string_view name, layouts;
};
constexpr std::array stated_formats{
    stated_format{"nvfp4-pack-quantized", "nvfp4"},
    stated_format{"NVFP4", "nvfp4"},
    stated_format{"NVFP4_AWQ", "nvfp4"},
    stated_format{"W4A16_NVFP4", "nvfp4"},
    stated_format{"mxfp4-pack-quantized", "mxfp4"},
    stated_format{"MXFP4", "mxfp4"},
    stated_format{"mxfp4", "mxfp4"},
    stated_format{"mxfp8-quantized", "mxfp8"},
    stated_format{"MXFP8", "mxfp8"},
    stated_format{"float-quantized", "fp8-"},
    stated_format{"FP8", "fp8-"},
    stated_format{"FP8_PB_WO", "fp8-"},
    stated_format{"FP8_PER_CHANNEL_PER_TOKEN", "fp8-"},
    stated_format{"fp8", "fp8- mxfp4"},  // DeepSeek-V4: experts in MXFP4
    stated_format{"naive-quantized", "fp8- int8-"},
    stated_format{"int-quantized", "int8-"},
    stated_format{"pack-quantized", "pack-quantized"},
    stated_format{"gptq", "gptq"},
    stated_format{"awq", "awq"},
    stated_format{"bitsandbytes", "bnb-"},
};

bool begins_with_any(std::string_view text, std::string_view words) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        if (text.starts_with(word)) return true;
        words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    return false;
}

// The statements of a quantization_config that rules use.
struct statements {
    bool any = false, mixed = false;
    std::vector<std::string> formats;  // the most exact that are stated
    module_list ignored;
    std::set<std::string> groups, bits;  // as spelled
    std::array<std::string, 2> tile;
};

// Lists of modules that keep their precision, by writer.
constexpr std::array ignoring_lists{
    std::string_view("ignore."), std::string_view("exclude_modules."),
    std::string_view("modules_to_not_convert."), std::string_view("llm_int8_skip_modules."),
    std::string_view("ignored_layers.")};
constexpr std::array sections{std::string_view("quantization_config."),
                              std::string_view("compression_config."),
                              std::string_view("quantization.")};

statements statements_in(const checkpoint& c) {
    statements s;
    std::string method, algorithm, format;
    std::set<std::string> of_groups;
    const auto take = [&](std::string_view key, const std::string& value) {
        s.any = true;
        if (key == "quant_method") method = value;
        if (key == "quant_algo") algorithm = value;
        if (key == "format") format = value;
        if (key.starts_with("quantized_layers.")) s.mixed = true;
        if (key.starts_with("config_groups.") && key.ends_with(".format")) of_groups.insert(value);
        for (const std::string_view list : ignoring_lists) {
            if (key.starts_with(list)) s.ignored.add(value);
        }
        const bool weights = key.find("activations") == std::string_view::npos &&
                             key.find("kv_cache") == std::string_view::npos;
        const std::string_view last = key.substr(key.rfind('.') + 1);
        if (weights && (last == "group_size" || last == "q_group_size")) s.groups.insert(value);
        if (weights && (last == "num_bits" || last == "bits" || last == "w_bit")) {
            s.bits.insert(value);
        }
        if (key == "weight_block_size.0") s.tile[0] = value;
        if (key == "weight_block_size.1") s.tile[1] = value;
    };
    for (const auto& [key, value] : c.config) {
        for (const std::string_view section : sections) {
            // The configuration of a text model within another.
            const std::size_t at =
                key.starts_with(section) ? 0 : key.find(fmt::format(".{}", section));
            if (at == std::string::npos) continue;
            take(std::string_view(key).substr(at + section.size() + (at == 0 ? 0 : 1)), value);
            break;
        }
    }
    if (!s.any) {
        for (const auto& [key, value] : c.other_config) {
            const std::string_view all = key;
            take(all.starts_with("quantization.")
                     ? all.substr(std::string_view("quantization.").size())
                     : all,
                 value);
        }
    }
    if (!of_groups.empty()) {
        s.formats.assign(of_groups.begin(), of_groups.end());
    } else if (!format.empty() && format != "mixed-precision") {
        s.formats = {format};
    } else if (!algorithm.empty()) {
        s.formats = {algorithm};
    } else if (!method.empty()) {
        s.formats = {method};
    }
    s.mixed = s.mixed || algorithm == "MIXED_PRECISION" || format == "mixed-precision";
    return s;
}

// Empty where a format is stated that the table lacks.
std::string layouts_of(const statements& s) {
    std::string all;
    for (const std::string& format : s.formats) {
        const auto* const row =
            std::ranges::find(stated_formats, std::string_view(format), &stated_format::name);
        if (row == stated_formats.end()) return {};
        all += (all.empty() ? "" : " ") + std::string(row->layouts);
    }
    return all;
}

std::string listed(const std::set<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
    return text;
}

bool has_runs(const pairing& p) {
    return p.grid.block_rows == 1 && p.layout->block_cols != io::whole_matrix &&
           p.layout->block_rows == 1 && p.layout->codes != io::code_array::table4;
}

void formats_and_sizes(inspection& at, const statements& s) {
    const std::string layouts = layouts_of(s);
    for (const pairing& p : at.of.pairs.found) {
        if (!layouts.empty() && !s.mixed && !begins_with_any(p.layout->name, layouts)) {
            at.add("config", severity::error, p.codes,
                   fmt::format("it is stored as {}, and the configuration states {}",
                               p.layout->name, s.formats.front()),
                   "engines refuse it, or read its codes as those of another format",
                   "state its format, or quantize it as stated");
            continue;
        }
        if (has_runs(p) && !s.groups.empty()) {
            const std::uint64_t extent = p.shape.empty() ? 1 : p.shape.back();
            // With a group for each column, the number of scales tells their size.
            const tensor::shape& scales = at.info(p.scales).shape;
            const std::uint64_t size = p.groups && !scales.empty() && scales.front() != 0
                                           ? extent / scales.front()
                                           : p.grid.block_cols;
            const std::string have = std::to_string(size);
            const bool whole = size == extent && s.groups.contains("-1");
            const bool fp8_rows = p.layout->block_cols == io::whole_axis;
            if (!whole && !fp8_rows && !s.groups.contains(have)) {
                at.add("config", severity::error, p.codes,
                       fmt::format("{} codes share a scale, and the configuration states groups of "
                                   "{}",
                                   have, listed(s.groups)),
                       "engines refuse it, or multiply codes by the scales of others",
                       fmt::format("state a group size of {}", have));
            }
        }
        if (!s.bits.empty() && !s.bits.contains(std::to_string(p.code_bits))) {
            at.add("config", severity::error, p.codes,
                   fmt::format("its codes have {} bits, and the configuration states {}",
                               p.code_bits, listed(s.bits)),
                   "engines refuse it, or read other codes", "state the bits of its codes");
        }
        const bool tiles =
            p.grid.block_rows > 1 && !p.down && p.layout->block_cols != io::whole_matrix;
        if (tiles && !s.tile[0].empty() &&
            (s.tile[0] != std::to_string(p.grid.block_rows) ||
             s.tile[1] != std::to_string(p.grid.block_cols))) {
            at.add("config", severity::error, p.codes,
                   fmt::format("a scale is of {}x{} codes, and the configuration states {}x{}",
                               p.grid.block_rows, p.grid.block_cols, s.tile[0], s.tile[1]),
                   "engines refuse it, or multiply codes by the scales of others",
                   "state the tile that was quantized");
        }
    }
}

// "model.layers.*.self_attn.q_proj": one name for the same module of all layers and experts.
std::string kind_of(std::string_view module) {
    std::string kind;
    for (std::size_t begin = 0; begin <= module.size();) {
        const std::size_t end = std::min(module.find('.', begin), module.size());
        const std::string_view word = module.substr(begin, end - begin);
        const bool number =
            !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
        kind += (begin > 0 ? "." : "") + (number ? std::string("*") : std::string(word));
        begin = end + 1;
    }
    return kind;
}

void lists_of_modules(inspection& at, const statements& s) {
    std::map<std::string, std::size_t> kinds;  // of quantized modules
    base::view_set parts;
    for (const pairing& p : at.of.pairs.found) {
        for (const std::size_t part : p.parts()) parts.insert(at.info(part).name);
        const std::string module = module_of(p);
        ++kinds[kind_of(module)];
        const std::string_view by = s.ignored.entry_of(module);
        if (by.empty()) continue;
        at.add("config", severity::error, p.codes,
               fmt::format("it is quantized, and the configuration ignores it ('{}')", by),
               "engines read its codes as values, or refuse it", "take it off the list");
    }
    constexpr std::string_view end = ".weight";
    std::set<std::string, std::less<>> modules;
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const io::tensor_info& t = at.info(i);
        for (std::size_t dot = t.name.rfind('.'); dot != std::string::npos && dot > 0;
             dot = t.name.rfind('.', dot - 1)) {
            if (!modules.insert(t.name.substr(0, dot)).second) break;  // and its parents are there
        }
        const bool number = t.type == tensor::dtype::f32 || t.type == tensor::dtype::bf16 ||
                            t.type == tensor::dtype::f16;
        if (!number || t.shape.size() < 2 || !t.name.ends_with(end) || parts.contains(t.name) ||
            s.mixed) {
            continue;
        }
        const std::string module = t.name.substr(0, t.name.size() - end.size());
        const auto like = kinds.find(kind_of(module));
        if (like == kinds.end() || s.ignored.may_have(module)) continue;
        at.add(
            "config", severity::error, i,
            fmt::format("it is {}, {} of {} {} quantized, and the configuration does not ignore it",
                        tensor::row_of(t.type).name, like->second, like->first,
                        like->second == 1 ? "is" : "are"),
            "engines look for its codes, and refuse it or leave it as it was initialized",
            "add it to the list of ignored modules, or quantize it");
    }
    for (const std::string& name : s.ignored.names()) {
        const bool numbered = name.find_first_of("0123456789") != std::string::npos;
        if (!numbered || modules.contains(name)) continue;
        at.found.push_back({"config",
                            severity::warning,
                            {},
                            name,
                            "the configuration ignores it, and no tensor has that module",
                            "none, unless another was meant",
                            "correct the name"});
    }
}

void whole_configuration(inspection& at, const statements& s) {
    const bool model =
        at.of.config.contains("model_type") || at.of.config.contains("architectures.0");
    const auto& found = at.of.pairs.found;
    const bool original = !found.empty() && found.front().naming->codes == ".blocks";
    if (!s.any && model && !found.empty() && !original &&
        at.info(found.front().codes).layout.empty()) {
        at.found.push_back({"config",
                            severity::error,
                            {},
                            {},
                            fmt::format("config.json has no quantization_config, and {} tensors "
                                        "are quantized ('{}')",
                                        found.size(), found.front().name),
                            "engines read codes as values, or refuse them",
                            "state how the tensors are quantized"});
    }
    if (s.any && !s.formats.empty() && found.empty() && at.of.pairs.refused.empty() &&
        !layouts_of(s).empty() && !at.of.arrays.empty()) {
        at.found.push_back({"config",
                            severity::error,
                            {},
                            {},
                            fmt::format("the configuration states {}, and no tensor is quantized",
                                        s.formats.front()),
                            "engines look for codes and scales, and refuse the checkpoint",
                            "delete quantization_config, or quantize the tensors"});
    }
}

bool same_bytes(inspection& at, std::size_t a, std::size_t b) {
    const io::tensor_info &x = at.info(a), &y = at.info(b);
    if (x.type != y.type || x.shape != y.shape) return false;
    constexpr std::uint64_t piece = 1 << 20;
    const auto from = [&](std::size_t i) {
        return at.of.arrays[i].file->open(at.of.arrays[i].index);
    };
    const auto one = from(a), other = from(b);
    const std::uint64_t bytes = at.request.values ? x.bytes : std::min(x.bytes, piece);
    std::vector<std::byte> left, right;
    for (std::uint64_t first = 0; first < bytes; first += piece) {
        left.resize(std::min(piece, bytes - first));
        right.resize(left.size());
        one->read(first, left);
        other->read(first, right);
        if (left != right) return false;
    }
    return true;
}

void tied_head(inspection& at) {
    const auto said = [&](const char* key) {
        const auto found = at.of.config.find(key);
        return found != at.of.config.end() && found->second == "true";
    };
    if (!said("tie_word_embeddings") && !said("text_config.tie_word_embeddings")) return;
    std::optional<std::size_t> head, embedding;
    for (std::size_t i = 0; i < at.of.arrays.size(); ++i) {
        const std::string& name = at.info(i).name;
        if (name.ends_with("lm_head.weight")) head = i;
        if (name.ends_with("embed_tokens.weight") || name.ends_with("wte.weight")) embedding = i;
    }
    if (!head || !embedding || same_bytes(at, *head, *embedding)) return;
    at.add(
        "tied", severity::error, *head,
        fmt::format("config.json calls it tied to '{}', and they differ", at.info(*embedding).name),
        "engines use one of the two for both",
        "state tie_word_embeddings false, or delete the one that is not meant");
}

}  // namespace

void check_config(inspection& at) {
    const statements s = statements_in(at.of);
    whole_configuration(at, s);
    if (s.any) {
        formats_and_sizes(at, s);
        lists_of_modules(at, s);
    }
    tied_head(at);
}

}  // namespace mx::lint

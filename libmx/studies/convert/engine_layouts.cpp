// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/convert/engine_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/contraction.hpp"
#include "libmx/engine/fused.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/stated_layouts.hpp"
#include "libmx/report/json_line.hpp"
#include "libmx/studies/convert/output.hpp"

namespace mx::convert {
namespace {

using report::record;
using report::value;

constexpr std::string_view weight_end = ".weight";

static_assert(std::ranges::all_of(weight_forms,
                                  [](const weight_form& f) {
                                      return io::is_stated_layout(f.config);
                                  }),
              "a name that mx lint does not know");

bool holds(const weight_form& f, const codec::recipe& r) {
    return has_blocks_of(r, f.recipe) && outer_of(r) == f.outer &&
           codec::scales_have_codes(r) == (tensor::row_of(f.scales_type).bits == 8);
}

const weight_form& form_of(std::string_view layout, const codec::recipe& r) {
    std::vector<std::string_view> others;
    for (const weight_form& f : weight_forms) {
        if (f.layout != layout) continue;
        if (holds(f, r)) return f;
        others.push_back(f.recipe);
    }
    base::refuse("--layout {} cannot hold '{}'; it has {}, under any scale rule", layout,
                 codec::to_string(r), base::joined(others, ", "));
}

bool is_stack(const weight_form& f) { return f.code_axes == axes_form::blocks; }

// Why a layout has no place for a tensor; empty if it has.
std::string misfit(const weight_form& f, const codec::recipe& r, const io::tensor_info& info) {
    const tensor::shape& s = info.shape;
    if (is_stack(f)) {
        if (s.size() != 3) return fmt::format("{} has stacks of experts only", f.layout);
    } else if (s.size() != 2 || !info.name.ends_with(weight_end)) {
        return fmt::format("{} has matrices called MODULE.weight only", f.layout);
    }
    if (engine::axes_along_sums(info) != engine::last_axis(s)) {
        return "products do not sum over its last axis; see --transpose";
    }
    const auto rows = static_cast<std::uint64_t>(r.block.rows);
    const auto cols = static_cast<std::uint64_t>(r.block.cols);
    if (f.whole_blocks && (s.back() % cols != 0 || s[s.size() - 2] % rows != 0)) {
        return fmt::format("{} has whole blocks of {}x{} only", f.layout, rows, cols);
    }
    return {};
}

tensor::shape code_shape(const weight_form& f, const codec::recipe& r, tensor::shape s) {
    const int bits = r.element->bits();
    if (f.code_axes == axes_form::blocks) {
        const auto cols = static_cast<std::uint64_t>(r.block.cols);
        s.back() /= cols;
        s.push_back(cols * static_cast<std::uint64_t>(bits) / 8);
    } else {
        s.back() = s.back() * static_cast<std::uint64_t>(bits) / 8;
    }
    return s;
}

tensor::shape scale_shape(const weight_form& f, const tensor::shape& grid) {
    if (f.scale_axes == axes_form::rows) return {grid.begin(), grid.end() - 1};
    if (f.scale_axes == axes_form::tile_grid) return {grid[0], 1, grid[1], 1};
    return grid;
}

// What precedes the endings.
std::string owner_of(const weight_form& f, const std::string& tensor) {
    return is_stack(f) ? tensor : tensor.substr(0, tensor.size() - weight_end.size());
}

// The scales of inputs, by module.
using input_scales = std::map<std::string, float>;

stored_arrays arrays_of(const weight_form& f, const io::tensor_info& info, const codec::recipe& r,
                        const input_scales& inputs) {
    std::string reason;
    const engine::geometry layout = *engine::lay_out(info, r, reason);
    const std::string owner = owner_of(f, info.name);
    stored_arrays a;
    a.codes = {owner + std::string(f.codes), f.codes_type, code_shape(f, r, info.shape)};
    a.code_bits = r.element->bits();
    if (!f.scales.empty()) {
        a.scales = {owner + std::string(f.scales), f.scales_type,
                    scale_shape(f, layout.grid_shape)};
    }
    if (f.outer != outer_form::none) {
        const tensor::shape one =
            f.layout == "compressed-tensors" ? tensor::shape{1} : tensor::shape{};
        a.tensor_scale = {owner + std::string(f.tensor_scale), tensor::dtype::f32, one};
        if (const auto at = inputs.find(owner); at != inputs.end()) {
            a.input_scale = {owner + std::string(f.input_scale), tensor::dtype::f32, one};
            a.input_scale_value = at->second;
        }
    }
    a.scale_factor = f.scale_factor;
    return a;
}

// What was written under one recipe.
struct written {
    const weight_form* form;
    codec::recipe recipe;
    std::vector<std::string> modules;
    bool static_inputs;  ///< their scales are in the file
};

report::list names(const std::vector<std::string>& all) { return {all.begin(), all.end()}; }

record compressed_weights(const weight_form& f, const codec::recipe& r) {
    record w{{"num_bits", std::int64_t{r.element->bits()}},
             {"type", f.codes_type == tensor::dtype::i8 ? "int" : "float"},
             {"symmetric", true},
             {"dynamic", false}};
    if (r.block.rows > 1) {
        w.emplace_back("strategy", "block");
        w.emplace_back("block_structure",
                       report::list{std::int64_t{r.block.rows}, std::int64_t{r.block.cols}});
    } else if (f.scales_type == tensor::dtype::f32) {
        w.emplace_back("strategy", f.scales.empty() ? "tensor" : "channel");
    } else {
        w.emplace_back("strategy", f.outer == outer_form::none ? "group" : "tensor_group");
        w.emplace_back("group_size", std::int64_t{r.block.cols});
        w.emplace_back("scale_dtype",
                       f.scales_type == tensor::dtype::u8 ? "torch.uint8" : "torch.float8_e4m3fn");
    }
    return w;
}

value compressed_activations(const weight_form& f, const codec::recipe& r, bool static_inputs) {
    if (static_inputs) {  // the tensor scale is in the file, scales of blocks are computed
        record a = compressed_weights(f, r);
        for (auto& [name, of] : a) {
            if (name == "dynamic" && codec::has_blocks(r)) of = "local";
        }
        return a;
    }
    if (f.activations == weights_only) return {};
    record a{{"num_bits", std::int64_t{r.element->bits()}},
             {"type", f.codes_type == tensor::dtype::i8 ? "int" : "float"},
             {"symmetric", true},
             {"dynamic", true}};
    a.emplace_back("strategy", r.block.rows > 1 ? "group" : "token");
    if (r.block.rows > 1) a.emplace_back("group_size", std::int64_t{r.block.cols});
    return a;
}

record compressed_config(const std::vector<written>& all, const std::vector<std::string>& kept) {
    record groups;
    std::set<std::string_view> formats;
    for (const written& w : all) {
        formats.insert(w.form->config);
        groups.emplace_back(
            fmt::format("group_{}", groups.size()),
            record{
                {"targets", all.size() == 1 ? report::list{"Linear"} : names(w.modules)},
                {"weights", compressed_weights(*w.form, w.recipe)},
                {"input_activations", compressed_activations(*w.form, w.recipe, w.static_inputs)},
                {"output_activations", value()},
                {"format", std::string(w.form->config)}});
    }
    return {{"quant_method", "compressed-tensors"},
            {"format", formats.size() == 1 ? std::string(*formats.begin()) : "mixed-precision"},
            {"quantization_status", "compressed"},
            {"config_groups", std::move(groups)},
            {"ignore", names(kept)}};
}

record modelopt_config(const std::vector<written>& all, const std::vector<std::string>& kept) {
    record config{{"quant_method", "modelopt"},
                  {"quant_algo", std::string(all.front().form->config)},
                  {"kv_cache_quant_algo", value()},
                  {"ignore", names(kept)}};
    if (all.front().form->scales_type == tensor::dtype::f8_e4m3) {
        config.emplace_back("group_size", std::int64_t{all.front().recipe.block.cols});
    }
    return config;
}

record deepseek_config(const std::vector<written>& all, const std::vector<std::string>& kept) {
    const codec::block_shape& block = all.front().recipe.block;
    return {{"quant_method", std::string(all.front().form->config)},
            {"fmt", "e4m3"},
            {"activation_scheme", "dynamic"},
            {"weight_block_size", report::list{std::int64_t{block.rows}, std::int64_t{block.cols}}},
            {"modules_to_not_convert", names(kept)}};
}

record gpt_oss_config(const std::vector<written>& all, const std::vector<std::string>& kept) {
    return {{"quant_method", std::string(all.front().form->config)},
            {"modules_to_not_convert", names(kept)}};
}

struct layout_config {
    std::string_view layout;
    record (*config)(const std::vector<written>& all, const std::vector<std::string>& kept);
    bool mixes;  ///< recipes
};
constexpr std::array layout_configs{layout_config{"compressed-tensors", compressed_config, true},
                                    layout_config{"modelopt", modelopt_config, false},
                                    layout_config{"deepseek", deepseek_config, false},
                                    layout_config{"gpt-oss", gpt_oss_config, false}};

// A copy for programs that read only this file.
record hf_quant_config(const record& config) {
    record quantization{{"quant_algo", *report::find(config, "quant_algo")},
                        {"kv_cache_quant_algo", value()},
                        {"exclude_modules", *report::find(config, "ignore")}};
    if (const value* const size = report::find(config, "group_size")) {
        quantization.emplace_back("group_size", *size);
    }
    return {{"producer", record{{"name", "mx"}}}, {"quantization", std::move(quantization)}};
}

// The modules of matrices that are not quantized. A tied head is in the model, though in no file.
std::vector<std::string> kept_modules(const std::vector<io::planned_array>& plan,
                                      const std::vector<written>& all) {
    std::set<std::string> quantized;
    for (const written& w : all) quantized.insert(w.modules.begin(), w.modules.end());
    std::set<std::string> kept{"lm_head"};
    for (const io::planned_array& a : plan) {
        if (a.shape.size() < 2 || !a.name.ends_with(weight_end)) continue;
        kept.insert(a.name.substr(0, a.name.size() - weight_end.size()));
    }
    for (const std::string& module : quantized) kept.erase(module);
    return {kept.begin(), kept.end()};
}

// Keeps what the layout has no place for, and the partners of what is kept. Throws base::error if
// no recipe remains.
void settle(std::string_view layout, std::vector<assigned_tensor>& tensors) {
    std::map<std::string, std::vector<assigned_tensor*>> fused;
    const assigned_tensor* first = nullptr;  // that has no place
    const bool stacks = is_stack(*std::ranges::find(weight_forms, layout, &weight_form::layout));
    for (assigned_tensor& t : tensors) {
        const io::tensor_info& info = t.tensor.info();
        if (t.recipe) {
            t.kept = misfit(form_of(layout, *t.recipe), *t.recipe, info);
            if (!t.kept.empty()) {
                t.recipe.reset();
                if (first == nullptr) first = &t;
            }
        }
        const bool matrix = info.shape.size() == 2 && info.name.ends_with(weight_end);
        if (stacks ? t.recipe.has_value() : matrix) {
            fused[engine::fused_name(info.name)].push_back(&t);
        }
    }
    if (first != nullptr &&
        std::ranges::none_of(tensors, [](const auto& t) { return t.recipe.has_value(); })) {
        const io::tensor_info& info = first->tensor.info();
        throw base::error(base::error_kind::input, "nothing can be quantized: " + first->kept,
                          {info.file, info.name, {}});
    }
    for (const auto& [name, partners] : fused) {
        const auto kept = std::ranges::find_if(partners, [](auto* t) { return !t->recipe; });
        for (assigned_tensor* t : partners) {
            if (kept != partners.end()) {
                if (!t->recipe) continue;
                t->recipe.reset();
                t->kept = fmt::format("engines load it and '{}', which is kept, as one matrix",
                                      (*kept)->tensor.info().name);
            } else if (*t->recipe != *partners.front()->recipe) {
                base::refuse(
                    "'{}' has {} and '{}' has {}, but engines load them as one matrix: give both "
                    "one recipe",
                    base::printable(partners.front()->tensor.info().name),
                    codec::to_string(*partners.front()->recipe),
                    base::printable(t->tensor.info().name), codec::to_string(*t->recipe));
            }
        }
    }
}

// As files have it, of a tensor with this largest magnitude.
float tensor_scale_under(codec::recipe r, float amax) {
    r.outer = {};
    return codec::tensor_scale_of(r, {base::bits_of(amax)}).stored;
}

// Gives partners the tensor scale of the largest value in any of them, and a tensor without blocks
// its own.
void share_tensor_scales(std::vector<assigned_tensor>& tensors,
                         const engine::run_control& control) {
    std::map<std::string, std::vector<assigned_tensor*>> fused;
    for (assigned_tensor& t : tensors) {
        if (t.recipe && codec::needs_tensor_facts(*t.recipe)) {
            fused[engine::fused_name(t.tensor.info().name)].push_back(&t);
        }
    }
    std::erase_if(fused, [](const auto& group) {
        return group.second.size() < 2 && codec::has_blocks(*group.second.front()->recipe);
    });
    std::vector<engine::tensor_ref> all;
    for (const auto& group : fused) {
        for (const assigned_tensor* t : group.second) all.push_back(t->tensor);
    }
    const std::vector<float> largest = largest_magnitudes(all, control);
    auto next = largest.begin();
    for (const auto& group : fused) {
        const auto end = next + static_cast<std::ptrdiff_t>(group.second.size());
        const float amax = *std::max_element(next, end);
        next = end;
        for (assigned_tensor* t : group.second) {
            t->recipe->outer.value = tensor_scale_under(*t->recipe, amax);
            t->recipe->outer.what = codec::outer_choice::kind::given;
        }
    }
}

// The scales of the inputs of all modules, from a dump of them; partners have those of the largest.
input_scales scales_of_inputs(const std::vector<written>& all, const std::string& dump,
                              const engine::run_control& control) {
    const std::unique_ptr<io::reader> file = io::open_model(dump);
    std::map<std::string, std::size_t> arrays;
    for (std::size_t i = 0; i < file->tensors().size(); ++i) {
        arrays.emplace(file->tensors()[i].name, i);
    }
    std::vector<engine::tensor_ref> inputs;
    for (const written& w : all) {
        for (const std::string& module : w.modules) {
            const auto at = arrays.find(module + ".x");
            if (at == arrays.end()) {
                throw base::error(base::error_kind::input,
                                  "has no such array, the inputs of a module: make the dump with "
                                  "mx eval MODEL --dump '*.x'",
                                  {dump, module + ".x", {}});
            }
            inputs.push_back({file.get(), at->second});
        }
    }
    const std::vector<float> largest = largest_magnitudes(inputs, control);
    std::map<std::string, float> by_partners;
    const auto next_of = [&](auto&& use) {
        auto next = largest.begin();
        for (const written& w : all) {
            for (const std::string& module : w.modules) use(w, module, *next++);
        }
    };
    next_of([&](const written&, const std::string& module, float amax) {
        float& most = by_partners[engine::fused_name(module)];
        most = std::max(most, amax);
    });
    input_scales scales;
    next_of([&](const written& w, const std::string& module, float) {
        const float amax = by_partners[engine::fused_name(module)];
        scales[module] = tensor_scale_under(w.recipe, amax);
    });
    return scales;
}

void check_inputs(const written& w, std::string_view layout, const std::string& dump) {
    if (w.form->input_scale.empty() && !dump.empty()) {
        base::refuse("--input-scales: {} has no static scales of activations for '{}'", layout,
                     codec::to_string(w.recipe));
    }
    if (w.form->needs_input_scale && dump.empty()) {
        base::refuse(
            "--layout {}: '{}' needs the scale of each module's input: make a dump with mx eval "
            "MODEL --dump '*.x' -o x.safetensors, and add --input-scales x.safetensors",
            layout, codec::to_string(w.recipe));
    }
}

}  // namespace

outer_form outer_of(const codec::recipe& r) {
    if (!codec::has_tensor_scale(r)) return outer_form::none;
    const codec::two_level_kind kind = r.by->two_level.value;
    return kind == codec::two_level_kind::te || kind == codec::two_level_kind::compressed_tensors
               ? outer_form::divides
               : outer_form::multiplies;
}

bool has_blocks_of(const codec::recipe& r, std::string_view like) {
    const codec::recipe other = codec::parse_recipe(like);
    return r.scope == other.scope && r.element == other.element &&
           r.scale_format == other.scale_format && r.block == other.block && r.axis == other.axis &&
           r.rotate == other.rotate && r.offset == codec::offset_kind::none &&
           !codec::has_outer_areas(r) && !codec::bumps_positions(r);
}

const std::vector<std::string_view>& engine_layouts() {
    static const std::vector<std::string_view> all = [] {
        std::vector<std::string_view> names;
        for (const layout_config& c : layout_configs) names.push_back(c.layout);
        names.push_back(gguf_layout);
        return names;
    }();
    return all;
}

conversion write_engine_layout(std::string_view layout, std::vector<assigned_tensor> tensors,
                               const std::string& folder, const std::string& activations,
                               std::uint64_t shard_bytes, const engine::run_control& control) {
    if (layout == gguf_layout) {
        if (!activations.empty()) {
            base::refuse("--input-scales: gguf has no static scales of activations");
        }
        return write_gguf_layout(tensors, folder, control);
    }
    const layout_config& of = *std::ranges::find(layout_configs, layout, &layout_config::layout);
    settle(layout, tensors);
    std::vector<written> all;
    std::string from;
    for (const assigned_tensor& t : tensors) {
        const io::tensor_info& info = t.tensor.info();
        if (from.empty()) from = info.file;
        if (!t.recipe) continue;
        auto at = std::ranges::find(all, *t.recipe, &written::recipe);
        if (at == all.end()) {
            at = all.insert(
                at, written{&form_of(layout, *t.recipe), *t.recipe, {}, !activations.empty()});
            check_inputs(*at, layout, activations);
        }
        at->modules.push_back(owner_of(*at->form, info.name));
    }
    if (all.size() > 1 && !of.mixes) {
        base::refuse("--layout {}: its configuration has one recipe for all tensors, not {} and {}",
                     layout, codec::to_string(all[0].recipe), codec::to_string(all[1].recipe));
    }
    const auto blocks = [](const written& w) { return codec::has_blocks(w.recipe); };
    if (all.size() > 1 && !std::ranges::all_of(all, blocks)) {
        base::refuse("--layout {}: a recipe without blocks is for all tensors, not {} beside {}",
                     layout, codec::to_string(all[0].recipe), codec::to_string(all[1].recipe));
    }
    if (io::is_remote(from)) {
        base::refuse(
            "--layout {}: the files beside a model at an address are not listed; download its "
            "folder first",
            layout);
    }
    const input_scales inputs =
        activations.empty() ? input_scales() : scales_of_inputs(all, activations, control);
    share_tensor_scales(tensors, control);

    const storage arrays = [&](const io::tensor_info& info, const codec::recipe& r) {
        return arrays_of(form_of(layout, r), info, r, inputs);
    };
    const destination to = [&](const std::vector<io::planned_array>& plan, const auto&) {
        const record config = of.config(all, kept_modules(plan, all));
        const std::string source = io::model_config_path(from);
        std::vector<io::companion_file> beside = io::companions_in(
            source.substr(0, source.size() - std::string_view("config.json").size()));
        beside.push_back(
            {"config.json", io::config_quantized_by(from, report::json_indented(config))});
        if (layout == "modelopt") {
            beside.push_back(
                {"hf_quant_config.json", report::json_indented(hf_quant_config(config))});
        }
        return io::create_model_folder(folder, plan, beside, shard_bytes);
    };
    if (!all.empty() && !codec::has_blocks(all.front().recipe)) {
        cast_request request;
        static_cast<engine::cast_recipe&>(request) =
            engine::parse_cast_recipe(codec::to_string(all.front().recipe));
        request.packed = true;
        request.arrays = arrays;
        return cast(tensors, request, to, control);
    }
    conversion_parts parts;
    parts.arrays = arrays;
    return quantize_model(tensors, quantized_form::packed, true, to, control, parts);
}

}  // namespace mx::convert

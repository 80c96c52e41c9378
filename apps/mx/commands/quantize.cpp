// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "apps/mx/options.hpp"
#include "apps/mx/parts.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/documents/checkpoint.hpp"
#include "libmx/studies/convert/assignment.hpp"
#include "libmx/studies/convert/engine_layouts.hpp"

namespace mx::app {
namespace {

struct quantize_options {
    input_options in;
    run_options run;
    std::string out;
    std::string recipe;
    std::string plan;
    bool all_tensors = false;
    bool keep_rest = false;
    bool packed = false;
    std::string layout, activations;
    std::optional<std::uint64_t> shard_bytes;
    part_options parts;
};

// The tensors of the requested part: whole tensors, because arrays are written whole.
std::vector<convert::assigned_tensor> part_of(const std::vector<convert::assigned_tensor>& all,
                                              const engine::part_number& part,
                                              std::uint64_t& bytes) {
    std::vector<engine::tensor_ref> tensors;
    for (const convert::assigned_tensor& t : all) tensors.push_back(t.tensor);
    std::vector<convert::assigned_tensor> some;
    for (const engine::tensor_range& p :
         engine::ranges_of(tensors, part, engine::splitting::none)) {
        some.push_back(all[p.tensor]);
        bytes += engine::bytes_of(tensors[p.tensor].info());
    }
    return some;
}

// Under a recipe without blocks.
convert::conversion cast(const quantize_options& o, const std::vector<engine::tensor_ref>& all,
                         const std::vector<engine::tensor_ref>& chosen, bool operands,
                         const convert::destination& to) {
    if (!o.parts.shard.empty()) {
        refuse("--shard: parts are made under recipes with blocks, not under {}", o.recipe);
    }
    const auto assigned = operands ? documents::operands_in(all, {})
                                   : convert::assign(codec::recipe(), all, chosen, o.keep_rest);
    return convert::cast(assigned, {engine::parse_cast_recipe(o.recipe), o.packed}, to,
                         control_of(o.run));
}

void check_layout(const quantize_options& o) {
    const std::vector<std::string_view>& known = convert::engine_layouts();
    if (std::ranges::find(known, o.layout) == known.end()) {
        unknown_name("--layout", "layout", o.layout, known);
    }
    if (o.packed || o.all_tensors || !o.parts.shard.empty() || !o.parts.merged.empty()) {
        refuse("--layout excludes {}", o.packed        ? "--packed"
                                       : o.all_tensors ? "--all-tensors"
                                                       : "--shard");
    }
    if (o.out == "-" && o.layout != convert::gguf_layout) {
        refuse("--layout {}: writes a folder; name it with -o", o.layout);
    }
    if (engine::is_cast_recipe(o.recipe) && !engine::parse_cast_recipe(o.recipe).tensor_scaled) {
        refuse(
            "--layout: {} has no scale; FORMAT:scale=channel has one per row, FORMAT:scale=tensor "
            "one for the tensor",
            o.recipe);
    }
}

int run_quantize(const quantize_options& o) {
    if (o.recipe.empty() == o.plan.empty()) {
        refuse("quantize: give a recipe for all tensors, --recipe R, or one for each, --plan FILE");
    }
    if (o.all_tensors && (!o.in.globs.empty() || !o.plan.empty())) {
        refuse("quantize: --all-tensors excludes {}; give one of them",
               o.plan.empty() ? "--tensor" : "--plan");
    }
    if (!o.layout.empty()) {
        check_layout(o);
    } else if (!o.activations.empty()) {
        refuse("--input-scales: scales of activations are for a --layout");
    }
    std::vector<codec::recipe> recipes;
    const bool blocks = !engine::is_cast_recipe(o.recipe) || !o.layout.empty();
    if (!blocks) {
        engine::parse_cast_recipe(o.recipe);
    } else if (!o.recipe.empty()) {
        recipes.push_back(o.layout.empty() ? codec::parse_block_recipe(o.recipe)
                                           : convert::parse_layout_recipe(o.layout, o.recipe));
    }
    require_distinct({o.plan, o.activations}, {o.out});
    const engine::model model = open_inputs(o.in, {o.out});
    const auto all = model.tensors();
    const auto chosen = model.select(o.in.globs);
    // The only tensor of a file needs no role to be meant.
    const bool operands = o.plan.empty() && o.in.globs.empty() && !o.all_tensors && all.size() > 1;
    const bool keep_rest = o.keep_rest || operands || !o.layout.empty();
    engine::require_names_once(keep_rest ? all : chosen);
    if (o.shard_bytes && o.layout.empty() && !io::has_ending(o.out, io::shards_ending)) {
        refuse("--max-shard-size: for an output NAME{}", io::shards_ending);
    }
    const convert::destination to =
        convert::to_file(o.out, o.shard_bytes.value_or(io::usual_shard_bytes));
    if (!blocks) {
        report_conversion(cast(o, all, chosen, operands, to), "quantized", o.out, o.run.quiet);
        return exit_code::fine;
    }
    auto assigned = operands ? documents::operands_in(all, recipes.front(), !o.layout.empty())
                    : o.plan.empty() ? convert::assign(recipes.front(), all, chosen, keep_rest)
                                     : convert::assign(convert::read_assignment(o.plan, o.layout),
                                                       all, chosen, keep_rest);
    for (const convert::assigned_tensor& t : assigned) {
        const bool known = !t.recipe || std::ranges::find(recipes, *t.recipe) != recipes.end();
        if (!known) recipes.push_back(*t.recipe);
    }
    if (!o.layout.empty()) {
        const auto done = convert::write_engine_layout(
            o.layout, std::move(assigned), o.out, o.activations,
            o.shard_bytes.value_or(io::usual_shard_bytes), control_of(o.run, recipes));
        report_conversion(done, "quantized", o.out, o.run.quiet);
        return exit_code::fine;
    }
    convert::conversion_parts parts;
    std::vector<std::unique_ptr<io::reader>> merged;
    const documents::part_inputs inputs(model.files(), all, o.parts);
    documents::check_parts(o.parts, inputs, false);
    if (!o.parts.shard.empty()) {
        if (!io::has_ending(o.out, ".safetensors")) {
            refuse("{}: parts are .safetensors files", o.out);
        }
        std::uint64_t bytes = 0;
        assigned = part_of(assigned, engine::parse_part(o.parts.shard), bytes);
        parts.note = documents::part_text(o.parts, inputs, bytes);
    }
    for (const std::string& path : o.parts.merged) {
        merged.push_back(io::open_model(path));
        parts.merged.push_back(merged.back().get());
    }
    const auto form = o.packed ? convert::quantized_form::packed : convert::quantized_form::values;
    const auto done =
        convert::quantize_model(assigned, form, keep_rest, to, control_of(o.run, recipes), parts);
    report_conversion(done, "quantized", o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_quantize(parser& cmd) {
    const auto o = std::make_shared<quantize_options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out,
                        "a .safetensors, .h5 or, of one tensor, .npy file, or the "
                        "NAME.safetensors.index.json of several files; with --layout a folder");
    declare_shard_size(cmd, o->shard_bytes);
    cmd.group("Conversion");
    cmd.add_option(
        "-r,--recipe RECIPE", o->recipe,
        "one recipe for what mx analyze calls operands of products, e.g. "
        "mxfp4:scale=even, or a format without a scale, e.g. bf16, e4m3:scale=tensor; norms, "
        "biases, embeddings, routers and the like are copied as stored; see 'mx explain RECIPE'");
    cmd.add_flag("--all-tensors", o->all_tensors, "quantize every tensor of numbers instead");
    cmd.add_option("--plan PLAN.json", o->plan,
                   "a recipe for each tensor: the JSON of mx plan or mx report; 'stored' and "
                   "'keep' copy a tensor as stored");
    cmd.add_flag("--keep-rest", o->keep_rest,
                 "with --tensor or --plan: copy all other tensors as stored: those that --tensor "
                 "does not match, that the "
                 "plan does not name, or that a recipe does not fit");
    cmd.add_flag(
        "--packed", o->packed,
        "write codes and scales (w.codes, w.scales) instead of the dequantized F32 values");
    cmd.add_option(
        "--layout NAME", o->layout,
        fmt::format("write what inference engines load: a folder with config.json and the "
                    "tokenizer, or a GGUF file: {}",
                    base::joined(convert::engine_layouts(), ", ")));
    cmd.add_option(
        "--input-scales FILE", o->activations,
        "with --layout: inputs of modules, of 'mx eval --dump', for their static scales");
    declare_parts(cmd, o->parts, "quantize", false);
    declare_run(cmd, o->run);
    cmd.description(
        "Quantizes the operands of products under one recipe, the tensors that --tensor chooses, "
        "or "
        "each tensor under its recipe in a plan, and writes the dequantized values, or with "
        "--packed the codes and scales, from which 'mx dequantize' "
        "computes the same values. Under a transform, codes and scales are of the rotated tensor "
        "and values are rotated back. A plan of another model is refused. Recipes without a scale "
        "name a wide, an element or a scale format, and take the keys round, ties, random_bits, "
        "seed, int_min, dialect, saturate and scale=tensor; with --packed, bf16 and f16 are stored "
        "as such. With --layout, matrices that engines load as one share their tensor scale, and "
        "-o names a new folder; gguf takes a GGUF file, or a folder of Llama, Mistral, Qwen2 or "
        "Qwen3 with its tokenizer, and writes a GGUF file.");
    cmd.examples(
        "mx quantize model.safetensors -o mxfp4.safetensors --recipe mxfp4 --packed\n"
        "mx quantize model.safetensors -o values.safetensors --recipe mxfp8:scale=rceil\n"
        "mx quantize model.safetensors -o mixed.safetensors --plan plan.json --keep-rest "
        "--packed\n"
        "mx quantize model.safetensors.index.json -o q/model.safetensors.index.json -r mxfp8\n"
        "mx quantize folder -o engine -r mxfp4:scale=even --layout compressed-tensors\n"
        "mx quantize model.gguf -o fp4.gguf -r nvfp4 --layout gguf\n"
        "mx quantize folder -o fp4.gguf -r mxfp4 --layout gguf\n"
        "mx quantize w.npy -o jax.npy -r e5m2:dialect=ml_dtypes\n");
    return [o] { return run_quantize(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/mx/options.hpp"
#include "apps/mx/parts.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/studies/convert/assignment.hpp"

namespace mx::app {
namespace {

struct quantize_options {
    input_options in;
    run_options run;
    std::string out;
    std::string recipe;
    std::string plan;
    bool keep_rest = false;
    bool packed = false;
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
    for (const engine::tensor_piece& p : engine::deal(tensors, part, engine::cutting::none)) {
        some.push_back(all[p.tensor]);
        bytes += engine::bytes_of(tensors[p.tensor].info());
    }
    return some;
}

int run_quantize(const quantize_options& o) {
    if (o.recipe.empty() == o.plan.empty()) {
        refuse("quantize: give a recipe for all tensors, --recipe R, or one for each, --plan FILE");
    }
    std::vector<codec::recipe> recipes;
    if (!o.recipe.empty()) recipes.push_back(codec::parse_recipe(o.recipe));
    require_distinct({o.plan}, {o.out});
    const engine::model model = open_inputs(o.in, {o.out});
    const auto all = model.select({});
    const auto chosen = model.select(o.in.globs);
    auto assigned = o.plan.empty() ? convert::assign(recipes.front(), all, chosen, o.keep_rest)
                                   : convert::assign(convert::read_assignment(o.plan), all, chosen,
                                                     o.keep_rest);
    for (const convert::assigned_tensor& t : assigned) {
        const bool known = !t.recipe || std::ranges::find(recipes, *t.recipe) != recipes.end();
        if (!known) recipes.push_back(*t.recipe);
    }
    if (o.shard_bytes && !io::has_ending(o.out, io::shards_ending)) {
        refuse("--max-shard-size: for an output NAME{}", io::shards_ending);
    }
    const convert::destination to =
        convert::to_file(o.out, o.shard_bytes.value_or(io::usual_shard_bytes));
    convert::conversion_parts parts;
    std::vector<std::unique_ptr<io::reader>> merged;
    const documents::part_inputs inputs(model.files(), all);
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
        convert::quantize_model(assigned, form, o.keep_rest, to, control_of(o.run, recipes), parts);
    report_conversion(done, o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_quantize(parser& cmd) {
    const auto o = std::make_shared<quantize_options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out,
                        "a .safetensors, .h5 or, of one tensor, .npy file, or the "
                        "NAME.safetensors.index.json of several files");
    declare_shard_size(cmd, o->shard_bytes);
    cmd.group("Conversion");
    cmd.add_option("-r,--recipe RECIPE", o->recipe,
                   "one recipe for all tensors, e.g. mxfp4:scale=even; see 'mx explain RECIPE'");
    cmd.add_option("--plan PLAN.json", o->plan,
                   "a recipe for each tensor: the JSON of mx plan or mx report; 'stored' and "
                   "'keep' copy a tensor as stored");
    cmd.add_flag("--keep-rest", o->keep_rest,
                 "copy all other tensors as stored: those that --tensor does not match, that the "
                 "plan does not name, or that a recipe does not fit");
    cmd.add_flag(
        "--packed", o->packed,
        "write codes and scales (w.codes, w.scales) instead of the dequantized F32 values");
    declare_parts(cmd, o->parts, "quantize", false);
    declare_run(cmd, o->run);
    cmd.description(
        "Quantizes tensors under one recipe, or each under its recipe in a plan, and writes the "
        "dequantized values, or with --packed the codes and scales, from which 'mx dequantize' "
        "computes the same values. Under a transform, codes and scales are of the rotated tensor "
        "and values are rotated back. A plan of another model is refused.");
    cmd.examples(
        "mx quantize model.safetensors -o mxfp4.safetensors --recipe mxfp4 --packed\n"
        "mx quantize model.safetensors -o values.safetensors --recipe mxfp8:scale=rceil\n"
        "mx quantize model.safetensors -o mixed.safetensors --plan plan.json --keep-rest "
        "--packed\n"
        "mx quantize model.safetensors.index.json -o q/model.safetensors.index.json -r mxfp8\n");
    return [o] { return run_quantize(*o); };
}

}  // namespace mx::app

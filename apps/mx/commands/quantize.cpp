// SPDX-License-Identifier: Apache-2.0

#include "apps/mx/options.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {
namespace {

struct quantize_options {
    input_options in;
    run_options run;
    std::string out;
    std::string recipe;
    bool packed = false;
};

int run_quantize(const quantize_options& o) {
    const codec::recipe recipe = codec::parse_recipe(o.recipe);
    const engine::model model = open_inputs(o.in, {o.out});
    const auto done = convert::quantize_model(model.select(o.in.globs), recipe, o.packed, o.out,
                                              control_of(o.run, {&recipe, 1}));
    report_conversion(done, o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_quantize(parser& cmd) {
    const auto o = std::make_shared<quantize_options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out, "a .safetensors, .h5 or, of one tensor, .npy file");
    cmd.group("Conversion");
    cmd.add_option("-r,--recipe RECIPE", o->recipe,
                   "e.g. mxfp4:scale=even; see 'mx explain RECIPE'")
        ->required();
    cmd.add_flag(
        "--packed", o->packed,
        "write codes and scales (w.codes, w.scales) instead of the dequantized F32 values");
    declare_run(cmd, o->run);
    cmd.description(
        "Writes what the tensors become under a recipe: the dequantized values, or with --packed "
        "the codes and scales, from which 'mx dequantize' makes the same values. Under a "
        "transform, "
        "codes and scales are of the rotated tensor and values are rotated back.");
    cmd.examples(
        "mx quantize model.safetensors -o mxfp4.safetensors --recipe mxfp4 --packed\n"
        "mx quantize model.safetensors -o values.safetensors --recipe mxfp8:scale=rceil\n");
    return [o] { return run_quantize(*o); };
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0

#include "apps/mx/options.hpp"
#include "libmx/engine/packed_file.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {
namespace {

struct dequantize_options {
    input_options in;
    std::string out;
    run_options run;
};

int run_dequantize(const dequantize_options& o) {
    const engine::model model = open_inputs(o.in, {o.out});
    // mx's own files contain their recipes, and errors say what is missing.
    const auto& files = model.readers();
    const bool own = files.size() == 1 && engine::names_recipes(*files.front()) &&
                     o.in.globs.empty() && o.in.views.splits.empty() &&
                     o.in.views.transposed.empty() && o.in.views.experts.empty() &&
                     o.in.views.heads.empty() && !o.in.views.raw;
    const auto chosen = model.select(o.in.globs);
    engine::require_names_once(chosen);
    const auto done = own ? convert::dequantize_model(*files.front(), o.out, control_of(o.run))
                          : convert::dequantize_tensors(chosen, o.out, control_of(o.run));
    report_conversion(done, "dequantized", o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_dequantize(parser& cmd) {
    const auto o = std::make_shared<dequantize_options>();
    declare_inputs(cmd, o->in);
    declare_destination(cmd, o->out, "a .safetensors, .h5 or, of one tensor, .npy file");
    declare_run(cmd, o->run, false);
    cmd.description(
        "Writes the values of codes and scales as float32: for files of 'mx quantize --packed', "
        "which name their recipes, and for every layout of quantized checkpoints that mx reads, "
        "including the blocks of GGUF. Other tensors are copied as stored; packings that mx does "
        "not support are copied too, and named.");
    cmd.examples(
        "mx dequantize mxfp4.safetensors -o values.safetensors\n"
        "mx dequantize model.gguf -o values.safetensors --tensor '*ffn_down*'\n");
    return [o] { return run_dequantize(*o); };
}

}  // namespace mx::app

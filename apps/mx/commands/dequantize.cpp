// SPDX-License-Identifier: Apache-2.0

#include "apps/mx/options.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {
namespace {

struct dequantize_options {
    std::string file;
    std::string out;
    run_options run;
};

int run_dequantize(const dequantize_options& o) {
    require_distinct({o.file}, {o.out});
    const auto file = io::open_model(o.file);
    const auto done = convert::dequantize_model(*file, o.out, control_of(o.run));
    report_conversion(done, o.out, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_dequantize(parser& cmd) {
    const auto o = std::make_shared<dequantize_options>();
    cmd.group("Input");
    cmd.add_option("FILE", o->file, "a file written by 'mx quantize --packed'")->required();
    declare_destination(cmd, o->out, "a .safetensors, .h5 or, of one tensor, .npy file");
    declare_run(cmd, o->run, false);
    cmd.description("Multiplies codes and scales out again. The recipe is in the file.");
    cmd.examples("mx dequantize mxfp4.safetensors -o values.safetensors\n");
    return [o] { return run_dequantize(*o); };
}

}  // namespace mx::app

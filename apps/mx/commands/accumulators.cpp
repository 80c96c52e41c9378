// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/accumulator_tables.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/gemm/accumulators.hpp"

namespace mx::app {
namespace {

struct options {
    std::string model;
    output_options out;
};

}  // namespace

runner declare_accumulators(parser& cmd) {
    const auto o = std::make_shared<options>();
    cmd.add_option("MODEL", o->model,
                   "one model to describe, fields changed or not: NAME[:key=value,...]; all "
                   "without")
        ->group("Input");
    declare_outputs(cmd, o->out);
    cmd.description(
        "The models of matrix units that products can be emulated with, bit for bit: what each "
        "takes, where it cuts off and rounds, and whether that was recorded on the chip, published "
        "by people who compared it with the chip, or extrapolated.");
    examples(cmd,
             "mx accumulators\n"
             "mx accumulators sm100.mxf8f6f4\n"
             "mx accumulators sm90.wgmma.fp8:promote=128\n");
    return [o] {
        outputs to(o->out, {});
        to.finish(o->model.empty() ? accumulators_document()
                                   : accumulator_document(gemm::parse_accumulator(o->model)),
                  false);
        return exit_code::fine;
    };
}

}  // namespace mx::app

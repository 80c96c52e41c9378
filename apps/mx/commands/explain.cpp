// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include "apps/mx/options.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/policy/targets.hpp"

namespace mx::app {
namespace {

struct explain_command {
    documents::explain_options options;
    output_options out;
};

}  // namespace

runner declare_explain(parser& cmd) {
    const auto o = std::make_shared<explain_command>();
    cmd.group("Input");
    cmd.add_option("WHAT", o->options.subject,
                   "a recipe; the name of a format, a rule, a dialect, an accumulator model or a "
                   "metric; or a list: formats, rules, dialects, accumulators, metrics, policy")
        ->required();
    cmd.add_option(
        "WHICH", o->options.names,
        "of a list: names; of a format: codes (0x7, 0b0111 or 7); of a dialect: another, for "
        "the differences; of 'policy': inference (default), training or a file, whose name "
        "has a '.' or '/'");
    cmd.add_option("--target TARGET", o->options.target,
                   fmt::format("for 'policy': also prints what is native there: {}",
                               fmt::join(names_of(policy::targets), ", ")));
    declare_outputs(cmd, o->out);
    cmd.description(
        "Describes what recipes are made of, what is measured, how products are summed, and the "
        "rules by which a policy recommends recipes (docs/design/policy.md).");
    cmd.examples(
        "mx explain mxfp4:scale=even\n"
        "mx explain e2m1 0x7\n"
        "mx explain underflow_rate\n"
        "mx explain dialects\n"
        "mx explain torchao fbgemm\n"
        "mx explain sm90.wgmma.fp8:promote=128\n"
        "mx explain policy training --target b200\n");
    return [o] { return print_document(o->out, [&] { return documents::explain(o->options); }); };
}

}  // namespace mx::app

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
                   "a recipe, the name of an element or scale format, or 'policy'")
        ->required();
    cmd.add_option("WHICH", o->options.codes,
                   "codes of that format: 0x7, 0b0111 or 7; default: all. For 'policy': inference "
                   "(default), training or a file, whose name has a '.' or '/'");
    cmd.add_option("--target TARGET", o->options.target,
                   fmt::format("for 'policy': also prints what is native there: {}",
                               fmt::join(names_of(policy::targets), ", ")));
    declare_outputs(cmd, o->out);
    cmd.description(
        "Describes a recipe, the codes of a format, or the rules by which a policy recommends "
        "recipes (docs/design/policy.md).");
    cmd.examples(
        "mx explain mxfp4:scale=even\n"
        "mx explain e2m1 0x7\n"
        "mx explain e4m3\n"
        "mx explain policy training --target b200\n");
    return [o] { return print_document(o->out, [&] { return documents::explain(o->options); }); };
}

}  // namespace mx::app

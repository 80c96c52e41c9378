// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"
#include "libmx/documents/reference.hpp"

namespace mx::app {
namespace {

struct dialects_options {
    std::vector<std::string> names;
    output_options out;
};

}  // namespace

runner declare_dialects(parser& cmd) {
    const auto o = std::make_shared<dialects_options>();
    cmd.group("Input");
    cmd.add_option("NAME", o->names, "one dialect to describe, or two to compare; default: all")
        ->expected(0, 2);
    declare_outputs(cmd, o->out);
    cmd.description(
        "Lists the implementations that a recipe can reproduce exactly (dialect=NAME): what each "
        "does in corner cases, how well that is known, and the source.");
    cmd.examples(
        "mx dialects\n"
        "mx dialects torchao\n"
        "mx dialects torchao fbgemm\n");
    return [o] { return print_document(o->out, [&] { return documents::dialects(o->names); }); };
}

}  // namespace mx::app

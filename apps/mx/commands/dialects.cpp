// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/dialect_tables.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/names.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"

namespace mx::app {
namespace {

struct options {
    std::vector<std::string> names;
    output_options out;
};

const codec::dialect& named(const std::string& name) {
    if (const codec::dialect* d = codec::find_dialect(name)) return *d;
    throw base::error(base::error_kind::usage,
                      base::unknown("dialect", name, names_of(codec::dialects())));
}

report::document describe(const options& o) {
    if (o.names.empty()) return dialects_document();
    if (o.names.size() == 1) return dialect_document(named(o.names[0]));
    return dialect_differences(named(o.names[0]), named(o.names[1]));
}

}  // namespace

runner declare_dialects(parser& cmd) {
    const auto o = std::make_shared<options>();
    cmd.add_option("NAME", o->names, "one dialect to describe, or two to compare; all without")
        ->expected(0, 2)
        ->group("Input");
    declare_outputs(cmd, o->out);
    cmd.description(
        "The implementations whose exact behaviour a recipe can follow (dialect=NAME): what each "
        "does in every corner, how well that is known, and from where.");
    examples(cmd,
             "mx dialects\n"
             "mx dialects torchao\n"
             "mx dialects torchao fbgemm\n");
    return [o] {
        outputs to(o->out, {});
        to.finish(describe(*o), false);
        return exit_code::fine;
    };
}

}  // namespace mx::app

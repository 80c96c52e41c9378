// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/format_tables.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"

namespace mx::app {

runner declare_rules(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    cmd.description("How a block's scale is chosen and how its elements are rounded.");
    examples(cmd, "mx rules\n");
    return [o] {
        outputs to(*o, {});
        to.finish(rules_document(), false);
        return exit_code::fine;
    };
}

}  // namespace mx::app

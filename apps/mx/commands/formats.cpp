// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/format_tables.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"

namespace mx::app {

runner declare_formats(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    cmd.description("Every format with its exact limits; 'mx explain FORMAT' prints its codes.");
    examples(cmd, "mx formats\nmx formats --csv -\n");
    return [o] {
        outputs to(*o, {});
        to.finish(formats_document(), false);
        return exit_code::fine;
    };
}

}  // namespace mx::app

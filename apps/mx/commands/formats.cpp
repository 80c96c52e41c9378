// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"
#include "libmx/documents/reference.hpp"

namespace mx::app {

runner declare_formats(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    cmd.description(
        "Lists every format with its exact limits; 'mx explain FORMAT' prints its "
        "codes.");
    cmd.examples("mx formats\nmx formats --csv -\n");
    return [o] { return print_document(*o, documents::formats); };
}

}  // namespace mx::app

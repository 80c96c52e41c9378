// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/conversion_report.hpp"

#include <fmt/format.h>

#include "apps/mx/terminal.hpp"
#include "libmx/base/status.hpp"
#include "libmx/report/cells.hpp"

namespace mx::app {

void report_conversion(const convert::conversion& done, const std::string& out, bool quiet) {
    // With the data on stdout there is no room for words.
    if (quiet || out == "-") return;
    const auto count = [](std::uint64_t n) {
        return report::grouped(static_cast<std::int64_t>(n));
    };
    print(fmt::format("{}: {} tensor{}, {} elements, {} bytes\n", base::printable(out),
                      count(done.tensors), done.tensors == 1 ? "" : "s", count(done.elements),
                      count(done.bytes_written)));
    for (const engine::skipped_tensor& s : done.kept) {
        print(fmt::format("kept as stored {}: {}\n", base::printable(s.tensor),
                          base::printable(s.reason)));
    }
    for (const engine::skipped_tensor& s : done.skipped) {
        print(
            fmt::format("skipped {}: {}\n", base::printable(s.tensor), base::printable(s.reason)));
    }
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "apps/mx/backends.hpp"
#include "apps/mx/build_facts.hpp"
#include "apps/mx/commands.hpp"
#include "apps/mx/commands/device_words.hpp"
#include "apps/mx/commands/exact.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {

using pages::text;
namespace {

int run(const output_options& o) {
    outputs to(o, {});
    report::document d;
    d.head = pages::document_head("mx.version/1");
    std::vector<report::record> rows{
        {{"item", text("version")}, {"value", text(MX_VERSION)}},
        {{"item", text("compiler")}, {"value", text(compiler)}},
        {{"item", text("build type")}, {"value", text(build_type)}},
        {{"item", text("threads")},
         {"value",
          text(fmt::format("{} unless --threads says otherwise", base::thread_count(0)))}}};
    rows.push_back({{"item", text("oracle")},
                    {"value", text(oracle_available() ? "yes (mx analyze --exact)" : "no")}});
    const std::string protobuf = io::onnx_support();
    rows.push_back(
        {{"item", text("ONNX files")},
         {"value", text(protobuf.empty() ? "no (install libprotobuf-dev and build mx again)"
                                         : fmt::format("yes (Protobuf {})", protobuf))}});
    const codec::backend& chosen = chosen_backend("");
    for (const codec::backend& b : codec::backends()) {
        std::string state;
        if (&b == &chosen) {
            state = " (chosen)";
        } else if (!b.available()) {
            state = b.is_device() ? fmt::format(" (not here: {})", b.missing()) : " (not here)";
        }
        if (b.is_device() && b.available()) {
            const base::cuda::device_facts device = b.make_meter()->facts();
            state +=
                fmt::format(" ({}; CUDA {}, driver for CUDA {})", device_words(device),
                            cuda_version_text(device.runtime), cuda_version_text(device.driver));
        }
        rows.push_back({{"item", text(fmt::format("backend {}", b.name))},
                        {"value", text(fmt::format("{}{}", b.summary, state))}});
    }
    d.results = rows;
    d.sections = {{fmt::format("mx {}", MX_VERSION),
                   {{"item", "item"}, {"value", "value"}},
                   {rows.begin() + 1, rows.end()},
                   {},
                   {}}};
    to.finish(d, false);
    return exit_code::fine;
}

}  // namespace

runner declare_version(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    examples(cmd, "mx version\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app

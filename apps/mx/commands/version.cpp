// SPDX-License-Identifier: Apache-2.0

#include "apps/mx/backends.hpp"
#include "apps/mx/build_facts.hpp"
#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/ranks.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/codec/device_meter.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/optimize/minimize.hpp"
#include "libmx/tokens/tokenizer.hpp"

namespace mx::app {
namespace {

// Remarks on a backend on this machine.
std::string state_of(const codec::backend& b) {
    std::string state;
    if (&b == &chosen_backend("")) {
        state = " (chosen)";
    } else if (!b.available()) {
        state = b.is_device() ? fmt::format(" (not here: {})", b.missing()) : " (not here)";
    }
    if (b.is_device() && b.available()) {
        const base::cuda::device_facts device = b.make_meter()->facts();
        state += fmt::format(" ({}; CUDA {}, driver for CUDA {})", device_text(device),
                             cuda_version_text(device.runtime), cuda_version_text(device.driver));
    }
    return state;
}

struct build_item {
    std::string name, value;
};
constexpr std::array item_members = std::to_array<report::declared<build_item>>({
    {"item", "string", "", [](auto& i) { return i.name; }},
    {"value", "string", "", [](auto& i) { return i.value; }},
});

report::document version_document() {
    report::document d;
    d.head = pages::document_head("mx.version/1");
    const auto add = [&](std::string item, std::string value) {
        d.results.push_back(report::written(item_members, {std::move(item), std::move(value)}));
    };
    add("version", MX_VERSION);
    add("compiler", std::string(compiler));
    add("build type", std::string(build_type));
    add("threads", fmt::format("{} unless --threads says otherwise", base::thread_count(0)));
    add("oracle", has_oracle ? "yes (mx analyze --exact)" : "no");
    const std::string protobuf = io::onnx_support();
    add("ONNX files", protobuf.empty() ? "no (install libprotobuf-dev and build mx again)"
                                       : fmt::format("yes (Protobuf {})", protobuf));
    const std::string curl = io::remote_support();
    add("remote files", curl.empty() ? "no (install libcurl4-openssl-dev and build mx again)"
                                     : fmt::format("yes (libcurl {})", curl));
    const std::string nlopt = optimize::nlopt_version();
    add("fits", nlopt.empty() ? "no (install libnlopt-dev and build mx again)"
                              : fmt::format("yes (NLopt {})", nlopt));
    const std::string unicode = tokens::unicode_support();
    add("byte-level BPE", unicode.empty()
                              ? "no (install libpcre2-dev and libutf8proc-dev and build mx again)"
                              : fmt::format("yes ({})", unicode));
    const std::string mpi = mpi_version();
    add("MPI", mpi.empty() ? "no (install libopenmpi-dev and build mx again)"
                           : fmt::format("yes ({})", mpi));
    for (const codec::backend& b : codec::backends()) {
        add(fmt::format("backend {}", b.name), fmt::format("{}{}", b.summary, state_of(b)));
    }
    report::section s{
        fmt::format("mx {}", MX_VERSION), {{"item", "item"}, {"value", "value"}}, {}, {}, {}};
    for (const report::record& r : d.results) s.rows.push_back(r);
    s.rows.erase(s.rows.begin());
    d.sections.push_back(std::move(s));
    return d;
}

}  // namespace

report::document_schema version_schema() {
    return report::document_schema("mx.version/1", "mx version", "The build.")
        .member({"results", "[#item]", "an item each"})
        .define("item", item_members);
}

runner declare_version(parser& cmd) {
    const auto o = std::make_shared<output_options>();
    declare_outputs(cmd, *o);
    cmd.examples("mx version\n");
    return [o] { return print_document(*o, version_document); };
}

}  // namespace mx::app

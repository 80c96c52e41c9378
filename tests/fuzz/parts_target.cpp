// SPDX-License-Identifier: Apache-2.0
// mx merge on arbitrary bytes: their head, their sums, and the run completed from them. Only
// base::error may be thrown.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/documents/parts.hpp"
#include "tests/fuzz/reader_target.hpp"
#include "tests/memory_model.hpp"

namespace mx::fuzz {
namespace {

// The model that tests/fuzz/finds/parts/all.json is of.
const tests::memory_model& model() {
    static const tests::memory_model only = [] {
        tests::memory_model m;
        m.add("w", tensor::dtype::f32, {4, 64}, std::vector<float>(256));
        m.add("norm.weight", tensor::dtype::f32, {64}, std::vector<float>(64));
        m.add("none", tensor::dtype::f32, {0, 4}, std::vector<float>());
        return m;
    }();
    return only;
}

// Calls f, which may refuse its input.
template <typename F>
void attempt(F f) {
    try {
        f();
    } catch (const base::error&) {
    }
}

std::string path_of(const std::uint8_t* data, std::size_t size) {
    static const int descriptor = ::memfd_create("part", 0);
    if (descriptor < 0 || ::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size)) {
        fmt::print(stderr, "no file in memory\n");
        std::abort();
    }
    return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

const std::string_view format = "parts";

bool belongs(const std::string&) { return true; }

void try_input(const std::uint8_t* data, std::size_t size) {
    const std::string path = path_of(data, size);
    attempt([&] { documents::missing_parts({documents::read_part_head(path)}); });
    documents::part_options options;
    options.merged = {path};
    attempt([&] { documents::check_parts(options, {{}, model().all(), options}, true); });
    for (const bool asks_for_more : {false, true}) {
        attempt([&] {
            analysis::analysis_request request;
            request.recipes = codec::parse_recipes({"mxfp4", "nvfp4"});
            request.decompose = request.histograms = asks_for_more;
            request.partial = documents::partial_run_of(options);
            analysis::analyze(model().all(), request, {});
        });
    }
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

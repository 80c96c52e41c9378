// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/results_input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/io/input_file.hpp"

namespace mx::analysis {

results_input open_results(const std::string& path, const report::read_options& options) {
    const io::shared_file file = io::input_file::open(path);
    std::uint64_t at = 0;
    const report::byte_source source = [&](std::span<char> out) {
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(file->size() - at, out.size()));
        file->read(at, std::as_writable_bytes(out.first(count)));
        at += count;
        return count;
    };
    return {path, file->size(), report::read_results(source, path, options)};
}

std::vector<results_input> open_analyses(const std::vector<std::string>& paths,
                                         const std::string& command,
                                         const report::read_options& options) {
    std::vector<results_input> inputs;
    for (const std::string& path : paths) {
        inputs.push_back(open_results(path, options));
        const std::string& kind = inputs.back().content.kind;
        if (kind != "analysis") {
            throw base::error(base::error_kind::input,
                              fmt::format("holds mx.{}; mx {} reads what mx analyze, mx compare "
                                          "and mx cluster write with --json",
                                          kind, command),
                              {path, {}, {}});
        }
    }
    return inputs;
}

}  // namespace mx::analysis

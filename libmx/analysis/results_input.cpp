// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/results_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "libmx/base/status.hpp"
#include "libmx/io/input_stream.hpp"

namespace mx::analysis {

results_input open_results(const std::string& path, const report::read_options& options) {
    io::input_stream file(path);
    std::uint64_t bytes = 0;
    const report::byte_source source = [&](std::span<char> out) {
        const std::size_t count = file.read(out);
        bytes += count;
        return count;
    };
    report::results_file content = report::read_results(source, path, options);
    return {path, bytes, std::move(content)};
}

bool looks_like_results(const std::string& path) {
    std::error_code problem;
    if (!std::filesystem::is_regular_file(path, problem)) return false;
    std::array<char, 4096> bytes{};
    std::size_t count = 0;
    try {
        count = io::input_stream(path).read(bytes);
    } catch (const base::error&) {  // whoever opens it says what is wrong
        return false;
    }
    const std::string_view head(bytes.data(), count);
    const std::size_t brace = head.find_first_not_of(" \t\r\n");
    if (brace == std::string_view::npos || head[brace] != '{') return false;
    // The length before a header of safetensors may begin with the byte of a brace, and has zeros.
    if (head.find('\0') != std::string_view::npos) return false;
    const std::size_t name = head.find("\"schema\"");
    return name != std::string_view::npos && head.find("\"mx.", name) != std::string_view::npos;
}

std::vector<results_input> open_analyses(const std::vector<std::string>& paths,
                                         const std::string& command,
                                         const report::read_options& options, std::string_view more,
                                         const results_opener& open) {
    if (std::count(paths.begin(), paths.end(), io::standard_input) > 1) {
        throw base::error(base::error_kind::usage, "standard input ('-') can be read once");
    }
    std::vector<results_input> inputs;
    for (const std::string& path : paths) {
        inputs.push_back(open(path, options));
        const std::string& kind = inputs.back().content.kind;
        if (kind != "analysis" && kind != more) {
            throw base::error(
                base::error_kind::input,
                fmt::format("is mx.{}; mx {} reads results files (--json) of mx analyze, mx "
                            "compare{} and mx cluster",
                            kind, command,
                            more.empty() ? "" : fmt::format(", mx {} (of dumps)", more)),
                {path, {}, {}});
        }
    }
    return inputs;
}

}  // namespace mx::analysis

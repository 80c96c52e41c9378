// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/input_paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "libmx/base/parsed.hpp"
#include "libmx/base/stored_path.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/remote.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& message) {
    input_error(message, {path, {}, {}});
}

std::vector<std::string> matches_of(const std::string& pattern) {
    glob_t found{};
    const std::unique_ptr<glob_t, void (*)(glob_t*)> release(&found, ::globfree);
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    if (status == GLOB_NOMATCH) fail(pattern, "no file matches this pattern");
    if (status != 0) fail(pattern, "the pattern cannot be expanded; memory or rights are missing");
    std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    std::ranges::sort(paths);  // the same order under every locale
    return paths;
}

// A link that cannot be followed is named; the system's message would be about its target.
void check_link(const std::string& path) {
    std::error_code failure;
    if (!fs::is_symlink(fs::symlink_status(path, failure))) return;
    const fs::file_status target = fs::status(path, failure);
    if (failure == std::errc::too_many_symbolic_link_levels) {
        fail(path, "is a cyclic symbolic link");
    }
    if (target.type() == fs::file_type::not_found) {
        fail(path, fmt::format("is a symbolic link to '{}', which does not exist",
                               fs::read_symlink(path, failure).string()));
    }
}

// The files of a directory that is several files without an index; none for another directory.
std::vector<std::string> loose_shards(const std::string& directory) {
    std::vector<std::string> shards;
    for (const std::string& path : paths_in(directory)) {
        // An index, or a distributed checkpoint of torch: open_model handles them.
        if (path.ends_with(".index.json") || fs::path(path).filename() == ".metadata") return {};
        if (path.ends_with(".safetensors")) shards.push_back(path);
    }
    require_all_shards(directory, shards);
    return shards.size() < 2 ? std::vector<std::string>() : shards;
}

// "FOLDER/NAME-00002-of-00005.safetensors": FOLDER/NAME and 5, and 2.
struct shard_name {
    std::pair<std::string, std::uint64_t> set;
    std::uint64_t number = 0;
};
std::optional<shard_name> parsed_shard(const std::string& path) {
    std::string rest = fs::path(path).replace_extension().string();
    const auto number_after = [&](std::string_view mark) -> std::optional<std::uint64_t> {
        const std::size_t at = rest.rfind(mark);
        if (at == std::string::npos) return std::nullopt;
        const auto number = base::parsed<std::uint64_t>(rest.substr(at + mark.size()));
        rest.resize(at);
        return number;
    };
    const auto count = number_after("-of-");
    const auto number = number_after("-");
    if (!count || !number || *number > *count) return std::nullopt;
    return shard_name{{rest, *count}, *number};
}

}  // namespace

std::vector<std::string> matched_paths(const std::vector<std::string>& named) {
    std::vector<std::string> paths;
    for (const std::string& name : named) {
        std::error_code ignored;
        const bool exists = fs::symlink_status(name, ignored).type() != fs::file_type::not_found;
        if (exists || is_remote(name) || name.find_first_of("*?[") == std::string::npos) {
            paths.push_back(name);
        } else {
            for (std::string& match : matches_of(name)) paths.push_back(std::move(match));
        }
    }
    return paths;
}

std::vector<std::string> input_paths(const std::vector<std::string>& named) {
    std::vector<std::string> paths;
    std::error_code ignored;
    for (std::string& path : matched_paths(named)) {
        check_link(path);
        const std::vector<std::string> shards =
            is_folder(path) ? loose_shards(path) : std::vector<std::string>{};
        for (const std::string& shard : shards) {
            check_link(shard);
            // A pipe in a directory would make the program wait.
            if (fs::is_fifo(shard, ignored)) fail(shard, "is not a regular file");
            paths.push_back(shard);
        }
        if (shards.empty()) paths.push_back(std::move(path));
    }
    return paths;
}

std::vector<std::string> missing_shards(const std::vector<std::string>& files) {
    constexpr std::size_t named = 4;
    std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint64_t>> sets;
    for (const std::string& path : files) {
        if (const auto shard = parsed_shard(path)) sets[shard->set].insert(shard->number);
    }
    std::vector<std::string> sentences;
    for (const auto& [of, numbers] : sets) {
        // Some writers count from 0.
        const std::uint64_t first = numbers.contains(0) ? 0 : 1;
        const std::uint64_t beyond = numbers.count(first + of.second);
        const std::uint64_t missing = of.second - (numbers.size() - beyond);
        if (missing == 0) continue;
        std::vector<std::string> names;
        for (std::uint64_t i = 0; i < of.second && names.size() < named; ++i) {
            if (!numbers.contains(first + i)) names.push_back(fmt::format("{:05}", first + i));
        }
        sentences.push_back(fmt::format(
            "{} of the {} shards of '{}': {}{} of {:05} {} missing", of.second - missing, of.second,
            fs::path(of.first).filename().string(), fmt::join(names, ", "),
            missing > named ? fmt::format(" and {} more", missing - named) : "", of.second,
            missing == 1 ? "is" : "are"));
    }
    return sentences;
}

void require_all_shards(const std::string& folder, const std::vector<std::string>& files) {
    const std::vector<std::string> missing = missing_shards(files);
    if (missing.empty()) return;
    fail(folder, fmt::format("has no index and only {}; fetch the rest, or name the files to read",
                             missing.front()));
}

bool is_folder(const std::string& path) {
    if (is_remote(path)) return remote_listing(path).has_value();
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

std::vector<std::string> paths_in(const std::string& directory) {
    std::vector<std::string> paths;
    if (is_remote(directory)) return remote_listing(directory).value_or(paths);
    std::error_code failure;
    for (fs::directory_iterator it(directory, failure), end; !failure && it != end;
         it.increment(failure)) {
        paths.push_back(it->path().string());
    }
    if (failure) fail(directory, fmt::format("cannot list: {}", failure.message()));
    std::ranges::sort(paths);
    return paths;
}

std::optional<std::string> path_beside(const std::string& file, const std::string& named) {
    if (!base::stays_inside(named)) return std::nullopt;
    // One spelling of it, so that a file is opened once.
    const fs::path shortest = fs::path(named).lexically_normal();
    std::string path = (fs::path(file).parent_path() / shortest).string();
    if (is_remote(path) != is_remote(file)) return std::nullopt;
    return path;
}

}  // namespace mx::io

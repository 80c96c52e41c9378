// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/input_paths.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

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
    return shards.size() < 2 ? std::vector<std::string>() : shards;
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

bool stays_inside(const std::string& path) {
    const fs::path parts(path);
    if (path.empty() || parts.is_absolute() || path.find('\0') != std::string::npos) return false;
    return std::ranges::find(parts, "..") == parts.end();
}

std::string plain_path(const std::string& path) {
    return fs::path(path).lexically_normal().string();
}

}  // namespace mx::io

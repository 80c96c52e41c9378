// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "libmx/base/natural_order.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/readers.hpp"

namespace mx::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view tensors_ending = ".safetensors";
constexpr std::string_view index_ending = ".safetensors.index.json";
constexpr std::string_view distributed_name = ".metadata";

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

// NAME-00002-of-00005.safetensors: the model's name and the number of its files.
struct numbered_part {
    std::string series;
    std::uint64_t count = 0;
};

std::optional<numbered_part> part_of_name(const std::string& name) {
    const std::vector<std::string> runs = base::runs_of(name);
    for (std::size_t i = 3; i < runs.size(); i += 2) {
        if (runs[i - 1] != "-of-" || runs[i - 3].empty() || runs[i - 3].back() != '-') continue;
        const auto count = base::parsed<std::uint64_t>(runs[i]);
        std::string series;
        for (std::size_t k = 0; k < runs.size(); ++k) series += k == i - 2 ? "*" : runs[k];
        if (count && *count > 0) return numbered_part{std::move(series), *count};
    }
    return std::nullopt;
}

std::vector<std::string> entries_of(const std::string& directory) {
    try {
        return io::paths_in(directory);
    } catch (const base::error&) {  // deleted, or not readable by this user
        return {};
    }
}

bool is_checkpoint(const std::string& path) {
    std::error_code ignored;
    const std::string name = name_of(path);
    if (name.starts_with('.')) return false;
    // Skips pipes and devices, because opening them may block.
    if (!fs::is_directory(path, ignored) && !fs::is_regular_file(path, ignored)) return false;
    if (fs::is_directory(path, ignored)) {
        return std::ranges::any_of(entries_of(path), [](const std::string& entry) {
            const std::string inner = name_of(entry);
            return inner == distributed_name || inner.ends_with(index_ending) ||
                   inner.ends_with(tensors_ending);
        });
    }
    if (name.ends_with(".json")) return name.ends_with(index_ending);
    if (part_of_name(name)) return false;
    return name.ends_with(".pth") ||
           std::ranges::any_of(io::reader_formats, [&](const io::reader_format& f) {
               return !f.ending.empty() && name.ends_with(f.ending);
           });
}

void add_trace(const std::string& path, std::string& to) {
    std::error_code failure;
    const auto size = fs::file_size(path, failure);
    const auto time = fs::last_write_time(path, failure).time_since_epoch().count();
    to += failure ? fmt::format("{}: gone\n", path) : fmt::format("{}: {} {}\n", path, size, time);
}

// Opens headers; a file that is shorter than its header says is incomplete.
bool opens(const std::string& path, checkpoint_look& look) {
    try {
        for (const auto& [file, bytes] : io::open_model(path)->files())
            add_trace(file, look.traces);
        return true;
    } catch (const base::error& e) {
        look.missing = e.what();
        return false;
    }
}

// The *.safetensors of a directory without an index.
void look_at_files(const std::vector<std::string>& files, checkpoint_look& look) {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> series;  // found, expected
    bool numbered = true;
    for (const std::string& path : files) {
        const auto part = part_of_name(name_of(path));
        numbered = numbered && part.has_value();
        if (!part) continue;
        auto& [there, count] = series[part->series];
        ++there;
        count = part->count;
    }
    for (const auto& [name, parts] : series) {
        if (parts.first >= parts.second) continue;
        look.missing =
            fmt::format("{} of the {} files {} are there", parts.first, parts.second, name);
        return;
    }
    for (const std::string& path : files) {
        if (!opens(path, look)) return;
    }
    look.sealed = files.size() == 1 || numbered;
}

checkpoint_look look_at_directory(const std::string& path) {
    checkpoint_look look;
    std::vector<std::string> files;
    bool told = false;
    for (const std::string& entry : entries_of(path)) {
        const std::string name = name_of(entry);
        told = told || name == distributed_name || name.ends_with(index_ending);
        if (name.ends_with(tensors_ending)) files.push_back(entry);
    }
    if (told) {
        look.sealed = opens(path, look);
    } else if (files.empty()) {
        look.missing = "holds no checkpoint yet";
    } else {
        look_at_files(files, look);
    }
    return look;
}

}  // namespace

std::vector<std::string> checkpoints_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const std::string& path : io::paths_in(folder)) {
        if (is_checkpoint(path)) names.push_back(name_of(path));
    }
    std::ranges::sort(names, base::naturally_less);
    return names;
}

std::optional<std::uint64_t> step_in(const std::string& name) {
    std::string stem = name_of(name);
    if (stem.ends_with(index_ending)) stem.resize(stem.size() - index_ending.size());
    // An ending contains a letter; the end of v1.5 is a number.
    const std::string ending = fs::path(stem).extension().string();
    if (ending.size() > 1 && (ending[1] < '0' || ending[1] > '9')) {
        stem.resize(stem.size() - ending.size());
    }
    const std::vector<std::string> runs = base::runs_of(stem);
    if (runs.size() < 2) return std::nullopt;
    return base::parsed<std::uint64_t>(
        runs[runs.size() % 2 == 0 ? runs.size() - 1 : runs.size() - 2]);
}

checkpoint_look look_at(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return look_at_directory(path);
    checkpoint_look look;
    if (path.ends_with(tensors_ending) || path.ends_with(index_ending)) {
        look.sealed = opens(path, look);
    } else if (fs::file_size(path, ignored) == 0 || ignored) {
        look.missing = "is empty";
    } else {
        add_trace(path, look.traces);
    }
    return look;
}

}  // namespace mx::engine

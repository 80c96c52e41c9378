// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <vector>

#include "libmx/io/dtype_names.hpp"
#include "libmx/io/foreign_formats.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/piped_file.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t probe_bytes = 512;
constexpr std::string_view text_content = "text";
constexpr std::string_view unknown_content = "unknown binary data";

const foreign_archive* foreign_directory_at(const fs::path& directory) {
    std::error_code failure;
    const auto row = std::ranges::find_if(foreign_directories, [&](const foreign_archive& foreign) {
        return fs::exists(directory / foreign.entry, failure);
    });
    return row == foreign_directories.end() ? nullptr : &*row;
}

// The one model of a directory: the metadata of a distributed checkpoint, a shard index, or its
// only safetensors file.
std::string model_in(const std::string& directory) {
    std::vector<std::string> indexes;
    std::vector<std::string> files;
    std::error_code failure;
    const fs::path distributed = fs::path(directory) / ".metadata";
    if (fs::is_regular_file(distributed, failure)) return distributed.string();
    for (const std::string& path : paths_in(directory)) {
        if (is_remote(path) && path.ends_with("/.metadata")) return path;
        if (path.ends_with(".safetensors.index.json")) indexes.push_back(path);
        if (path.ends_with(".safetensors")) files.push_back(path);
    }
    if (indexes.size() == 1) return indexes.front();
    if (indexes.empty()) require_all_shards(directory, files);
    if (indexes.empty() && files.size() == 1) return files.front();
    if (indexes.empty() && files.empty()) {
        const foreign_archive* foreign = foreign_directory_at(directory);
        for (const std::string& step : paths_in(directory)) {  // of Orbax
            if (foreign == nullptr) foreign = foreign_directory_at(step);
        }
        if (foreign != nullptr) {
            input_error(complaint(foreign->name, foreign->advice), {directory, {}, {}});
        }
    }
    input_error(
        fmt::format("holds {} *.safetensors.index.json and {} *.safetensors; name one of its files",
                    indexes.size(), files.size()),
        {directory, {}, {}});
}

bool looks_like_text(std::string_view head) {
    return std::ranges::all_of(head, [](char c) {
        const auto u = static_cast<unsigned char>(c);
        return u == '\n' || u == '\r' || u == '\t' || (u >= 0x20 && u != 0x7f);
    });
}

}  // namespace

std::string readable_formats() {
    std::string text;
    for (const reader_format& format : reader_formats) {
        if (format.recognises == nullptr) continue;
        text += text.empty() ? "" : ", ";
        text += format.name;
    }
    return text;
}

foreign_format content_of(std::string_view head) {
    if (head.empty()) return {0, {}, "an empty file"};
    for (const foreign_format& foreign : foreign_formats) {
        if (head.size() >= foreign.offset &&
            head.substr(foreign.offset).starts_with(foreign.mark)) {
            return foreign;
        }
    }
    if (std::ranges::all_of(head, [](char c) { return c == '\0'; })) {
        return {0, {}, "zero bytes only"};
    }
    return {0, {}, looks_like_text(head) ? text_content : unknown_content};
}

std::string complaint(std::string_view name, std::string_view advice) {
    const std::string text = fmt::format("looks like {}, which mx does not read", name);
    return advice.empty() ? text : fmt::format("{}; {}", text, advice);
}

bool count_bytes(tensor_info& info) {
    const auto elements = tensor::element_count(info.shape);
    const auto bytes = elements ? tensor::byte_count(info.type, *elements) : std::nullopt;
    if (!bytes) return false;
    info.elements = *elements;
    info.bytes = *bytes;
    return true;
}

std::string array_name(const std::string& path) {
    // A pipe's path names no array.
    if (is_pipe(path)) return "array";
    const std::string stem = fs::path(path).stem().string();
    return stem.empty() ? "array" : stem;
}

namespace {

std::unique_ptr<reader> open_opened(const shared_file& file, const open_options& options,
                                    bool piped) {
    if (!options.shape.empty() || !options.dtype.empty() || options.offset != 0) {
        return open_raw(file, options);
    }
    if (file->path().ends_with(".distcp")) {
        const fs::path folder = fs::path(file->path()).parent_path();
        input_error(fmt::format("holds pieces of tensors, a part of a distributed checkpoint; name "
                                "its directory: {}",
                                folder.empty() ? "." : folder.string()),
                    {file->path(), {}, {}});
    }
    const std::string head = file->head(probe_bytes);
    for (const reader_format& format : reader_formats) {
        if (format.recognises != nullptr && format.recognises({file, head})) {
            if (piped && format.names_files) {
                input_error(fmt::format("{} files name others beside them, which a pipe does not "
                                        "have; save it to a file there and name that",
                                        format.name),
                            {file->path(), {}, {}});
            }
            return format.open(file, options);
        }
    }
    // No reader and no other format recognises these bytes: a damaged file of the kind its name
    // suggests.
    const foreign_format content = content_of(head);
    for (const reader_format& format : reader_formats) {
        if (content.mark.empty() && content.name != text_content && !format.ending.empty() &&
            file->path().ends_with(format.ending)) {
            return format.open(file, options);
        }
    }
    input_error(fmt::format("{}; it reads {}, and raw binary with a shape and a dtype",
                            complaint(content.name, content.advice), readable_formats()),
                {file->path(), {}, {}});
}

}  // namespace

namespace {

std::atomic<int> scopes_open{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

opening_scope::opening_scope() noexcept { ++scopes_open; }
opening_scope::~opening_scope() { --scopes_open; }
bool opening_scope::any() noexcept { return scopes_open != 0; }

std::unique_ptr<reader> open_model(const std::string& path, const open_options& options) {
    const opening_scope opening;
    parse_as(options.as);  // a misspelt dtype is an error whatever the file contains
    if (is_pipe(path)) return open_opened(open_pipe(path), options, true);
    // A pipe in a directory would make the program wait.
    return open_opened(input_file::open(is_folder(path) ? model_in(path) : path), options, false);
}

}  // namespace mx::io

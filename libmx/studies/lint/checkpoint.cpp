// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "libmx/base/status.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/strict_json.hpp"
#include "libmx/studies/lint/lint.hpp"

namespace mx::lint {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view index_ending = ".safetensors.index.json";

// {"metadata": {"total_size": N}, "weight_map": {"tensor": "shard"}}
class map_listener final : public io::json_listener {
  public:
    std::vector<std::pair<std::string, std::string>> shards;
    std::string total_size;

    void open(bool) override {}
    void close() override {}
    void key(const std::string& name) override {
        if (depth() == 1) section_ = name;
        key_ = name;
    }
    void scalar(const io::json_scalar& value) override {
        if (depth() != 2) return;
        if (section_ == "weight_map" && value.is == io::json_scalar::type::text) {
            shards.emplace_back(key_, value.text);
        }
        if (section_ == "metadata" && key_ == "total_size") {
            total_size = value.is == io::json_scalar::type::natural ? std::to_string(value.natural)
                                                                    : value.text;
        }
    }

  private:
    std::string section_, key_;
};

void read_index(const std::string& path, checkpoint& c) {
    const io::shared_file file =
        io::is_remote(path) ? io::open_remote(path) : io::input_file::open(path);
    if (file->size() > io::safetensors_header_limit) {
        base::refuse(fmt::format("{} bytes are too many for an index", file->size()),
                     {path, {}, {}});
    }
    map_listener listener;
    io::parse_json(file, 0, file->size(), "index", listener);
    c.has_index = true;
    c.total_size = std::move(listener.total_size);
    for (const auto& [tensor, shard] : listener.shards) {
        const auto beside = io::path_beside(path, shard);
        if (beside) {
            c.index.emplace(tensor, *beside);
        } else {
            c.broken.push_back({"index", severity::error, path, tensor,
                                fmt::format("its shard '{}' is outside the folder", shard),
                                "engines refuse it, or read another file",
                                "name a file of the folder"});
        }
    }
}

// The shards of the index, and the files of values beside it.
std::set<std::string> files_of(const std::string& path, checkpoint& c) {
    std::set<std::string> files;
    std::string index = path.ends_with(index_ending) ? path : std::string();
    if (index.empty() && io::is_folder(path)) {
        for (const std::string& inside : io::paths_in(path)) {
            if (inside.ends_with(index_ending)) index = inside;
            if (inside.ends_with(".safetensors")) files.insert(inside);
        }
        if (files.empty() && index.empty()) files.insert(path);
        c.folder = path;
    } else if (!index.empty() && !io::is_remote(index)) {
        const fs::path folder = fs::path(index).parent_path();
        for (const std::string& inside : io::paths_in(folder.empty() ? "." : folder.string())) {
            if (inside.ends_with(".safetensors")) {
                files.insert((folder / fs::path(inside).filename()).string());
            }
        }
    } else if (index.empty()) {
        files.insert(path);
    }
    if (index.empty()) return files;
    read_index(index, c);
    std::set<std::string> missing;
    for (const auto& [tensor, shard] : c.index) {
        std::error_code ignored;
        if (io::is_remote(shard) || fs::is_regular_file(shard, ignored)) {
            files.insert(shard);
        } else if (missing.insert(shard).second) {
            c.broken.push_back(
                {"index", severity::error, index, tensor,
                 fmt::format("its shard '{}' is missing", fs::path(shard).filename().string()),
                 "engines refuse the checkpoint", "add the file"});
        }
    }
    return files;
}

io::config_entries entries_of(const std::string& path) {
    std::error_code ignored;
    if (!io::is_remote(path) && !fs::is_regular_file(path, ignored)) return {};
    return io::read_config_file(path);
}

}  // namespace

checkpoint open_checkpoint(const std::string& path) {
    checkpoint c;
    c.path = path;
    const std::set<std::string> files = files_of(path, c);
    for (const std::string& file : files) c.files.push_back(io::open_model(file));
    for (const auto& file : c.files) {
        for (std::size_t i = 0; i < file->tensors().size(); ++i)
            c.arrays.push_back({file.get(), i});
    }
    if (c.folder.empty())
        c.folder = io::is_remote(path) ? path.substr(0, path.rfind('/'))
                                       : fs::path(path).parent_path().string();
    const bool remote = io::is_remote(path);
    const auto beside = [&](const char* name) {
        return remote ? c.folder + "/" + name : (fs::path(c.folder) / name).string();
    };
    if (remote) {
        try {
            c.config = entries_of(beside("config.json"));
        } catch (const base::error&) {  // there need not be one
        }
    } else {
        c.config = entries_of(beside("config.json"));
        c.other_config = entries_of(beside("hf_quant_config.json"));
        if (c.other_config.empty()) c.other_config = entries_of(beside("quantize_config.json"));
    }
    // Of arrays that are stored twice, the first: the rule `index` has the others.
    std::vector<bool> skip(c.arrays.size());
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < c.arrays.size(); ++i) {
        skip[i] = !names.insert(c.arrays[i].info().name).second;
    }
    c.pairs = io::find_pairings(c.arrays, false, skip);
    return c;
}

}  // namespace mx::lint

// SPDX-License-Identifier: Apache-2.0
// Sharded models: NAME.safetensors.index.json in the folder of its shards.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/task.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/strict_json.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

// {"metadata": {...}, "weight_map": {"tensor": "shard"}}; other members are ignored.
class index_listener final : public json_listener {
  public:
    explicit index_listener(const std::string& index) : index_(index) {}

    std::map<std::string, std::vector<std::string>> shards;  ///< path of a shard to its tensors
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::uint64_t> counts;  ///< whole numbers of the metadata
    bool has_map = false;
    bool of_mx = false;  ///< it is not an index, but results
    bool unfinished = false;

    void open(bool object) override {
        if (depth() == 1 && !object) fail("the index is not a JSON object");
        if (depth() == 2 && section_ == "weight_map") {
            if (!object) fail("weight_map is not an object");
            has_map = true;
        }
        if (depth() == 3 && section_ == "weight_map") {
            fail("weight_map does not give a file name here", key_);
        }
    }
    void close() override {}
    void key(const std::string& name) override {
        if (depth() == 1) section_ = name;
        if (depth() == 2) key_ = name;
    }
    void scalar(const json_scalar& value) override {
        if (depth() == 0) fail("the index is not a JSON object");
        if (depth() == 1 && section_ == "weight_map") fail("weight_map is not an object");
        if (depth() == 1 && section_ == "schema") {
            unfinished = value.text == unfinished_schema;
            of_mx = value.text.starts_with("mx.");
        }
        if (depth() != 2) return;
        if (section_ == "metadata" && value.is == json_scalar::type::natural) {
            counts[key_] = value.natural;
        }
        if (section_ == "metadata" && !value.text.empty()) metadata[key_] = value.text;
        if (section_ != "weight_map") return;
        if (value.is != json_scalar::type::text) {
            fail("weight_map does not give a file name here", key_);
        }
        const auto path = path_beside(index_, value.text);
        if (!path) {
            fail(fmt::format("the shard '{}' is outside the directory of the index", value.text),
                 key_);
        }
        shards[*path].push_back(key_);
    }

  private:
    const std::string& index_;  // its path
    std::string section_;
    std::string key_;
};

// Sentences on what an index omits.
class omission {
  public:
    void add(const std::string& path, const std::vector<tensor_info>& held,
             const base::view_set& listed) {
        std::size_t count = 0;
        const std::string* first = nullptr;
        for (const tensor_info& t : held) {
            if (listed.contains(t.name)) continue;
            if (count++ == 0) first = &t.name;
        }
        if (count == 0) return;
        ++files_;
        if (files_ > files_named) return;
        if (!named_.empty()) named_ += ", ";
        named_ += count == 1 ? fmt::format("{} of {}", *first, path)
                             : fmt::format("{} tensors of {}, such as {}", count, path, *first);
    }

    std::vector<std::string> text() const {
        if (files_ == 0) return {};
        const std::string more =
            files_ > files_named ? fmt::format(", and those of {} more files", files_ - files_named)
                                 : "";
        return {fmt::format("not in the index, and left out: {}{}", named_, more)};
    }

  private:
    static constexpr std::size_t files_named = 4;
    std::size_t files_ = 0;
    std::string named_;
};

class sharded_reader final : public file_reader, public remarking {
  public:
    sharded_reader(shared_file file, const open_options& options) : file_reader(std::move(file)) {
        index_listener listener(file_->path());
        if (file_->size() > safetensors_header_limit) {
            fail({}, fmt::format("{} bytes are too many for an index", file_->size()));
        }
        parse_json(file_, 0, file_->size(), "index", listener);
        if (listener.unfinished) {
            fail({},
                 "its files are not complete: mx is writing them, or ended before it had; repeat "
                 "the command that writes them");
        }
        if (listener.of_mx) {
            fail({},
                 "holds what mx wrote with --json, not tensors; mx diff, mx gate, mx plan and mx "
                 "report read results");
        }
        if (!listener.has_map) fail({}, "the index has no weight_map");
        metadata_ = std::move(listener.metadata);
        std::vector<std::string> paths;
        for (const auto& [shard, names] : listener.shards) paths.push_back(shard);
        open_shards(paths, options, listener);
        std::size_t index = 0;
        for (auto& [shard, names] : listener.shards) add_shard(index++, paths, names);
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const auto [shard, inner] = places_.at(index);
        return shards_[shard]->open(inner);
    }

    // Tensors that are in the shards, or in other files beside them, but not in the index.
    std::vector<std::string> remarks() const override {
        base::view_set listed;
        for (const tensor_info& t : tensors_) listed.insert(t.name);
        omission omitted;
        base::text_set shards;
        for (const auto& shard : shards_) {
            const std::string path = shard->files().front().first;
            shards.insert(path);
            omitted.add(path, shard->tensors(), listed);
        }
        const fs::path folder = fs::path(file_->path()).parent_path();
        if (is_remote(file_->path())) return omitted.text();
        for (const std::string& found : paths_in(folder.empty() ? "." : folder.string())) {
            const std::string path = (folder / fs::path(found).filename()).string();
            std::error_code ignored;
            if (!path.ends_with(".safetensors") || shards.contains(path) ||
                !fs::is_regular_file(path, ignored)) {
                continue;
            }
            try {
                omitted.add(path, open_safetensors(input_file::open(path), {})->tensors(), listed);
            } catch (const base::error&) {
                continue;  // a file of no use here
            }
        }
        return omitted.text();
    }

  private:
    void open_shards(const std::vector<std::string>& paths, const open_options& options,
                     const index_listener& listener) {
        if (!is_remote(file_->path())) check_shards(listener);
        shards_.resize(paths.size());
        base::task opening("opening", paths.size());
        base::parallel_for(paths.size(), opened_at_once(file_->path()), nullptr,
                           [&](std::uint64_t i, int) {
                               shards_[i] = open_safetensors(input_file::open(paths[i]), options);
                               opening.step();
                           });
    }

    // All are there, and none is another under a second name: reading it would cost as much again.
    void check_shards(const index_listener& listener) const {
        std::map<std::pair<dev_t, ino_t>, const std::string*> known;
        for (const auto& [path, names] : listener.shards) {
            struct stat is {};
            if (::stat(path.c_str(), &is) != 0) {
                fail(names.front(), fmt::format("its shard '{}' is missing", path));
            }
            const auto [at, added] = known.emplace(std::pair(is.st_dev, is.st_ino), &path);
            if (added) continue;
            fail(names.front(),
                 fmt::format("its shard '{}' is the same file as '{}'; give both one name in the "
                             "index",
                             path, *at->second));
        }
    }

    void add_shard(std::size_t index, const std::vector<std::string>& paths,
                   std::vector<std::string>& names) {
        const std::string& path = paths[index];
        files_.push_back(shards_[index]->files().front());
        const std::vector<tensor_info>& held = shards_[index]->tensors();
        std::ranges::sort(names);
        std::size_t found = 0;
        for (std::size_t i = 0; i < held.size(); ++i) {
            if (!std::ranges::binary_search(names, held[i].name)) continue;
            places_.emplace_back(index, i);
            tensors_.push_back(held[i]);
            ++found;
        }
        if (found == names.size()) return;
        base::view_set present;
        for (const tensor_info& t : held) present.insert(t.name);
        for (const std::string& name : names) {
            if (!present.contains(name)) fail(name, fmt::format("is not in its shard '{}'", path));
        }
    }

    std::vector<std::unique_ptr<reader>> shards_;
    std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< shard, index in it
};

}  // namespace

bool looks_like_safetensors_index(const file_probe& probe) {
    // Text that opens an object; the length of a safetensors header has NUL bytes there.
    const std::size_t brace = probe.head.find_first_not_of(" \t\r\n");
    if (brace == std::string_view::npos || probe.head[brace] != '{') return false;
    return probe.head.substr(0, 16).find('\0') == std::string_view::npos;
}

shard_index read_shard_index(const std::string& path) {
    const shared_file file = input_file::open(path);
    index_listener listener(path);
    if (file->size() > safetensors_header_limit) {
        input_error(fmt::format("{} bytes are too many for an index", file->size()),
                    {path, {}, {}});
    }
    parse_json(file, 0, file->size(), "index", listener);
    return {std::move(listener.shards), std::move(listener.counts)};
}

std::unique_ptr<reader> open_safetensors_index(shared_file file, const open_options& options) {
    return std::make_unique<sharded_reader>(std::move(file), options);
}

}  // namespace mx::io

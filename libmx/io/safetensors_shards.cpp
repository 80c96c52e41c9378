// SPDX-License-Identifier: Apache-2.0
// NAME.safetensors.index.json and its shards, NAME-00001-of-00003.safetensors.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/folder_lock.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

class shard_writer final : public array_writer {
  public:
    shard_writer(const std::string& path, const std::vector<planned_array>& plan,
                 const metadata_map& metadata, std::uint64_t most_bytes,
                 const metadata_map& of_shards = {})
        : path_(path), index_(path) {
        std::vector<std::vector<planned_array>> shards(1);
        std::uint64_t bytes = 0, total = 0;
        for (const planned_array& array : plan) {
            const std::uint64_t more = planned_bytes(path, array);
            const bool full = more > most_bytes || bytes > most_bytes - more ||
                              shards.back().size() == safetensors_tensors_limit;
            if (!shards.back().empty() && full) {
                shards.emplace_back();
                bytes = 0;
            }
            places_.emplace_back(shards.size() - 1, shards.back().size());
            shards.back().push_back(array);
            bytes += more;
            total += more;
        }
        const std::string stem = path.substr(0, path.size() - shards_ending.size());
        nlohmann::ordered_json text;
        text["metadata"] = metadata;
        text["metadata"]["total_size"] = total;
        text["weight_map"] = nlohmann::ordered_json::object();
        // Names differ (of one plan); [] would compare each with all before it.
        auto& map = text["weight_map"].get_ref<nlohmann::ordered_json::object_t&>();
        for (std::size_t s = 0; s < shards.size(); ++s) {
            const std::string shard =
                fmt::format("{}-{:05}-of-{:05}.safetensors", stem, s + 1, shards.size());
            check_free(shard);
            shards_.push_back(create_safetensors(shard, shards[s], of_shards));
            const std::string name = fs::path(shard).filename().string();
            for (const planned_array& array : shards[s]) map.push_back({array.name, name});
        }
        index_.append(text.dump(2) + "\n");
    }

    void write(std::size_t array, std::uint64_t offset, std::span<const std::byte> bytes) override {
        const auto [shard, inner] = places_[array];
        shards_[shard]->write(inner, offset, bytes);
    }

    // While shards of two outputs may lie side by side, the index says so: readers refuse it, and
    // the same command replaces it.
    void commit() override {
        const folder_lock lock(fs::path(path_).parent_path().string());
        output_file unfinished(path_);
        unfinished.append(fmt::format("{{\"schema\":\"{}\"}}\n", unfinished_schema));
        unfinished.commit();
        for (const auto& shard : shards_) shard->commit();
        index_.commit();
    }

  private:
    // A shard may replace that of the index which it belongs to, but no other file.
    void check_free(const std::string& shard) const {
        std::error_code ignored;
        if (!fs::exists(shard, ignored) || fs::exists(path_, ignored)) return;
        output_error(
            fmt::format("exists already, but not '{}': remove it or name another output", path_),
            {shard, {}, {}});
    }

    std::string path_;
    output_file index_;
    std::vector<std::unique_ptr<array_writer>> shards_;
    std::vector<std::pair<std::size_t, std::size_t>> places_;  // by array: shard, index in it
};

// A folder that this program made, which goes again while it is empty.
class new_folder {
  public:
    explicit new_folder(const std::string& path) : path_(path) {
        std::error_code failure;
        // One that exists makes room for ours only if nobody has a file in it.
        if (fs::is_directory(fs::symlink_status(path, failure))) fs::remove(path, failure);
        if (::mkdir(path.c_str(), 0777) == 0) return;
        if (errno == EEXIST) {
            output_error("exists already and is no empty folder: name a new one", {path, {}, {}});
        }
        output_error(fmt::format("cannot make the folder: {}", std::strerror(errno)),
                     {path, {}, {}});
    }
    ~new_folder() {
        if (!path_.empty()) ::rmdir(path_.c_str());
    }
    new_folder(const new_folder&) = delete;
    new_folder& operator=(const new_folder&) = delete;

  private:
    std::string path_;
};

constexpr std::size_t companions_limit = 10'000;
constexpr std::size_t copied_bytes = std::size_t{1} << 20;

class model_folder final : public array_writer {
  public:
    model_folder(const std::string& path, const std::vector<planned_array>& plan,
                 const std::vector<companion_file>& companions, std::uint64_t most_bytes)
        : folder_(path) {
        const fs::path in(path);
        for (const companion_file& c : companions) {
            companions_.emplace_back((in / c.name).string());
            companions_.back().append(c.text);
            if (!c.copy_of.empty()) copy(c.copy_of, companions_.back());
        }
        weights_ = std::make_unique<shard_writer>((in / model_index).string(), plan, metadata_map{},
                                                  most_bytes, metadata_map{{"format", "pt"}});
    }
    void write(std::size_t array, std::uint64_t offset, std::span<const std::byte> bytes) override {
        weights_->write(array, offset, bytes);
    }
    void commit() override {
        for (output_file& c : companions_) c.commit();
        weights_->commit();
    }

  private:
    static constexpr std::string_view model_index = "model.safetensors.index.json";

    static void copy(const std::string& from, output_file& to) {
        const shared_file file = input_file::open(from);
        std::vector<std::byte> bytes;
        for (std::uint64_t at = 0; at < file->size(); at += bytes.size()) {
            bytes.resize(
                static_cast<std::size_t>(std::min<std::uint64_t>(copied_bytes, file->size() - at)));
            file->read(at, bytes);
            to.write_at(at, bytes);
        }
    }

    new_folder folder_;  // destroyed last, when the temporary files in it are gone
    std::vector<output_file> companions_;
    std::unique_ptr<shard_writer> weights_;
};

bool is_companion(const std::string& name) {
    constexpr std::array<std::string_view, 13> weights{
        ".safetensors", ".bin", ".pt",   ".pth",  ".ckpt",    ".gguf",      ".h5",
        ".hdf5",        ".npz", ".onnx", ".data", ".msgpack", ".index.json"};
    constexpr std::array<std::string_view, 3> configurations{"config.json", "hf_quant_config.json",
                                                             "quantize_config.json"};
    return !name.starts_with(".") &&
           std::ranges::find(configurations, name) == configurations.end() &&
           std::ranges::none_of(weights, [&](auto ending) { return has_ending(name, ending); });
}

}  // namespace

std::vector<companion_file> companions_in(const std::string& folder) {
    std::vector<companion_file> found;
    std::error_code failure;
    std::size_t entries = 0;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, failure), end;
         !failure && at != end; at.increment(failure)) {
        if (++entries > companions_limit) {
            input_error(fmt::format("has more than {} files: keep the model in a folder of its own",
                                    companions_limit),
                        {folder, {}, {}});
        }
        const std::string name = at->path().filename().string();
        std::error_code ignored;
        if (!is_companion(name) || !fs::is_regular_file(at->path(), ignored)) continue;
        found.push_back({name, {}, at->path().string()});
    }
    if (failure) input_error("cannot list the folder: " + failure.message(), {folder, {}, {}});
    std::ranges::sort(found, {}, &companion_file::name);
    return found;
}

std::unique_ptr<array_writer> create_model_folder(const std::string& path,
                                                  const std::vector<planned_array>& plan,
                                                  const std::vector<companion_file>& companions,
                                                  std::uint64_t most_bytes) {
    return std::make_unique<model_folder>(path, plan, companions, most_bytes);
}

std::unique_ptr<array_writer> create_safetensors_shards(const std::string& path,
                                                        const std::vector<planned_array>& plan,
                                                        const metadata_map& metadata,
                                                        std::uint64_t most_bytes) {
    check_ending(path, {shards_ending});
    return std::make_unique<shard_writer>(path, plan, metadata, most_bytes);
}

}  // namespace mx::io

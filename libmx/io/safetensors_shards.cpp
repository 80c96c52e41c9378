// SPDX-License-Identifier: Apache-2.0
// NAME.safetensors.index.json and its shards, NAME-00001-of-00003.safetensors.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

// Several files get their names one after the other: the lock of their folder makes two programs do
// so in turn. The system releases it however a program ends. Without locks in the file system there
// is none.
class folder_lock {
  public:
    explicit folder_lock(const std::string& file) {
        const fs::path folder = fs::path(file).parent_path();
        descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX) == 0 || errno != EINTR) return;
        ::close(descriptor_);
        throw base::error(base::error_kind::cancelled, "cancelled");
    }
    ~folder_lock() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    folder_lock(const folder_lock&) = delete;
    folder_lock& operator=(const folder_lock&) = delete;

  private:
    int descriptor_ = -1;
};

class shard_writer final : public array_writer {
  public:
    shard_writer(const std::string& path, const std::vector<planned_array>& plan,
                 const metadata_map& metadata, std::uint64_t most_bytes)
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
            shards_.push_back(create_safetensors(shard, shards[s], {}));
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
        const folder_lock lock(path_);
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

}  // namespace

std::unique_ptr<array_writer> create_safetensors_shards(const std::string& path,
                                                        const std::vector<planned_array>& plan,
                                                        const metadata_map& metadata,
                                                        std::uint64_t most_bytes) {
    check_ending(path, {shards_ending});
    return std::make_unique<shard_writer>(path, plan, metadata, most_bytes);
}

}  // namespace mx::io

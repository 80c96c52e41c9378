// SPDX-License-Identifier: Apache-2.0
// Directories of torch.distributed.checkpoint: .metadata beside the files of each rank.
#include <fmt/format.h>

#include <filesystem>
#include <mutex>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/pytorch/distributed_metadata.hpp"
#include "libmx/files/pytorch/torch_archive.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& file, const std::string& tensor,
                       const std::string& message) {
    throw base::error(base::error_kind::input, message, {file, tensor, {}});
}

// The files of the checkpoint, opened when wanted and closed when nobody reads them any more.
class file_set {
  public:
    explicit file_set(std::vector<std::string> paths)
        : paths_(std::move(paths)), open_(paths_.size()) {}
    const std::vector<std::string>& paths() const { return paths_; }

    shared_file get(std::size_t index) {
        const std::lock_guard lock(mutex_);
        shared_file file = open_[index].lock();
        if (!file) {
            file = input_file::open(paths_[index]);
            open_[index] = file;
        }
        return file;
    }

  private:
    std::vector<std::string> paths_;
    std::mutex mutex_;
    std::vector<std::weak_ptr<const input_file>> open_;
};

// The elements of one shard, which has to be what the metadata says.
shared_source open_shard(const shared_file& file, const stored_shard& place,
                         const tensor::shape& extents, const torch_dtype& type,
                         const std::string& name) {
    const auto archive = torch_archive::open(file, place.offset, place.length);
    const torch_tensor found =
        read_tensor(archive->graph(), archive->graph().root(), file->path(), name);
    if (!found.note.empty()) fail(file->path(), name, found.note);
    archive->check(found, name);
    if (found.type->name != type.name || found.shape != extents) {
        fail(file->path(), name,
             fmt::format("its shard is {} of {}, the metadata says {} of {}",
                         tensor::to_string(found.shape), found.type->name,
                         tensor::to_string(extents), type.name));
    }
    return archive->open_tensor(found, name);
}

class distributed_reader final : public reader {
  public:
    distributed_reader(shared_file file, const open_options& options) : file_(std::move(file)) {
        if (file_->size() > pickle_size_limit) {
            fail(file_->path(), {},
                 fmt::format("{} bytes of metadata; mx reads up to {} MiB", file_->size(),
                             pickle_size_limit >> 20));
        }
        distributed_metadata found = read_distributed_metadata(
            file_->head(static_cast<std::size_t>(file_->size())), file_->path());
        find_files(found.files);
        const auto as = parse_as(options.as);
        for (distributed_tensor& each : found.tensors) add(std::move(each), as);
        if (found.others != 0) {
            metadata_.emplace("(others)",
                              fmt::format("values that are no tensors: {}", found.others));
        }
    }

    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail(info.file, info.name, info.note);
        auto held = std::make_shared<const distributed_tensor>(held_[index]);
        auto boxes = held->boxes;
        return from_shards(
            held->shape, std::move(boxes), static_cast<std::size_t>(held->type->width),
            [held, files = files_](std::size_t shard) {
                const stored_shard& place = held->shards[shard];
                return open_shard(files->get(place.file), place, held->boxes[shard].extents,
                                  *held->type, held->name);
            });
    }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        std::vector<std::pair<std::string, std::uint64_t>> all{{file_->path(), file_->size()}};
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            all.emplace_back(files_->paths()[i], sizes_[i]);
        }
        return all;
    }

  private:
    void find_files(const std::vector<std::string>& relative) {
        std::vector<std::string> paths;
        const fs::path directory = fs::path(file_->path()).parent_path();
        for (const std::string& name : relative) {
            paths.push_back((directory / name).string());
            std::error_code failure;
            const std::uintmax_t size = fs::file_size(paths.back(), failure);
            if (failure) {
                fail(file_->path(), {},
                     fmt::format("its shard '{}': {}", paths.back(), failure.message()));
            }
            sizes_.push_back(size);
        }
        files_ = std::make_shared<file_set>(std::move(paths));
    }

    void add(distributed_tensor each, std::optional<tensor::dtype> as) {
        std::string path = file_->path();
        for (const stored_shard& shard : each.shards) {
            path = files_->paths()[shard.file];
            if (shard.offset > sizes_[shard.file] ||
                shard.length > sizes_[shard.file] - shard.offset) {
                fail(path, each.name,
                     fmt::format("its shard of {} bytes from byte {} on is beyond the end of the "
                                 "file of {}",
                                 shard.length, shard.offset, sizes_[shard.file]));
            }
        }
        if (!each.shards.empty()) path = files_->paths()[each.shards.front().file];
        tensors_.push_back(
            torch_info(each.type, each.shape, std::string(each.type->note), each.name, path, as));
        held_.push_back(std::move(each));
    }

    shared_file file_;
    std::shared_ptr<file_set> files_;
    std::vector<std::uint64_t> sizes_;
    std::vector<tensor_info> tensors_;
    std::vector<distributed_tensor> held_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace

bool looks_like_distributed(const file_probe& probe) {
    return probe.head.starts_with("\x80") &&
           probe.head.find("torch.distributed.checkpoint.metadata") != std::string_view::npos;
}

std::unique_ptr<reader> open_distributed(shared_file file, const open_options& options) {
    return std::make_unique<distributed_reader>(std::move(file), options);
}

}  // namespace mx::io

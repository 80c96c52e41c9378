// SPDX-License-Identifier: Apache-2.0
// Directories of torch.distributed.checkpoint: .metadata in the folder of the files of each rank
// (pytorch/pytorch: torch/distributed/checkpoint/metadata.py and filesystem.py).
#include "libmx/files/pytorch/distributed_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/files/pytorch/torch_archive.hpp"
#include "libmx/files/pytorch/torch_values.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& file, const std::string& tensor,
                         const std::string& message) {
    input_error(message, {file, tensor, {}});
}

constexpr std::string_view module_name = "torch.distributed.checkpoint.metadata";
// Comparisons of shards with each other, in one file: a fraction of a second.
constexpr std::uint64_t comparison_budget = std::uint64_t{1} << 26;

constexpr std::size_t open_files_limit = 64;
constexpr std::size_t open_copies_limit = 64;  // of shards that are not read in place

// What a shard takes beside its name, and for each axis.
constexpr std::uint64_t bytes_of_shard = 256;
constexpr std::uint64_t bytes_of_shard_axis = 32;

// A shard is looked up by its tensor and its first element.
std::string key_of(std::string_view name, const std::vector<std::uint64_t>& offsets) {
    std::string key(name);
    key += '\0';
    for (const std::uint64_t offset : offsets) key += std::to_string(offset) + ',';
    return key;
}

class metadata_reader {
  public:
    metadata_reader(std::string bytes, const std::string& file)
        : file_(file), graph_(read_pickle(std::move(bytes), file, {})) {}

    distributed_metadata read() {
        const pickle_ref root = graph_.root();
        if (!is_object(root, "Metadata")) {
            fail({}, "is a pickle, but not of torch.distributed.checkpoint");
        }
        const pickle_ref tensors = dictionary(root, "state_dict_metadata");
        read_places(dictionary(root, "storage_data"));
        base::view_set names;
        const auto items = graph_.items(tensors);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (graph_.kind(items[i]) != pickle_kind::text)
                fail({}, "a tensor's name is not a string");
            if (!names.insert(graph_.text(items[i])).second) {
                fail(std::string(graph_.text(items[i])), "two tensors of this name");
            }
            if (is_object(items[i + 1], "TensorStorageMetadata")) {
                add(std::string(graph_.text(items[i])), items[i + 1]);
            } else {
                ++out_.others;
            }
        }
        return std::move(out_);
    }

  private:
    [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
        input_error(message, {file_, tensor, {}});
    }

    bool is_object(pickle_ref ref, std::string_view name) const {
        return graph_.kind(ref) == pickle_kind::object &&
               graph_.is_global(graph_[ref].callee, module_name, name);
    }
    pickle_ref dictionary(pickle_ref object, std::string_view name) const {
        const pickle_ref found = graph_.attribute(object, name);
        if (found == no_value || !graph_[found].pairs) {
            fail({}, fmt::format("the metadata lacks {}", name));
        }
        return found;
    }
    std::vector<std::uint64_t> extents(pickle_ref object, std::string_view name,
                                       const std::string& tensor) const {
        const auto found = extents_of(graph_, graph_.attribute(object, name));
        if (!found) {
            fail(tensor,
                 fmt::format("the metadata lists its {} not as PyTorch does, or for more than "
                             "{} axes",
                             name, axes_limit));
        }
        return *found;
    }

    void spend(std::uint64_t text, const std::vector<std::uint64_t>& axes,
               const std::string& tensor) const {
        graph_.budget().take(text + bytes_of_shard + bytes_of_shard_axis * axes.size(), tensor);
    }

    // {MetadataIndex(fqn, offset): _StorageInfo(relative_path, offset, length)}
    void read_places(pickle_ref places) {
        base::text_map<std::size_t> files;
        const auto items = graph_.items(places);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (graph_.kind(items[i]) != pickle_kind::object ||
                graph_.kind(items[i + 1]) != pickle_kind::object) {
                fail({}, "storage_data is not described as in PyTorch");
            }
            const pickle_ref fqn = graph_.attribute(items[i], "fqn");
            const auto offsets = extents_of(graph_, graph_.attribute(items[i], "offset"));
            if (fqn == no_value || !offsets) continue;  // of a value that is not a tensor
            const std::string name(graph_.text(fqn));
            spend(2 * name.size(), *offsets, name);
            const pickle_ref path = graph_.attribute(items[i + 1], "relative_path");
            const auto offset = graph_.count(graph_.attribute(items[i + 1], "offset"));
            const auto length = graph_.count(graph_.attribute(items[i + 1], "length"));
            if (graph_.kind(path) != pickle_kind::text || !offset || !length) {
                fail(name, "the location of a shard is not described as in PyTorch");
            }
            const pickle_ref changes = graph_.attribute(items[i + 1], "transform_descriptors");
            if (!graph_.items(changes).empty()) {
                fail(name,
                     "its shards are stored compressed or otherwise transformed, which mx "
                     "does not read");
            }
            graph_.budget().take(graph_.text(path).size(), name);
            const std::string file(graph_.text(path));
            const auto beside = path_beside(file_, file);
            if (!beside) {
                fail(name, fmt::format("the shard '{}' is outside the directory of the checkpoint",
                                       file));
            }
            const auto [at, fresh] = files.emplace(*beside, out_.files.size());
            if (fresh) out_.files.push_back(at->first);
            if (!places_.emplace(key_of(name, *offsets), stored_shard{at->second, *offset, *length})
                     .second) {
                fail(name, "one of its shards has two locations");
            }
        }
    }

    void add(std::string name, pickle_ref described) {
        distributed_tensor tensor;
        tensor.name = std::move(name);
        tensor.shape = extents(described, "size", tensor.name);
        spend(tensor.name.size(), tensor.shape, tensor.name);
        tensor.type = read_type(described, tensor.name);
        if (!tensor::element_count(tensor.shape)) fail(tensor.name, "its extents are too large");
        const pickle_ref chunks = graph_.attribute(described, "chunks");
        if (graph_.kind(chunks) != pickle_kind::list) {
            fail(tensor.name, "its chunks are not described as in PyTorch");
        }
        for (const pickle_ref chunk : graph_.items(chunks)) {
            shard_box box{extents(chunk, "offsets", tensor.name),
                          extents(chunk, "sizes", tensor.name)};
            spend(tensor.name.size(), box.origin, tensor.name);
            if (std::ranges::find(box.extents, 0u) != box.extents.end()) continue;
            const auto place = places_.find(key_of(tensor.name, box.origin));
            if (place == places_.end()) fail(tensor.name, "one of its shards is not stored");
            tensor.boxes.push_back(std::move(box));
            tensor.shards.push_back(place->second);
        }
        const std::string problem = check_shards(tensor.shape, tensor.boxes, budget_);
        if (!problem.empty()) fail(tensor.name, problem);
        out_.tensors.push_back(std::move(tensor));
    }

    // The state of TensorProperties is a tuple that begins with the dtype, or has it by name.
    const torch_dtype* read_type(pickle_ref described, const std::string& name) const {
        const pickle_ref properties = graph_.attribute(described, "properties");
        pickle_ref type = no_value;
        if (graph_.kind(properties) == pickle_kind::object) {
            type = graph_.attribute(properties, "dtype");
            if (type == no_value) type = graph_.at(graph_[properties].state, 0);
        }
        const torch_dtype* found = dtype_of(graph_, type);
        if (found == nullptr) {
            fail(name,
                 fmt::format("its dtype '{}' is not supported by mx", graph_.global_name(type)));
        }
        return found;
    }

    const std::string& file_;
    pickle_graph graph_;
    base::text_map<stored_shard> places_;
    std::uint64_t budget_ = comparison_budget;
    distributed_metadata out_;
};

// The files of the checkpoint, opened when they are read; the most recently read stay open.
class file_set {
  public:
    explicit file_set(std::vector<std::string> paths)
        : opened_(open_files_limit, [paths = std::move(paths)](std::uint64_t index) {
              return input_file::open(paths[static_cast<std::size_t>(index)]);
          }) {}
    shared_file get(std::size_t index) { return opened_.get(index); }

  private:
    recently_used<shared_file> opened_;
};

// One of them as a file that needs no descriptor of its own, so that any number of shards can stay
// open.
class file_of_set final : public input_file {
  public:
    file_of_set(std::shared_ptr<file_set> files, std::size_t index, const std::string& path,
                std::uint64_t size)
        : input_file(path, size), files_(std::move(files)), index_(index) {}
    int descriptor() const override { input_error("is read in parts", {path(), {}, {}}); }
    void read(std::uint64_t offset, std::span<std::byte> out,
              std::string_view tensor) const override {
        files_->get(index_)->read(offset, out, tensor);
    }
    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        files_->get(index_)->expect(offset, bytes);
    }

  private:
    std::shared_ptr<file_set> files_;
    std::size_t index_;
};

struct opened_shard {
    shared_source source;
    bool in_place = false;  // it holds no memory
};

// The pickle of one shard describes one tensor, and is read at each opening.
constexpr std::uint64_t shard_pickle_limit = 64 << 10;

// The elements of one shard, which must match the metadata.
opened_shard open_shard(const shared_file& file, const stored_shard& place,
                        const tensor::shape& extents, const torch_dtype& type,
                        const std::string& name) {
    const auto archive =
        std::make_shared<const torch_archive>(file, place.offset, place.length, shard_pickle_limit);
    const torch_tensor found =
        read_tensor(archive->graph(), archive->graph().root(), file->path(), name);
    if (!found.note.empty()) refuse(file->path(), name, found.note);
    archive->check(found, name);
    if (found.type->name != type.name || found.shape != extents) {
        refuse(file->path(), name,
               fmt::format("its shard is {} of {}, the metadata says {} of {}",
                           tensor::to_string(found.shape), found.type->name,
                           tensor::to_string(extents), type.name));
    }
    return {archive->open_tensor(found, name), archive->in_place(found, name)};
}

class distributed_reader final : public file_reader {
  public:
    distributed_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)) {
        if (file_->size() > pickle_size_limit) {
            fail({}, fmt::format("{} bytes of metadata; mx reads up to {} MiB", file_->size(),
                                 pickle_size_limit >> 20));
        }
        distributed_metadata found = read_distributed_metadata(
            file_->head(static_cast<std::size_t>(file_->size())), file_->path());
        find_files(found.files);
        const auto as = parse_as(options.as);
        for (distributed_tensor& each : found.tensors) add(std::move(each), as);
        limit_repetition();
        if (found.others != 0) {
            metadata_.emplace("(others)",
                              fmt::format("values that are not tensors: {}", found.others));
        }
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) refuse(info.file, info.name, info.note);
        auto held = std::make_shared<const distributed_tensor>(held_[index]);
        const auto opened = [held, files = opened_](std::uint64_t shard) {
            const auto at = static_cast<std::size_t>(shard);
            const stored_shard& place = held->shards[at];
            return open_shard(files[place.file], place, held->boxes[at].extents, *held->type,
                              held->name);
        };
        const auto copies = std::make_shared<source_cache>(
            open_copies_limit, [opened](std::uint64_t shard) { return opened(shard).source; });
        return from_shards(
            held->shape, held->boxes, static_cast<std::size_t>(held->type->width),
            [opened, copies](std::uint64_t shard) -> shared_source {
                opened_shard one = opened(shard);
                if (one.in_place) return one.source;
                return make_source([copies, shard](std::uint64_t offset, std::span<std::byte> out) {
                    copies->get(shard)->read(offset, out);
                });
            });
    }

  private:
    void find_files(const std::vector<std::string>& paths) {
        // Remote files stay open: they use no descriptor, and opening one again takes time.
        opened_.resize(paths.size());
        if (is_remote(file_->path())) {
            base::parallel_for(
                paths.size(), opened_at_once(file_->path()), nullptr,
                [&](std::uint64_t i, int) { opened_[i] = input_file::open(paths[i]); });
            for (const shared_file& file : opened_) files_.emplace_back(file->path(), file->size());
            return;
        }
        const auto all = std::make_shared<file_set>(paths);
        for (std::size_t i = 0; i < paths.size(); ++i) {
            std::error_code failure;
            const std::uintmax_t size = fs::file_size(paths[i], failure);
            if (failure) {
                fail({}, fmt::format("its shard '{}': {}", paths[i], failure.message()));
            }
            files_.emplace_back(paths[i], size);
            opened_[i] = std::make_shared<const file_of_set>(all, i, paths[i], size);
        }
    }

    void add(distributed_tensor each, std::optional<tensor::dtype> as) {
        std::string path = file_->path();
        for (const stored_shard& shard : each.shards) {
            // The first is the metadata itself.
            const auto& [shard_path, size] = files_[shard.file + 1];
            if (shard.offset > size || shard.length > size - shard.offset) {
                refuse(shard_path, each.name,
                       fmt::format("its shard of {} bytes from byte {} on is beyond the end of the "
                                   "file of {}",
                                   shard.length, shard.offset, size));
            }
        }
        if (!each.shards.empty()) path = files_[each.shards.front().file + 1].first;
        tensors_.push_back(
            torch_info(each.type, each.shape, std::string(each.type->note), each.name, path, as));
        held_.push_back(std::move(each));
    }

    std::vector<shared_file> opened_;  // by number of the file
    std::vector<distributed_tensor> held_;
};

}  // namespace

distributed_metadata read_distributed_metadata(std::string bytes, const std::string& file) {
    return metadata_reader(std::move(bytes), file).read();
}

bool looks_like_distributed(const file_probe& probe) {
    return probe.head.starts_with("\x80") &&
           probe.head.find("torch.distributed.checkpoint.metadata") != std::string_view::npos;
}

std::unique_ptr<reader> open_distributed(shared_file file, const open_options& options) {
    return std::make_unique<distributed_reader>(std::move(file), options);
}

}  // namespace mx::io

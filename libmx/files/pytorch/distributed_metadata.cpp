// SPDX-License-Identifier: Apache-2.0
// pytorch/pytorch: torch/distributed/checkpoint/metadata.py and filesystem.py.
#include "libmx/files/pytorch/distributed_metadata.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/pytorch/torch_values.hpp"
#include "libmx/io/inside.hpp"

namespace mx::io {
namespace {

constexpr std::string_view module_name = "torch.distributed.checkpoint.metadata";
// Comparisons of shards with each other, in one file: a fraction of a second.
constexpr std::uint64_t comparison_budget = std::uint64_t{1} << 26;

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
        std::unordered_set<std::string_view> names;
        const auto items = graph_.items(tensors);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (graph_.kind(items[i]) != pickle_kind::text) fail({}, "a tensor's name is no text");
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
        throw base::error(base::error_kind::input, message, {file_, tensor, {}});
    }

    bool is_object(pickle_ref ref, std::string_view name) const {
        return graph_.kind(ref) == pickle_kind::object &&
               graph_.is_global(graph_[ref].callee, module_name, name);
    }
    pickle_ref dictionary(pickle_ref object, std::string_view name) const {
        const pickle_ref found = graph_.attribute(object, name);
        if (found == no_value || !graph_[found].pairs) {
            fail({}, fmt::format("the metadata has no {}", name));
        }
        return found;
    }
    std::vector<std::uint64_t> extents(pickle_ref object, std::string_view name,
                                       const std::string& tensor) const {
        const auto found = extents_of(graph_, graph_.attribute(object, name));
        if (!found) fail(tensor, fmt::format("its {} are not described as PyTorch does it", name));
        return *found;
    }

    // {MetadataIndex(fqn, offset): _StorageInfo(relative_path, offset, length)}
    void read_places(pickle_ref places) {
        std::unordered_map<std::string_view, std::size_t> files;
        const auto items = graph_.items(places);
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (graph_.kind(items[i]) != pickle_kind::object ||
                graph_.kind(items[i + 1]) != pickle_kind::object) {
                fail({}, "storage_data is not described as PyTorch does it");
            }
            const pickle_ref fqn = graph_.attribute(items[i], "fqn");
            const auto offsets = extents_of(graph_, graph_.attribute(items[i], "offset"));
            if (fqn == no_value || !offsets) continue;  // of a value that is no tensor
            const std::string name(graph_.text(fqn));
            const pickle_ref path = graph_.attribute(items[i + 1], "relative_path");
            const auto offset = graph_.count(graph_.attribute(items[i + 1], "offset"));
            const auto length = graph_.count(graph_.attribute(items[i + 1], "length"));
            if (path == no_value || graph_.kind(path) != pickle_kind::text || !offset || !length) {
                fail(name, "the place of a shard is not described as PyTorch does it");
            }
            const pickle_ref changes = graph_.attribute(items[i + 1], "transform_descriptors");
            if (changes != no_value && !graph_.items(changes).empty()) {
                fail(name,
                     "its shards are stored compressed or otherwise transformed, which mx "
                     "does not read");
            }
            const auto [at, fresh] = files.emplace(graph_.text(path), out_.files.size());
            if (fresh) {
                out_.files.emplace_back(graph_.text(path));
                if (!stays_inside(out_.files.back())) {
                    fail(name, fmt::format("the shard '{}' is outside the directory of the "
                                           "checkpoint",
                                           out_.files.back()));
                }
            }
            if (!places_.emplace(key_of(name, *offsets), stored_shard{at->second, *offset, *length})
                     .second) {
                fail(name, "one of its shards has two places");
            }
        }
    }

    void add(std::string name, pickle_ref described) {
        distributed_tensor tensor;
        tensor.name = std::move(name);
        tensor.shape = extents(described, "size", tensor.name);
        tensor.type = read_type(described, tensor.name);
        if (!tensor::element_count(tensor.shape)) fail(tensor.name, "its extents are too large");
        const pickle_ref chunks = graph_.attribute(described, "chunks");
        if (chunks == no_value || graph_.kind(chunks) != pickle_kind::list) {
            fail(tensor.name, "its chunks are not described as PyTorch does it");
        }
        for (const pickle_ref chunk : graph_.items(chunks)) {
            shard_box box{extents(chunk, "offsets", tensor.name),
                          extents(chunk, "sizes", tensor.name)};
            bool empty = false;
            for (const std::uint64_t extent : box.extents) empty = empty || extent == 0;
            const auto place = places_.find(key_of(tensor.name, box.origin));
            if (empty) continue;
            if (place == places_.end()) fail(tensor.name, "one of its shards is stored nowhere");
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
        if (properties != no_value && graph_.kind(properties) == pickle_kind::object) {
            type = graph_.attribute(properties, "dtype");
            if (type == no_value) type = graph_.at(graph_[properties].state, 0);
        }
        const torch_dtype* found = type == no_value ? nullptr : dtype_of(graph_, type);
        if (found == nullptr) {
            fail(name, fmt::format("its dtype '{}' is not one that mx knows",
                                   type == no_value ? "" : graph_.global_name(type)));
        }
        return found;
    }

    const std::string& file_;
    pickle_graph graph_;
    std::unordered_map<std::string, stored_shard> places_;
    std::uint64_t budget_ = comparison_budget;
    distributed_metadata out_;
};

}  // namespace

distributed_metadata read_distributed_metadata(std::string bytes, const std::string& file) {
    return metadata_reader(std::move(bytes), file).read();
}

}  // namespace mx::io

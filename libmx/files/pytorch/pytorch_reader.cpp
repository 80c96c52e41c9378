// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/files/pytorch/tensor_paths.hpp"
#include "libmx/files/pytorch/torch_archive.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/storage_views.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t bytes_of_axis = 64;  // in the copies of shapes and strides

class pytorch_reader final : public file_reader {
  public:
    pytorch_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)),
          archive_(std::make_shared<const torch_archive>(file_, 0, file_->size())) {
        const auto as = parse_as(options.as);
        const pickle_graph& graph = archive_->graph();
        const checkpoint_values found =
            find_tensors(graph, file_->path(), array_name(file_->path()));
        if (found.tensors.empty()) refuse_if_opaque(found);
        for (const named_value& each : found.tensors) add(graph, each, as);
        note_shared(graph.budget());
        limit_repetition();
        for (const auto& [name, made] : found.passed_over) {
            metadata_.emplace(name, fmt::format("an object of {}: not built, ignored", made));
        }
        const std::size_t more = found.passed_over_count - found.passed_over.size();
        if (more != 0) metadata_.emplace("(more)", fmt::format("objects ignored: {} more", more));
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail(info.name, info.note);
        return archive_->open_tensor(views_[index], info.name);
    }

  private:
    void refuse_if_opaque(const checkpoint_values& found) const {
        if (found.passed_over.empty()) return;
        fail(found.passed_over.front().first,
             fmt::format("has no tensors, but an object of {}; mx builds no objects and executes "
                         "nothing: store tensors, e.g. a state_dict",
                         found.passed_over.front().second));
    }

    void add(const pickle_graph& graph, const named_value& found, std::optional<tensor::dtype> as) {
        torch_tensor view;
        if (found.note.empty()) {
            view = read_tensor(graph, found.value, file_->path(), found.name);
            if (view.type != nullptr) archive_->check(view, found.name);
        } else {
            view.note = found.note;
            view.shape = {0};
        }
        graph.budget().take(bytes_of_axis * view.shape.size(), found.name);
        tensors_.push_back(
            torch_info(view.type, view.shape, view.note, found.name, file_->path(), as));
        views_.push_back(std::move(view));
    }

    // Tied tensors are listed under all their names, and counted once.
    void note_shared(read_budget& budget) {
        std::vector<storage_view> ranges;
        for (std::size_t i = 0; i < views_.size(); ++i) {
            const torch_tensor& view = views_[i];
            if (view.type == nullptr || tensors_[i].elements == 0) continue;
            const std::uint64_t width = view.type->width;
            std::uint64_t last = view.offset;
            for (std::size_t k = 0; k < view.shape.size(); ++k) {
                last += (view.shape[k] - 1) * view.strides[k];
            }
            storage_view& range = ranges.emplace_back(storage_view{view.storage,
                                                                   view.offset * width,
                                                                   (last + 1) * width,
                                                                   i,
                                                                   view.storage_bytes,
                                                                   archive_->bytes_in_file(view),
                                                                   {}});
            if (range.end - range.begin <= tensors_[i].bytes) continue;
            range.steps = view.shape;
            range.steps.insert(range.steps.end(), view.strides.begin(), view.strides.end());
        }
        for (const auto& [one, other] : count_storage_once(std::move(ranges), tensors_, budget)) {
            metadata_.emplace(tensors_[one].name,
                              "shares its storage with " + short_name(tensors_[other].name));
        }
    }

    std::shared_ptr<const torch_archive> archive_;
    std::vector<torch_tensor> views_;
};

}  // namespace

bool looks_like_pytorch(const file_probe& probe) {
    return looks_like_zip(probe) && is_torch_archive(probe.file);
}

std::unique_ptr<reader> open_pytorch(shared_file file, const open_options& options) {
    return std::make_unique<pytorch_reader>(std::move(file), options);
}

}  // namespace mx::io

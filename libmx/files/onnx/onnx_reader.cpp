// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/onnx/onnx_external.hpp"
#include "libmx/files/onnx/onnx_model.hpp"
#include "libmx/files/onnx/onnx_values.hpp"
#include "libmx/files/onnx/onnx_wire.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

class onnx_reader final : public reader {
  public:
    onnx_reader(shared_file file, const open_options& options)
        : file_(std::move(file)),
          model_(read_onnx_model(file_)),
          externals_(file_->path()),
          places_(model_.tensors.size()) {
        const auto as = parse_as(options.as);
        for (std::size_t i = 0; i < places_.size(); ++i) {
            tensors_.push_back(describe(model_.tensors[i], places_[i]));
            tensors_.back().type = read_as(tensors_.back().type, as);
        }
    }

    const std::vector<tensor_info>& tensors() const override { return tensors_; }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        const onnx_tensor& t = model_.tensors[index];
        if (!info.note.empty()) fail(t, info.note);
        if (t.is_external) {
            return file_window(input_file::open(info.file), places_[index].offset, info.bytes,
                               info.name);
        }
        if (t.raw) return file_window(file_, t.raw->begin, info.bytes, info.name);
        return onnx_typed_values(file_, t, *find_onnx_type(t.type_id), info.bytes);
    }
    const std::map<std::string, std::string>& metadata() const override { return model_.metadata; }
    std::vector<std::pair<std::string, std::uint64_t>> files() const override {
        std::vector<std::pair<std::string, std::uint64_t>> all{{file_->path(), file_->size()}};
        all.insert(all.end(), externals_.files().begin(), externals_.files().end());
        return all;
    }

  private:
    [[noreturn]] void fail(const onnx_tensor& t, const std::string& message) const {
        throw base::error(base::error_kind::input, message,
                          {file_->path(), t.name, t.message.begin});
    }

    tensor_info describe(const onnx_tensor& t, onnx_place& place) {
        tensor_info info;
        info.name = t.name;
        info.file = file_->path();
        info.shape = t.shape;
        info.note = t.note;
        info.type = tensor::dtype::other;
        const auto elements = tensor::element_count(t.shape);
        if (!elements) fail(t, fmt::format("shape {} is too large", tensor::to_string(t.shape)));
        info.elements = *elements;
        const onnx_type* type = find_onnx_type(t.type_id);
        if (info.note.empty() && (type == nullptr || !type->type)) {
            info.note = type != nullptr ? fmt::format("ONNX's {} is not read", type->name)
                                        : fmt::format("unknown ONNX type {}", t.type_id);
        }
        if (!info.note.empty()) {
            info.bytes = t.raw ? t.raw->size : 0;
            for (const auto& [field, bytes] : t.held) info.bytes += bytes;
            return info;
        }
        info.type = *type->type;
        const auto bytes = tensor::byte_count(info.type, *elements);
        if (!bytes) fail(t, fmt::format("shape {} is too large", tensor::to_string(t.shape)));
        info.bytes = *bytes;
        if (t.is_external) {
            place = externals_.place_of(t, info.bytes);
            info.file = place.path;
        } else if (t.raw) {
            if (t.raw->size != info.bytes) {
                fail(t, fmt::format("{} of shape {} takes {} bytes, raw_data has {}", type->name,
                                    tensor::to_string(t.shape), info.bytes, t.raw->size));
            }
        } else {
            check_held(t, *type, info.bytes);
        }
        return info;
    }

    // Whether the fields can hold so many values: nothing is allocated on the shape's word alone.
    void check_held(const onnx_tensor& t, const onnx_type& type, std::uint64_t bytes) const {
        const auto at = t.held.find(type.field);
        const std::uint64_t held = at == t.held.end() ? 0 : at->second;
        const bool floats =
            type.field == onnx_field::float_data || type.field == onnx_field::double_data;
        const auto width = static_cast<std::uint64_t>(tensor::row_of(*type.type).bits + 7) / 8;
        if (floats ? held != bytes : held < bytes / width) {
            fail(t, fmt::format("{} of shape {} takes {} bytes, its data has {}", type.name,
                                tensor::to_string(t.shape), bytes, held));
        }
    }

    shared_file file_;
    onnx_model model_;
    onnx_externals externals_;
    std::vector<onnx_place> places_;
    std::vector<tensor_info> tensors_;
};

}  // namespace

// A bare protobuf has no mark: field 1 (ir_version) as a small number, then another low field.
bool looks_like_onnx(const file_probe& probe) {
    const std::string_view head = probe.head;
    return head.size() > 4 && head[0] == '\x08' && head[1] > 0 && head[1] < 32 &&
           (head[2] == '\x12' || head[2] == '\x1a' || head[2] == '\x3a' || head[2] == '\x42');
}

std::unique_ptr<reader> open_onnx(shared_file file, const open_options& options) {
    return std::make_unique<onnx_reader>(std::move(file), options);
}

std::string onnx_support() { return protobuf_version(); }

}  // namespace mx::io

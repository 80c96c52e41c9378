// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/pytorch/torch_archive.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/strided.hpp"

namespace mx::io {
namespace {

constexpr std::string_view pickle_name = "data.pkl";

// "" or "NAME/" when the entry is the pickle of an archive called NAME.
std::optional<std::string> prefix_of(const std::string& entry) {
    if (!entry.ends_with(pickle_name)) return std::nullopt;
    const std::string prefix = entry.substr(0, entry.size() - pickle_name.size());
    const std::size_t slash = prefix.find('/');
    if (prefix.empty() || (slash != 0 && slash + 1 == prefix.size())) return prefix;
    return std::nullopt;
}

}  // namespace

void torch_archive::find_records() {
    std::optional<std::string> found;
    for (const zip_entry& entry : zip_->entries()) {
        const std::optional<std::string> prefix_here = prefix_of(entry.name);
        if (!prefix_here) continue;
        if (found) fail(entry.name, "is a second data.pkl in one archive");
        found = prefix_here;
    }
    if (!found) fail({}, "is a zip archive without the data.pkl of PyTorch");
    prefix_ = *found;
    for (const zip_entry& entry : zip_->entries()) {
        if (!entry.name.starts_with(prefix_)) continue;
        if (!records_.emplace(entry.name.substr(prefix_.size()), entry).second) {
            fail(entry.name, "two entries of this name");
        }
    }
}

std::string torch_archive::whole(const zip_entry& entry) const {
    if (entry.encrypted) fail(entry.name, "encrypted entries are not read");
    std::string text(static_cast<std::size_t>(entry.size), '\0');
    zip_->plain_bytes(entry, entry.name)
        ->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
}

void torch_archive::read_byte_order() {
    const auto found = records_.find("byteorder");
    if (found == records_.end()) return;
    const std::string order = found->second.size > 16 ? "" : whole(found->second);
    if (order != "little" && order != "big") {
        fail(found->second.name, "says neither 'little' nor 'big'");
    }
    big_endian_ = order == "big";
}

void torch_archive::read_graph(std::uint64_t most) {
    const zip_entry& entry = records_.at(std::string(pickle_name));
    if (entry.size > most) {
        fail(entry.name, fmt::format("the pickle has {} bytes; mx reads up to {} KiB here",
                                     entry.size, most >> 10));
    }
    graph_.emplace(read_pickle(whole(entry), zip_->path(), entry.name, entry.packed));
}

const zip_entry& torch_archive::record(const torch_tensor& tensor, const std::string& name) const {
    const auto found = records_.find("data/" + std::string(tensor.storage));
    if (found == records_.end()) {
        fail(name,
             fmt::format("its storage, entry '{}data/{}', is missing", prefix_, tensor.storage));
    }
    return found->second;
}

torch_archive::torch_archive(shared_file file, std::uint64_t begin, std::uint64_t size,
                             std::uint64_t most)
    : zip_(zip_archive::open(std::move(file), begin, size)) {
    find_records();
    read_byte_order();
    read_graph(most);
}

void torch_archive::check(const torch_tensor& tensor, const std::string& name) const {
    const zip_entry& entry = record(tensor, name);
    if (entry.encrypted) fail(name, "its storage is encrypted");
    if (entry.size < tensor.storage_bytes) {
        fail(name, fmt::format("its storage should have {} bytes, entry '{}' has {}",
                               tensor.storage_bytes, entry.name, entry.size));
    }
    const auto elements = tensor::element_count(tensor.shape);
    if (!elements) fail(name, "its extents are too large");
    const std::uint64_t held = tensor.storage_bytes / tensor.type->width;
    std::uint64_t last = tensor.offset;
    bool fits = true;
    for (std::size_t k = 0; *elements != 0 && k < tensor.shape.size(); ++k) {
        std::uint64_t reach = 0;
        fits = fits && !__builtin_mul_overflow(tensor.shape[k] - 1, tensor.strides[k], &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    if (!fits || (*elements == 0 ? last > held : last >= held)) {
        fail(name, fmt::format("its view reaches beyond its storage of {} elements", held));
    }
}

std::uint64_t torch_archive::bytes_in_file(const torch_tensor& tensor) const {
    return record(tensor, {}).packed;
}

bool torch_archive::in_place(const torch_tensor& tensor, const std::string& name) const {
    std::uint64_t inner = 1;
    for (std::size_t k = tensor.shape.size(); k-- > 0;) {
        if (tensor.shape[k] != 1 && tensor.strides[k] != inner) return false;
        inner *= tensor.shape[k];
    }
    return record(tensor, name).method == ZIP_CM_STORE;
}

std::unique_ptr<byte_source> torch_archive::open_tensor(const torch_tensor& tensor,
                                                        const std::string& name) const {
    const auto width = static_cast<std::size_t>(tensor.type->width);
    shared_source bytes = zip_->plain_bytes(record(tensor, name), name);
    if (big_endian_) {
        const bool complex =
            tensor.type->type == tensor::dtype::c64 || tensor.type->type == tensor::dtype::c128;
        const std::size_t number = complex ? width / 2 : width;
        if (number > 1) bytes = byte_swapped(std::move(bytes), number);
    }
    if (tensor.offset != 0) bytes = source_window(std::move(bytes), tensor.offset * width);
    return from_strided(std::move(bytes), tensor.shape, tensor.strides, width);
}

bool is_torch_archive(const shared_file& file) {
    try {
        const auto zip = zip_archive::open(file);
        for (const zip_entry& entry : zip->entries()) {
            if (prefix_of(entry.name)) return true;
        }
    } catch (const base::error&) {  // the reader of zip archives reports what is wrong with it
    }
    return false;
}

tensor_info torch_info(const torch_dtype* type, const tensor::shape& shape, std::string note,
                       const std::string& name, const std::string& path,
                       std::optional<tensor::dtype> as) {
    tensor_info info;
    info.name = name;
    info.file = path;
    info.shape = shape;
    info.note = std::move(note);
    info.type = type == nullptr ? tensor::dtype::other : read_as(type->type, as);
    if (!info.note.empty()) info.type = tensor::dtype::other;
    bool fits = true;
    if (info.type == tensor::dtype::f4) {
        if (info.shape.empty()) info.shape = {1};
        fits = !__builtin_mul_overflow(info.shape.back(), std::uint64_t{2}, &info.shape.back());
    }
    if (!fits || !count_bytes(info)) input_error("its extents are too large", {path, name, {}});
    return info;
}

}  // namespace mx::io

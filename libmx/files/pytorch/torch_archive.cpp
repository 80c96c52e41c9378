// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/pytorch/torch_archive.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/files/zip_archive.hpp"
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

struct torch_archive::parts {
    std::shared_ptr<zip_archive> zip;
    std::string prefix;
    std::unordered_map<std::string, zip_entry> records;
    bool big_endian = false;
    std::optional<pickle_graph> graph;

    [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
        input_error(message, {zip->path(), tensor, {}});
    }

    void find_records() {
        std::optional<std::string> found;
        for (const zip_entry& entry : zip->entries()) {
            const std::optional<std::string> prefix_here = prefix_of(entry.name);
            if (!prefix_here) continue;
            if (found) fail(entry.name, "is a second data.pkl in one archive");
            found = prefix_here;
        }
        if (!found) fail({}, "is a zip archive without the data.pkl of PyTorch");
        prefix = *found;
        for (const zip_entry& entry : zip->entries()) {
            if (!entry.name.starts_with(prefix)) continue;
            if (!records.emplace(entry.name.substr(prefix.size()), entry).second) {
                fail(entry.name, "two entries of this name");
            }
        }
    }

    std::string whole(const zip_entry& entry) const {
        if (entry.encrypted) fail(entry.name, "encrypted entries are not read");
        std::string text(static_cast<std::size_t>(entry.size), '\0');
        zip->plain_bytes(entry, entry.name)
            ->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
        return text;
    }

    void read_byte_order() {
        const auto found = records.find("byteorder");
        if (found == records.end()) return;
        const std::string order = found->second.size > 16 ? "" : whole(found->second);
        if (order != "little" && order != "big") {
            fail(found->second.name, "says neither 'little' nor 'big'");
        }
        big_endian = order == "big";
    }

    void read_graph() {
        const zip_entry& entry = records.at(std::string(pickle_name));
        if (entry.size > pickle_size_limit) {
            fail(entry.name, fmt::format("the pickle has {} bytes; mx reads up to {} MiB",
                                         entry.size, pickle_size_limit >> 20));
        }
        graph.emplace(read_pickle(whole(entry), zip->path(), entry.name));
    }

    const zip_entry& record(const torch_tensor& tensor, const std::string& name) const {
        const auto found = records.find("data/" + std::string(tensor.storage));
        if (found == records.end()) {
            fail(name,
                 fmt::format("its storage, entry '{}data/{}', is missing", prefix, tensor.storage));
        }
        return found->second;
    }
};

torch_archive::torch_archive(std::unique_ptr<parts> p) : parts_(std::move(p)) {}
torch_archive::~torch_archive() = default;

std::shared_ptr<const torch_archive> torch_archive::open(shared_file file, std::uint64_t begin,
                                                         std::uint64_t size) {
    auto p = std::make_unique<parts>();
    p->zip = zip_archive::open(std::move(file), begin, size);
    p->find_records();
    p->read_byte_order();
    p->read_graph();
    return std::shared_ptr<const torch_archive>(new torch_archive(std::move(p)));
}

const std::string& torch_archive::path() const { return parts_->zip->path(); }
const pickle_graph& torch_archive::graph() const { return *parts_->graph; }

void torch_archive::check(const torch_tensor& tensor, const std::string& name) const {
    const zip_entry& entry = parts_->record(tensor, name);
    if (entry.encrypted) parts_->fail(name, "its storage is encrypted");
    if (entry.size < tensor.storage_bytes) {
        parts_->fail(name, fmt::format("its storage should have {} bytes, entry '{}' has {}",
                                       tensor.storage_bytes, entry.name, entry.size));
    }
    const auto elements = tensor::element_count(tensor.shape);
    if (!elements) parts_->fail(name, "its extents are too large");
    const std::uint64_t held = tensor.storage_bytes / tensor.type->width;
    std::uint64_t last = tensor.offset;
    bool fits = true;
    for (std::size_t k = 0; *elements != 0 && k < tensor.shape.size(); ++k) {
        std::uint64_t reach = 0;
        fits = fits && !__builtin_mul_overflow(tensor.shape[k] - 1, tensor.strides[k], &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    if (!fits || (*elements == 0 ? last > held : last >= held)) {
        parts_->fail(name, fmt::format("its view reaches beyond its storage of {} elements", held));
    }
}

std::unique_ptr<byte_source> torch_archive::open_tensor(const torch_tensor& tensor,
                                                        const std::string& name) const {
    const auto width = static_cast<std::size_t>(tensor.type->width);
    shared_source bytes = parts_->zip->plain_bytes(parts_->record(tensor, name), name);
    if (parts_->big_endian) {
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
    } catch (const base::error&) {  // the reader of zip archives says what is wrong with it
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

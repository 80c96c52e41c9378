// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/staged_output.hpp"

namespace mx::io {
namespace {

constexpr std::size_t copied_metadata = std::size_t{1} << 20;  // bytes at a time

void put_number(std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i);
}

std::uint64_t bytes_of(const planned_gguf_tensor& t) {
    const gguf_type& type = *find_gguf_type(t.type_id);
    return *tensor::element_count(t.shape) / type.block_elements * type.block_bytes;
}

class stored_gguf final : public file_reader {
  public:
    explicit stored_gguf(const shared_file& file) : file_reader(file) {
        for (const gguf_tensor& t : read_gguf_header(file).tensors) {
            if (t.type == nullptr) fail(t.name, fmt::format("unknown ggml type {}", t.type_id));
            tensor_info info;
            info.name = t.name;
            info.file = file->path();
            info.type = tensor::dtype::u8;
            info.shape = {t.bytes};
            info.elements = info.bytes = t.bytes;
            tensors_.push_back(std::move(info));
            begins_.push_back(t.begin);
        }
    }
    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        return file_window(file_, begins_[index], info.bytes, info.name);
    }

  private:
    std::vector<std::uint64_t> begins_;
};

}  // namespace

std::unique_ptr<reader> open_gguf_stored(const shared_file& file) {
    return std::make_unique<stored_gguf>(file);
}

std::vector<planned_gguf_tensor> gguf_tensors(const shared_file& file) {
    std::vector<planned_gguf_tensor> all;
    for (gguf_tensor& t : read_gguf_header(file).tensors) {
        all.push_back({std::move(t.name), t.type_id, std::move(t.shape)});
    }
    return all;
}

std::unique_ptr<array_writer> create_gguf(const std::string& path,
                                          const std::vector<planned_gguf_tensor>& plan,
                                          const shared_file& from, std::uint32_t file_type) {
    check_ending(path, {".gguf"});
    const gguf_header header = read_gguf_header(from);
    if (header.big_endian) {
        input_error("is big-endian; convert it on such a machine", {from->path(), {}, {}});
    }
    std::string head = "GGUF";
    put_number(head, 3, 4);
    put_number(head, plan.size(), 8);
    put_number(head, header.entries, 8);
    std::string list;
    std::vector<array_place> places;
    std::uint64_t end = 0;
    for (const planned_gguf_tensor& t : plan) {
        put_number(list, t.name.size(), 8);
        list += t.name;
        put_number(list, t.shape.size(), 4);
        for (std::size_t axis = t.shape.size(); axis > 0; --axis) {
            put_number(list, t.shape[axis - 1], 8);
        }
        put_number(list, t.type_id, 4);
        put_number(list, end, 8);
        places.push_back({end, bytes_of(t)});
        end = (end + places.back().bytes + header.alignment - 1) / header.alignment *
              header.alignment;
    }
    const std::uint64_t metadata = header.metadata_end - header.metadata_begin;
    const std::uint64_t unaligned = head.size() + metadata + list.size();
    const std::uint64_t start =
        (unaligned + header.alignment - 1) / header.alignment * header.alignment;
    for (array_place& p : places) p.offset += start;

    auto stage = std::make_unique<staged_output>(path);
    stage->reserve(start + end);
    const auto put = [&](std::uint64_t at, const std::string& text) {
        stage->write_at(at, std::as_bytes(std::span(text)));
    };
    put(0, head);
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < metadata; at += bytes.size()) {
        bytes.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(copied_metadata, metadata - at)));
        from->read(header.metadata_begin + at, bytes);
        stage->write_at(head.size() + at, bytes);
    }
    if (header.file_type_at) {
        std::string type;
        put_number(type, file_type, 4);
        put(head.size() + *header.file_type_at - header.metadata_begin, type);
    }
    put(head.size() + metadata, list);
    return stage_arrays(std::move(stage), std::move(places));
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "libmx/base/bits.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/staged_output.hpp"

namespace mx::io {
namespace {

void put_le(std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i);
}

void put_counted(std::string& to, std::string_view text) {
    put_le(to, text.size(), 8);
    to += text;
}

// gguf_type of ggml (docs/gguf.md).
enum class written_type : std::uint32_t { uint32 = 4, int32, float32, boolean, text, array };

// The key and the type of an entry; of an array those of its elements.
void begin_entry(gguf_metadata& m, std::string_view key, written_type type,
                 std::optional<std::size_t> count = {}) {
    put_counted(m.bytes, key);
    if (count) put_le(m.bytes, static_cast<std::uint32_t>(written_type::array), 4);
    put_le(m.bytes, static_cast<std::uint32_t>(type), 4);
    if (count) put_le(m.bytes, *count, 8);
    ++m.entries;
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

void gguf_metadata::put_number(std::string_view key, std::uint32_t value) {
    begin_entry(*this, key, written_type::uint32);
    put_le(bytes, value, 4);
}

void gguf_metadata::put_real(std::string_view key, float value) {
    begin_entry(*this, key, written_type::float32);
    put_le(bytes, base::bits_of(value), 4);
}

void gguf_metadata::put_flag(std::string_view key, bool value) {
    begin_entry(*this, key, written_type::boolean);
    put_le(bytes, value ? 1 : 0, 1);
}

void gguf_metadata::put_text(std::string_view key, std::string_view value) {
    begin_entry(*this, key, written_type::text);
    put_counted(bytes, value);
}

void gguf_metadata::put_numbers(std::string_view key, const std::vector<std::int32_t>& values) {
    begin_entry(*this, key, written_type::int32, values.size());
    for (const std::int32_t v : values) put_le(bytes, static_cast<std::uint32_t>(v), 4);
}

void gguf_metadata::put_reals(std::string_view key, const std::vector<float>& values) {
    begin_entry(*this, key, written_type::float32, values.size());
    for (const float v : values) put_le(bytes, base::bits_of(v), 4);
}

void gguf_metadata::put_texts(std::string_view key, const std::vector<std::string>& values) {
    begin_entry(*this, key, written_type::text, values.size());
    for (const std::string& v : values) put_counted(bytes, v);
}

gguf_metadata gguf_metadata_of(const shared_file& file, std::uint32_t file_type) {
    const gguf_header header = read_gguf_header(file);
    if (header.big_endian) {
        input_error("is big-endian; convert it on such a machine", {file->path(), {}, {}});
    }
    gguf_metadata m;
    m.entries = header.entries;
    m.alignment = header.alignment;
    m.bytes.resize(static_cast<std::size_t>(header.metadata_end - header.metadata_begin));
    file->read(header.metadata_begin, std::as_writable_bytes(std::span(m.bytes)));
    if (header.file_type_at) {
        std::string type;
        put_le(type, file_type, 4);
        const auto at = static_cast<std::size_t>(*header.file_type_at - header.metadata_begin);
        m.bytes.replace(at, type.size(), type);
    }
    return m;
}

std::unique_ptr<array_writer> create_gguf(const std::string& path,
                                          const std::vector<planned_gguf_tensor>& plan,
                                          const gguf_metadata& metadata) {
    check_ending(path, {".gguf"});
    std::string head = "GGUF";
    put_le(head, 3, 4);
    put_le(head, plan.size(), 8);
    put_le(head, metadata.entries, 8);
    head += metadata.bytes;
    const auto aligned = [&](std::uint64_t at) {
        return (at + metadata.alignment - 1) / metadata.alignment * metadata.alignment;
    };
    std::vector<array_place> places;
    std::uint64_t end = 0;
    for (const planned_gguf_tensor& t : plan) {
        put_counted(head, t.name);
        put_le(head, t.shape.size(), 4);
        for (std::size_t axis = t.shape.size(); axis > 0; --axis) {
            put_le(head, t.shape[axis - 1], 8);
        }
        put_le(head, t.type_id, 4);
        put_le(head, end, 8);
        places.push_back({end, bytes_of(t)});
        end = aligned(end + places.back().bytes);
    }
    const std::uint64_t start = aligned(head.size());
    for (array_place& p : places) p.offset += start;

    auto stage = std::make_unique<staged_output>(path);
    stage->reserve(start + end);
    stage->write_at(0, std::as_bytes(std::span(head)));
    return stage_arrays(std::move(stage), std::move(places));
}

}  // namespace mx::io

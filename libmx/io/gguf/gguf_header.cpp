// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/gguf/gguf_metadata.hpp"

namespace mx::io {
namespace {

// A tokenizer of a million words takes some twenty MiB.
constexpr std::uint64_t header_limit = 256 << 20;
constexpr std::uint64_t metadata_limit = 16 << 20;  // bytes kept
constexpr std::uint64_t tensors_limit = 1 << 18;
constexpr std::uint64_t entries_limit = 1 << 16;
constexpr std::uint64_t key_limit = 65535;
constexpr std::uint64_t name_limit = 1024;  // ggml has 63
constexpr std::uint32_t axes_limit = 4;
// The least that an entry takes: lengths, types and offsets of one without a name.
constexpr std::uint64_t least_entry = 13;
constexpr std::uint64_t least_tensor = 24;

// Versions count up from 1, so that a version with its low half empty is one of the other order.
void read_version(file_cursor& at, gguf_header& header) {
    at.skip(4);  // "GGUF", in this order always
    header.version = at.number<std::uint32_t>();
    if (header.version != 0 && (header.version & 0xffffu) == 0) {
        header.big_endian = true;
        header.version = header.version >> 24 | (header.version >> 8 & 0xff00u);
        at.store_big_endian(true);
    }
    if (header.version != 2 && header.version != 3) {
        at.fail(
            fmt::format("GGUF version {} is not read, only 2 and 3; convert the model again "
                        "with a current llama.cpp",
                        header.version));
    }
}

// Returns the alignment of the data.
std::uint64_t read_metadata(file_cursor& at, std::uint64_t count, gguf_header& header) {
    if (count > std::min(entries_limit, at.remaining() / least_entry)) {
        at.fail(fmt::format("the header counts {} metadata entries, which cannot be", count));
    }
    std::uint64_t alignment = 32;
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::string key = read_gguf_text(at, key_limit, "a metadata key");
        gguf_value value = read_gguf_value(at);
        if (key == "general.alignment") {
            if (!value.number || *value.number == 0 || (*value.number & (*value.number - 1)) != 0) {
                at.fail(fmt::format("general.alignment is '{}', not a power of two", value.text));
            }
            alignment = *value.number;
        }
        kept += key.size() + value.text.size();
        if (kept > metadata_limit) {
            at.fail(fmt::format("more than {} bytes of metadata, which no real file needs",
                                metadata_limit));
        }
        const auto [entry, fresh] = header.metadata.emplace(std::move(key), std::move(value.text));
        if (!fresh) at.fail(fmt::format("two metadata entries named '{}'", entry->first));
    }
    return alignment;
}

gguf_tensor read_tensor(file_cursor& at, std::uint64_t alignment) {
    gguf_tensor tensor;
    tensor.name = read_gguf_text(at, name_limit, "a tensor's name");
    const auto axes = at.number<std::uint32_t>();
    if (axes > axes_limit) {
        at.fail(fmt::format("{} axes; GGUF has at most {}", axes, axes_limit), tensor.name);
    }
    for (std::uint32_t k = 0; k < axes; ++k) tensor.shape.push_back(at.number<std::uint64_t>());
    const std::uint64_t row = axes == 0 ? 1 : tensor.shape.front();
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    tensor.type_id = at.number<std::uint32_t>();
    tensor.type = find_gguf_type(tensor.type_id);
    tensor.begin = at.number<std::uint64_t>();
    const auto fail = [&](const std::string& message) { at.fail(message, tensor.name); };
    if (tensor.begin % alignment != 0) {
        fail(fmt::format("its data begins at {}, not a multiple of the alignment {}", tensor.begin,
                         alignment));
    }
    const auto elements = tensor::element_count(tensor.shape);
    // The widest block is 292 bytes, so that nothing below can overflow.
    if (!elements || *elements > (std::uint64_t{1} << 52)) {
        fail(fmt::format("shape {} is too large", tensor::to_string(tensor.shape)));
    }
    tensor.elements = *elements;
    if (tensor.type != nullptr) {
        if (row % tensor.type->block_elements != 0) {
            fail(fmt::format("rows of {} elements cannot be {}, which has blocks of {}", row,
                             tensor.type->name, tensor.type->block_elements));
        }
        tensor.bytes = *elements / tensor.type->block_elements * tensor.type->block_bytes;
    }
    return tensor;
}

void check_places(const input_file& file, const gguf_header& header) {
    std::vector<const gguf_tensor*> order;
    for (const gguf_tensor& tensor : header.tensors) {
        if (tensor.bytes != 0) order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const gguf_tensor* a, const gguf_tensor* b) {
        return std::pair(a->begin, a->name) < std::pair(b->begin, b->name);
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const gguf_tensor& before = *order[i - 1];
        if (before.begin + before.bytes > order[i]->begin) {
            throw base::error(base::error_kind::input,
                              fmt::format("overlaps the data of '{}'", before.name),
                              {file.path(), order[i]->name, order[i]->begin});
        }
    }
}

}  // namespace

gguf_header read_gguf_header(const shared_file& file) {
    gguf_header header;
    file_cursor at(file, header_limit);
    read_version(at, header);
    const auto tensors = at.number<std::uint64_t>();
    const auto entries = at.number<std::uint64_t>();
    const std::uint64_t alignment = read_metadata(at, entries, header);
    if (tensors > std::min(tensors_limit, at.remaining() / least_tensor)) {
        at.fail(fmt::format("the header counts {} tensors, which cannot be", tensors));
    }
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < tensors; ++i) {
        header.tensors.push_back(read_tensor(at, alignment));
        if (!names.insert(header.tensors.back().name).second) {
            at.fail("two tensors of this name", header.tensors.back().name);
        }
    }

    const std::uint64_t start = (at.position() + alignment - 1) / alignment * alignment;
    const std::uint64_t room = file->size() - std::min(start, file->size());
    for (gguf_tensor& tensor : header.tensors) {
        if (tensor.begin > room || tensor.bytes > room - tensor.begin) {
            at.fail(fmt::format("its {} bytes from {} on go beyond the file, which has {} bytes of "
                                "data; it may be cut short",
                                tensor.bytes, tensor.begin, room),
                    tensor.name);
        }
        tensor.begin += start;
    }
    check_places(*file, header);
    return header;
}

}  // namespace mx::io

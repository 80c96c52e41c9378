// SPDX-License-Identifier: Apache-2.0
// A safetensors file: u64 length, JSON, then the data.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/safetensors_header.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/strict_json.hpp"

namespace mx::io {
namespace {

// The header's description of a tensor; its bytes follow from its shape and type.
struct header_entry : tensor_info {
    std::uint64_t begin = 0;  // from the start of the data
    std::uint64_t end = 0;
    std::uint64_t stated = 0;  // byte of the file where the header's entry ends
};

struct safetensors_header {
    std::vector<header_entry> entries;  // in the order of their data
    std::map<std::string, std::string> metadata;
    std::uint64_t data_start = 0;  // from the start of the file
};

[[noreturn]] void fail_at(const input_file& file, const std::string& tensor, std::uint64_t offset,
                          const std::string& message) {
    input_error(message, {file.path(), tensor, offset});
}

// Depth 1 is the header's object, 2 a tensor's entry or the metadata, 3 an array of an entry.
class header_listener final : public json_listener {
  public:
    explicit header_listener(safetensors_header& header) : header_(header) {}

    void open(bool object) override {
        if (depth() == 1) {
            if (!object) fail("the header is not a JSON object");
        } else if (depth() == 2) {
            if (!object) fail("the header's entry is not an object", name_);
            if (!in_metadata_) add_entry();
            has_ = {};
        } else if (in_metadata_) {
            fail(fmt::format("the metadata value of '{}' is not a string", field_));
        } else if (depth() == 3 && known() && object) {
            fail(fmt::format("{} is not an array", field_), name_);
        } else if (depth() == 4 && known()) {
            fail(fmt::format("{} has an element that is not a number", field_), name_);
        } else if (depth() == 3 && field_ == "dtype") {
            fail("dtype is not a string", name_);
        }
    }

    void close() override {
        if (depth() == 3 && field_ == "data_offsets" && offsets_ != 2) {
            fail("data_offsets is not a pair", name_);
        }
        if (depth() != 2 || in_metadata_) return;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (!has_[i]) fail(fmt::format("the header's entry has no {}", fields[i]), name_);
        }
        header_.entries.back().stated = position();
    }

    void key(const std::string& name) override {
        if (depth() == 1) {
            name_ = name;
            in_metadata_ = name == "__metadata__";
        } else if (depth() == 2) {
            field_ = name;
            offsets_ = 0;
            for (std::size_t i = 0; i < fields.size(); ++i) has_[i] |= fields[i] == name;
        }
    }

    void scalar(const json_scalar& value) override {
        if (depth() == 0) fail("the header is not a JSON object");
        if (depth() == 1) {
            if (in_metadata_ && value.is == json_scalar::type::null) return;
            fail("the header's entry is not an object", name_);
        }
        if (in_metadata_) {
            if (value.is != json_scalar::type::text) {
                fail(fmt::format("the metadata value of '{}' is not a string", field_));
            }
            header_.metadata.emplace(field_, value.text);
        } else if (depth() == 2) {
            field_value(value);
        } else if (depth() == 3 && known()) {
            array_value(value);
        }
    }

  private:
    static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};

    void add_entry() {
        if (header_.entries.size() == safetensors_tensors_limit) {
            fail(fmt::format("the header lists more than {} tensors", safetensors_tensors_limit));
        }
        header_.entries.emplace_back().name = name_;
    }

    bool known() const { return field_ == "shape" || field_ == "data_offsets"; }

    void field_value(const json_scalar& value) {
        if (known()) fail(fmt::format("{} is not an array", field_), name_);
        if (field_ != "dtype") return;  // fields of later versions, as the reference does
        if (value.is != json_scalar::type::text) fail("dtype is not a string", name_);
        const auto type = tensor::find_dtype(value.text);
        if (type && safetensors_has(*type)) {
            header_.entries.back().type = *type;
            return;
        }
        constexpr std::size_t most_shown = 32;
        header_.entries.back().type = tensor::dtype::other;
        header_.entries.back().note =
            fmt::format("unknown dtype '{}'", base::printable(value.text.substr(0, most_shown)));
    }

    void array_value(const json_scalar& value) {
        if (value.is != json_scalar::type::natural) {
            fail(fmt::format("{} holds '{}', which is not a natural number below 2^64", field_,
                             value.is == json_scalar::type::null ? "null" : value.text),
                 name_);
        }
        header_entry& entry = header_.entries.back();
        if (field_ == "shape") {
            if (entry.shape.size() == axes_limit) {
                fail(fmt::format("shape has more than {} axes", axes_limit), name_);
            }
            entry.shape.push_back(value.natural);
        } else {
            if (offsets_ == 2) fail("data_offsets is not a pair", name_);
            (offsets_ == 0 ? entry.begin : entry.end) = value.natural;
            ++offsets_;
        }
    }

    safetensors_header& header_;
    std::string name_;
    std::string field_;
    bool in_metadata_ = false;
    int offsets_ = 0;
    std::array<bool, 3> has_{};
};

void check_entry(const input_file& file, header_entry& entry, std::uint64_t data_bytes) {
    const auto wrong = [&](const std::string& message) {
        fail_at(file, entry.name, entry.stated, message);
    };
    // An unknown dtype has the bytes that its offsets state.
    const bool known = entry.type != tensor::dtype::other;
    const auto elements = tensor::element_count(entry.shape);
    if (known ? !count_bytes(entry) : !elements) {
        wrong(fmt::format("shape {} is too large", tensor::to_string(entry.shape)));
    }
    if (entry.begin > entry.end) {
        wrong(fmt::format("data_offsets end before they begin ({}, {})", entry.begin, entry.end));
    }
    if (entry.end > data_bytes) {
        wrong(
            fmt::format("data_offsets ({}, {}) go beyond the file, which has {} bytes of data; "
                        "it may be cut short",
                        entry.begin, entry.end, data_bytes));
    }
    if (!known) {
        entry.elements = *elements;
        entry.bytes = entry.end - entry.begin;
    }
    if (entry.end - entry.begin != entry.bytes) {
        wrong(fmt::format("{} of shape {} takes {} bytes, data_offsets say {}",
                          tensor::row_of(entry.type).name, tensor::to_string(entry.shape),
                          entry.bytes, entry.end - entry.begin));
    }
}

void check_cover(const input_file& file, const safetensors_header& header,
                 std::uint64_t data_bytes) {
    std::uint64_t end = 0;
    const std::string* before = nullptr;
    for (const header_entry& entry : header.entries) {
        const std::uint64_t at = header.data_start + entry.begin;
        if (entry.begin < end) {
            fail_at(file, entry.name, at, fmt::format("overlaps the data of '{}'", *before));
        }
        if (entry.begin > end) {
            fail_at(file, entry.name, at,
                    fmt::format("{} bytes before it belong to no tensor", entry.begin - end));
        }
        end = entry.end;
        before = &entry.name;
    }
    if (end < data_bytes) {
        fail_at(
            file, {}, header.data_start + end,
            fmt::format("{} bytes after the last tensor belong to no tensor", data_bytes - end));
    }
}

// Like the reference implementation, requires that the tensors cover the data exactly: no overlap,
// no gap, nothing after the last. Unlike it, the number of F4 and F6 elements need not fill the
// last byte.
safetensors_header read_header(const shared_file& file) {
    if (file->size() < 8) {
        fail_at(*file, {}, 0,
                fmt::format("{} bytes are too short for a safetensors file", file->size()));
    }
    std::uint64_t length = 0;  // little-endian, like all machines that mx supports
    file->read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > safetensors_header_limit) {
        fail_at(
            *file, {}, 0,
            fmt::format("the header says it has {} bytes, more than the {} that safetensors allows",
                        length, safetensors_header_limit));
    }
    if (length > file->size() - 8) {
        fail_at(*file, {}, 0,
                fmt::format("the header says it has {} bytes, the file has {} more; it may be cut "
                            "short",
                            length, file->size() - 8));
    }
    std::array<std::byte, 1> first{};
    if (length > 0) file->read(8, first);
    if (first[0] != std::byte{'{'}) fail_at(*file, {}, 8, "the header does not begin with '{'");

    safetensors_header header;
    header.data_start = 8 + length;
    header_listener listener(header);
    parse_json(file, 8, length, "header", listener);

    const std::uint64_t data_bytes = file->size() - header.data_start;
    for (header_entry& entry : header.entries) check_entry(*file, entry, data_bytes);
    std::ranges::stable_sort(header.entries, {},
                             [](const header_entry& e) { return std::pair(e.begin, e.end); });
    check_cover(*file, header, data_bytes);
    return header;
}

class safetensors_reader final : public file_reader {
  public:
    safetensors_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)) {
        safetensors_header header = read_header(file_);
        metadata_ = std::move(header.metadata);
        const auto as = parse_as(options.as);
        for (header_entry& entry : header.entries) {
            begins_.push_back(header.data_start + entry.begin);
            entry.type = read_as(entry.type, as);
            entry.file = file_->path();
            tensors_.push_back(std::move(entry));
        }
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        if (!info.note.empty()) fail_at(*file_, info.name, begins_[index], info.note);
        return file_window(file_, begins_[index], info.bytes, info.name);
    }

  private:
    std::vector<std::uint64_t> begins_;
};

}  // namespace

bool safetensors_has(tensor::dtype type) {
    return type != tensor::dtype::c128 && type != tensor::dtype::other;
}

bool looks_like_safetensors(const file_probe& probe) {
    return probe.head.size() >= 9 && probe.head[8] == '{';
}

std::unique_ptr<reader> open_safetensors(shared_file file, const open_options& options) {
    return std::make_unique<safetensors_reader>(std::move(file), options);
}

}  // namespace mx::io

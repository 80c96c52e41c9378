// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mx::io {
namespace {

// A tokenizer of a million words takes some twenty MiB.
constexpr std::uint64_t gguf_header_limit = 256 << 20;
constexpr std::uint64_t metadata_limit = 16 << 20;  // bytes kept
constexpr std::uint64_t gguf_tensors_limit = 1 << 18;
constexpr std::uint64_t entries_limit = 1 << 16;
constexpr std::uint64_t key_limit = 65535;
constexpr std::uint64_t name_limit = 1024;  // ggml has 63
constexpr std::uint32_t gguf_axes_limit = 4;
// The least bytes of an entry: lengths, types and offsets of one without a name.
constexpr std::uint64_t least_entry = 13;
constexpr std::uint64_t least_tensor = 24;
// Chat templates take some ten thousand bytes.
constexpr std::uint64_t text_limit = 64 << 10;
constexpr std::uint64_t shown_elements = 4;
constexpr std::uint64_t shown_bytes = 64;
constexpr std::uint64_t kept_elements_limit = 1 << 22;
constexpr int gguf_depth_limit = 8;
constexpr std::uint64_t gguf_buffer_bytes = 64 << 10;
constexpr std::uint64_t least_buffer = 512;

// Reads a file forwards through a small buffer. Lengths are checked against the file before
// anything is allocated; reading beyond the end is base::error (input) naming the byte.
class file_cursor {
  public:
    // Nothing beyond byte `limit` is read: this bounds the time that a hostile header takes.
    file_cursor(shared_file file, std::uint64_t limit) : file_(std::move(file)), limit_(limit) {}

    std::uint64_t position() const noexcept { return position_; }
    // Bytes of the file after this position.
    std::uint64_t remaining() const noexcept { return file_->size() - position_; }
    void store_big_endian(bool big) noexcept { big_endian_ = big; }

    // The next unsigned number of `width` bytes, at most 8.
    std::uint64_t number(std::uint64_t width) {
        std::array<std::byte, 8> bytes{};
        take(std::span(bytes).first(static_cast<std::size_t>(width)));
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < width; ++i) {
            const std::size_t at = big_endian_ ? i : static_cast<std::size_t>(width) - 1 - i;
            value = value << 8 | std::to_integer<std::uint64_t>(bytes[at]);
        }
        return value;
    }
    template <class T>
    T number() {
        static_assert(std::is_unsigned_v<T>);
        return static_cast<T>(number(sizeof(T)));
    }
    // The next `length` bytes.
    std::string text(std::uint64_t length) {
        check(length);
        std::string out(static_cast<std::size_t>(length), '\0');
        take(std::as_writable_bytes(std::span(out.data(), out.size())));
        return out;
    }
    void skip(std::uint64_t length) {
        check(length);
        position_ += length;
    }

    // Throws base::error (input) with this position.
    [[noreturn]] void fail(const std::string& message, const std::string& tensor = {}) const {
        input_error(message, {file_->path(), tensor, position_});
    }

  private:
    void take(std::span<std::byte> out) {
        check(out.size());
        std::size_t done = 0;
        while (done < out.size()) {
            const bool inside =
                position_ >= buffer_begin_ && position_ - buffer_begin_ < buffer_.size();
            if (!inside) {
                // At most twice a short header, so that little is read of a remote file.
                const std::uint64_t most = std::clamp(position_, least_buffer, gguf_buffer_bytes);
                buffer_.resize(static_cast<std::size_t>(std::min(most, remaining())));
                buffer_begin_ = position_;
                file_->read(position_, buffer_);
            }
            const auto at = static_cast<std::size_t>(position_ - buffer_begin_);
            const std::size_t count = std::min(out.size() - done, buffer_.size() - at);
            std::memcpy(out.data() + done, buffer_.data() + at, count);
            position_ += count;
            done += count;
        }
    }

    void check(std::uint64_t length) const {
        if (length > remaining()) {
            fail(fmt::format("the header needs {} bytes here, the file has {}; it may be cut short",
                             length, remaining()));
        }
        if (length > limit_ - std::min(position_, limit_)) {
            fail(fmt::format("the header is longer than {} bytes, the limit of mx", limit_));
        }
    }

    shared_file file_;
    std::uint64_t limit_;
    std::uint64_t position_ = 0;
    std::uint64_t buffer_begin_ = 0;
    std::vector<std::byte> buffer_;
    bool big_endian_ = false;
};

struct gguf_value {
    std::string text;                     // in words; long texts and arrays abbreviated
    std::optional<std::uint32_t> number;  // of a UINT32
};

enum value_type : std::uint32_t { type_uint32 = 4, type_string = 8, type_array = 9, types = 13 };

// Bytes of one value by type; 0 where that depends on the value.
constexpr std::array<std::uint64_t, types> widths{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::array<std::string_view, types> type_names{
    "UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
    "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};

std::uint32_t read_type(file_cursor& at) {
    const auto type = at.number<std::uint32_t>();
    if (type >= types) at.fail(fmt::format("unknown type {} of a metadata value", type));
    return type;
}

std::int64_t extended(std::uint64_t bits, std::uint64_t width) {
    const std::uint64_t unused = 64 - 8 * width;
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::string scalar(file_cursor& at, std::uint32_t type) {
    const std::uint64_t width = widths[type];
    const std::uint64_t bits = at.number(width);
    if (type_names[type] == "BOOL") return bits != 0 ? "true" : "false";
    if (type_names[type] == "FLOAT64") return fmt::format("{}", std::bit_cast<double>(bits));
    if (type_names[type] == "FLOAT32") {
        return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    if (type_names[type].front() == 'U') return fmt::format("{}", bits);
    return fmt::format("{}", extended(bits, width));
}

double number_of(file_cursor& at, std::uint32_t type) {
    const std::uint64_t bits = at.number(widths[type]);
    const char kind = type_names[type].front();
    if (kind == 'I') return static_cast<double>(extended(bits, widths[type]));
    if (kind != 'F') return static_cast<double>(bits);
    return widths[type] == 8 ? std::bit_cast<double>(bits)
                             : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

// A text of any length, of which `limit` bytes are kept.
std::string shortened(file_cursor& at, std::uint64_t limit) {
    const auto length = at.number<std::uint64_t>();
    if (length <= limit) return at.text(length);
    at.skip(length);
    return fmt::format("({} bytes of text)", length);
}

// A length of eight bytes and that many bytes, at most `limit`; `what` is named in errors.
std::string read_text(file_cursor& at, std::uint64_t limit, const char* what) {
    const auto length = at.number<std::uint64_t>();
    if (length > limit) {
        at.fail(fmt::format("{} of {} bytes; at most {} are allowed", what, length, limit));
    }
    return at.text(length);
}

struct array_kind {
    std::uint32_t type = 0;
    std::uint64_t count = 0;

    std::string_view name() const { return type_names[type]; }
};

array_kind read_array_kind(file_cursor& at) {
    const std::uint32_t type = read_type(at);
    const array_kind kind{type, at.number<std::uint64_t>()};
    // The least bytes of an element: a string has its length, an array its type and count.
    const std::uint64_t least = type == type_string ? 8 : type == type_array ? 12 : widths[type];
    if (kind.count > at.remaining() / least) {
        at.fail(fmt::format("an array of {} {} does not fit into the file; it may be cut short",
                            kind.count, kind.name()));
    }
    return kind;
}

std::string array(file_cursor& at, int depth) {
    if (depth == gguf_depth_limit) {
        at.fail(fmt::format("metadata arrays are nested more than {} deep", gguf_depth_limit));
    }
    const array_kind kind = read_array_kind(at);
    const auto [type, count] = kind;
    std::string shown;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i >= shown_elements && widths[type] != 0) {
            at.skip((count - i) * widths[type]);
            break;
        }
        std::string element = type == type_array    ? array(at, depth + 1)
                              : type == type_string ? shortened(at, shown_bytes)
                                                    : scalar(at, type);
        if (i < shown_elements) shown += (i == 0 ? "" : ", ") + element;
    }
    if (count > shown_elements) shown += ", ...";
    return fmt::format("[{}] ({} {})", shown, count, kind.name());
}

gguf_array whole_array(file_cursor& at, const std::string& key) {
    const array_kind kind =
        read_type(at) == type_array ? read_array_kind(at) : array_kind{type_array, 0};
    if (kind.type == type_array || kind.count > kept_elements_limit) {
        at.fail(fmt::format("'{}' is not an array of at most {} texts or numbers", key,
                            kept_elements_limit));
    }
    gguf_array kept;
    for (std::uint64_t i = 0; i < kind.count; ++i) {
        if (kind.type == type_string) {
            kept.texts.push_back(read_text(at, text_limit, "a text of an array"));
        } else {
            kept.numbers.push_back(number_of(at, kind.type));
        }
    }
    return kept;
}

// Reads the value at the cursor, its type first.
gguf_value read_value(file_cursor& at) {
    const std::uint32_t type = read_type(at);
    if (type == type_uint32) {
        const auto number = at.number<std::uint32_t>();
        return {fmt::format("{}", number), number};
    }
    if (type == type_string) return {shortened(at, text_limit), {}};
    return {type == type_array ? array(at, 0) : scalar(at, type), {}};
}

// Versions count up from 1: one with an empty low half has the other byte order.
void read_version(file_cursor& at, gguf_header& header) {
    at.skip(4);  // "GGUF", in this order always
    header.version = at.number<std::uint32_t>();
    if (header.version != 0 && (header.version & 0xffffu) == 0) {
        header.big_endian = true;
        header.version = header.version >> 24 | (header.version >> 8 & 0xff00u);
        at.store_big_endian(true);
    }
    if (header.version != 2 && header.version != 3) {
        at.fail(fmt::format("GGUF version {} is not read, only 2 and 3; {}", header.version,
                            header.version > 3 ? "a newer mx may read it"
                                               : "convert the model again with a current "
                                                 "llama.cpp"));
    }
}

void read_metadata(file_cursor& at, std::uint64_t count, std::span<const std::string_view> whole,
                   gguf_header& header) {
    if (count > std::min(entries_limit, at.remaining() / least_entry)) {
        at.fail(fmt::format("the header states {} metadata entries, which is impossible", count));
    }
    header.entries = count;
    header.metadata_begin = at.position();
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::string key = read_text(at, key_limit, "a metadata key");
        if (std::ranges::find(whole, key) != whole.end()) {
            if (!header.arrays.emplace(key, whole_array(at, key)).second) {
                at.fail(fmt::format("two metadata entries named '{}'", key));
            }
            continue;
        }
        gguf_value value = read_value(at);
        if (key == "general.alignment") {
            if (!value.number || *value.number == 0 || (*value.number & (*value.number - 1)) != 0) {
                at.fail(fmt::format("general.alignment is '{}', not a power of two", value.text));
            }
            header.alignment = *value.number;
        }
        if (key == "general.file_type" && value.number) header.file_type_at = at.position() - 4;
        kept += key.size() + value.text.size();
        if (kept > metadata_limit) {
            at.fail(fmt::format("more than {} bytes of metadata, the limit of mx", metadata_limit));
        }
        const auto [entry, fresh] = header.metadata.emplace(std::move(key), std::move(value.text));
        if (!fresh) at.fail(fmt::format("two metadata entries named '{}'", entry->first));
    }
    header.metadata_end = at.position();
}

gguf_tensor read_tensor(file_cursor& at, std::uint64_t alignment) {
    gguf_tensor tensor;
    tensor.name = read_text(at, name_limit, "a tensor's name");
    const auto axes = at.number<std::uint32_t>();
    if (axes > gguf_axes_limit) {
        at.fail(fmt::format("{} axes; GGUF has at most {}", axes, gguf_axes_limit), tensor.name);
    }
    for (std::uint32_t k = 0; k < axes; ++k) tensor.shape.push_back(at.number<std::uint64_t>());
    const std::uint64_t row = axes == 0 ? 1 : tensor.shape.front();
    std::ranges::reverse(tensor.shape);
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
    std::ranges::sort(order, {}, [](const gguf_tensor* t) { return std::tie(t->begin, t->name); });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const gguf_tensor& before = *order[i - 1];
        if (before.begin + before.bytes > order[i]->begin) {
            input_error(fmt::format("overlaps the data of '{}'", before.name),
                        {file.path(), order[i]->name, order[i]->begin});
        }
    }
}

}  // namespace

gguf_header read_gguf_header(const shared_file& file, std::span<const std::string_view> whole) {
    gguf_header header;
    file_cursor at(file, gguf_header_limit);
    read_version(at, header);
    const auto tensors = at.number<std::uint64_t>();
    const auto entries = at.number<std::uint64_t>();
    read_metadata(at, entries, whole, header);
    const std::uint64_t alignment = header.alignment;
    if (tensors > std::min(gguf_tensors_limit, at.remaining() / least_tensor)) {
        at.fail(fmt::format("the header states {} tensors, which is impossible", tensors));
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

// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "libmx/io/dtype_names.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/strided.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

// Structured types can have long headers; numpy itself stops at 10,000 bytes by default.
constexpr std::uint64_t npy_header_limit = 1 << 20;

struct npy_type {
    std::string_view code;  ///< kind and bytes, without the byte order
    dtype type;
    std::size_t number;  ///< bytes of one number in it (half for complex)
};

constexpr std::array npy_types{
    npy_type{"b1", dtype::boolean, 1},
    npy_type{"?", dtype::boolean, 1},
    npy_type{"i1", dtype::i8, 1},
    npy_type{"u1", dtype::u8, 1},
    npy_type{"i2", dtype::i16, 2},
    npy_type{"u2", dtype::u16, 2},
    npy_type{"i4", dtype::i32, 4},
    npy_type{"u4", dtype::u32, 4},
    npy_type{"i8", dtype::i64, 8},
    npy_type{"u8", dtype::u64, 8},
    npy_type{"f2", dtype::f16, 2},
    npy_type{"f4", dtype::f32, 4},
    npy_type{"f8", dtype::f64, 8},
    npy_type{"c8", dtype::c64, 4},
    npy_type{"c16", dtype::c128, 8},
    // ml_dtypes: bfloat16 as bare 2-byte elements, float8_e5m2 as a 1-byte float.
    npy_type{"V2", dtype::bf16, 2},
    npy_type{"f1", dtype::f8_e5m2, 1},
};

// Written as bare bytes, which is what ml_dtypes does.
constexpr std::string_view read_only_code = "f1";

void set_type(npy_layout& layout, std::string_view descr, std::optional<dtype> as) {
    if (descr.empty()) {
        layout.note = "records are not numbers";
        return;
    }
    const bool has_order = std::string_view("<>|=").find(descr.front()) != std::string_view::npos;
    const char order = has_order ? descr.front() : '|';
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    const auto found = std::ranges::find(npy_types, code, &npy_type::code);
    const bool bare = code.starts_with('V');
    if (bare && as && order != '>' && code == fmt::format("V{}", tensor::row_of(*as).bits / 8)) {
        layout.type = *as;
    } else if (found != npy_types.end() && !(bare && order == '>')) {
        layout.type = read_as(found->type, as);
        if (order == '>' && found->number > 1) layout.swap_width = found->number;
    } else if (code == "V1") {
        layout.note = "raw bytes; give their dtype with --as (f8_e4m3, f8_e8m0, ...)";
    } else if (code.starts_with('O')) {
        layout.note = "Python objects are not numbers, and are never executed";
    } else if (code.starts_with('S') || code.starts_with('U')) {
        layout.note = "text is not numbers";
    } else {
        layout.note = fmt::format("type '{}' cannot be read as numbers", descr);
    }
}

// A strict parser for the one Python literal that headers contain.
constexpr int npy_depth_limit = 16;

class literal_parser {
  public:
    explicit literal_parser(std::string_view text) : text_(text) {}

    bool dictionary(npy_dictionary& out) {
        bool has_descr = false, has_order = false, has_shape = false;
        if (!take('{')) return wrong("'{' is missing");
        while (!take('}')) {
            std::string key;
            if (!string(key)) return wrong("a key in quotes is missing");
            if (!take(':')) return wrong("':' is missing");
            bool* seen = key == "descr"           ? &has_descr
                         : key == "fortran_order" ? &has_order
                         : key == "shape"         ? &has_shape
                                                  : nullptr;
            if (seen == nullptr) return wrong("unknown key '" + key + "'");
            if (*seen) return wrong("key '" + key + "' comes twice");
            *seen = true;
            const bool fine = seen == &has_descr   ? descr(out.descr)
                              : seen == &has_order ? truth(out.fortran)
                                                   : extents(out.shape);
            if (!fine) return wrong("the value of '" + key + "' is not as expected");
            if (!take(',') && peek() != '}') return wrong("',' or '}' is missing");
        }
        if (!has_descr || !has_order || !has_shape) {
            return wrong("descr, fortran_order or shape is missing");
        }
        skip_blanks();
        return at_ == text_.size() || wrong("something follows the dictionary");
    }

    const std::string& problem() const { return problem_; }
    std::size_t at() const { return at_; }

  private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\t' || text_[at_] == '\r')) {
            ++at_;
        }
    }
    char peek() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    bool wrong(const std::string& message) {
        if (problem_.empty()) problem_ = message;
        return false;
    }
    bool word(std::string_view expected) {
        skip_blanks();
        if (!text_.substr(at_).starts_with(expected)) return false;
        at_ += expected.size();
        return true;
    }

    // Backslashes only occur in field names of structured types, where the text is not used.
    bool string(std::string& out) {
        const char quote = peek();
        if (quote != '\'' && quote != '"') return false;
        for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
            if (text_[at_] == '\\') ++at_;
            if (at_ < text_.size()) out += text_[at_];
        }
        return take_quote(quote);
    }
    bool take_quote(char quote) {
        if (at_ >= text_.size() || text_[at_] != quote) return wrong("a string does not end");
        ++at_;
        return true;
    }

    bool natural(std::uint64_t& out) {
        skip_blanks();
        const std::size_t begin = at_;
        out = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
            if (out > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
                return wrong("a number does not fit into 64 bits");
            }
            out = out * 10 + digit;
        }
        if (at_ == begin) return false;
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // long integers of Python 2
        return true;
    }

    bool truth(bool& out) {
        out = word("True");
        return out || word("False");
    }

    bool extents(tensor::shape& out) {
        if (!take('(')) return false;
        bool comma = true;
        while (!take(')')) {
            std::uint64_t extent = 0;
            if (!comma || !natural(extent)) return false;
            if (out.size() == axes_limit) return wrong("shape has more than 64 axes");
            out.push_back(extent);
            comma = take(',');
        }
        // (5) is a number in parentheses, (5,) a tuple.
        return out.size() != 1 || comma;
    }

    bool descr(std::string& out) {
        if (peek() == '\'' || peek() == '"') return string(out);
        return (peek() == '[' || peek() == '(') && skip_value(0);
    }

    // Strings, numbers, tuples and lists of structured types, checked but not kept.
    bool skip_value(int depth) {
        if (depth == npy_depth_limit) return wrong("descr is nested too deep");
        std::string ignored;
        std::uint64_t number = 0;
        const char c = peek();
        if (c == '\'' || c == '"') return string(ignored);
        if (c >= '0' && c <= '9') return natural(number);
        if (c != '[' && c != '(') return false;
        ++at_;
        const char end = c == '[' ? ']' : ')';
        bool comma = true;
        while (!take(end)) {
            if (!comma || !skip_value(depth + 1)) return false;
            comma = take(',');
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string problem_;
};

bool order_matters(const tensor::shape& shape) {
    return std::ranges::count_if(shape, [](std::uint64_t n) { return n > 1; }) > 1;
}

}  // namespace

std::optional<npy_dictionary> parse_npy_dictionary(std::string_view text, std::string& problem,
                                                   std::size_t& at) {
    npy_dictionary out;
    literal_parser parser(text);
    if (parser.dictionary(out)) return out;
    problem = parser.problem();
    at = parser.at();
    return std::nullopt;
}

std::string npy_descr(dtype type) {
    for (const npy_type& row : npy_types) {
        if (row.type != type || row.code == read_only_code) continue;
        return fmt::format("{}{}", row.number == 1 ? '|' : '<', row.code);
    }
    return tensor::row_of(type).bits == 8 && type != dtype::other ? "|V1" : "";
}

npy_layout read_npy_header(const byte_source& source, std::uint64_t size, std::optional<dtype> as,
                           const std::string& file, const std::string& name) {
    const auto fail = [&](std::uint64_t offset, const std::string& message) {
        input_error(message, {file, name, offset});
    };
    std::array<std::byte, 12> start{};
    if (size < 10) fail(0, fmt::format("{} bytes are too short for a .npy array", size));
    source.read(0, std::span(start).first(
                       static_cast<std::size_t>(std::min<std::uint64_t>(size, start.size()))));
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(start[i]); };
    constexpr std::string_view magic = "\x93NUMPY";
    for (std::size_t i = 0; i < magic.size(); ++i) {
        if (byte(i) != static_cast<unsigned char>(magic[i])) fail(0, "is not a .npy array");
    }
    const std::uint32_t version = byte(6);
    if (version < 1 || version > 3) {
        fail(6, fmt::format("version {}.{} is unknown; 1 to 3 are read", version, byte(7)));
    }
    const std::uint64_t prefix = version == 1 ? 10 : 12;
    std::uint64_t length = byte(8) | byte(9) << 8;
    if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
    if (size < prefix || length > size - prefix) {
        fail(8, fmt::format("the header says it has {} bytes, which go beyond the end; the array "
                            "may be cut short",
                            length));
    }
    if (length > npy_header_limit) fail(8, fmt::format("a header of {} bytes is too long", length));
    std::string text(static_cast<std::size_t>(length), '\0');
    source.read(prefix, std::as_writable_bytes(std::span(text.data(), text.size())));

    std::string problem;
    std::size_t at = 0;
    const auto dictionary = parse_npy_dictionary(text, problem, at);
    if (!dictionary) fail(prefix + at, "malformed header: " + problem);

    npy_layout layout;
    layout.name = name;
    layout.file = file;
    layout.type = dtype::other;
    layout.shape = dictionary->shape;
    layout.data_start = prefix + length;
    layout.fortran = dictionary->fortran && order_matters(layout.shape);
    set_type(layout, dictionary->descr, as);
    const std::uint64_t held = size - layout.data_start;
    if (!count_bytes(layout)) {
        fail(prefix, fmt::format("shape {} is too large", tensor::to_string(layout.shape)));
    }
    if (!layout.note.empty()) layout.bytes = held;
    if (layout.bytes > held) {
        fail(size, fmt::format("the array of {} bytes ends {} bytes early; it may be cut short",
                               layout.bytes, layout.bytes - held));
    }
    if (layout.bytes < held) {
        fail(layout.data_start + layout.bytes,
             fmt::format("{} bytes follow the array; only one array per file is read",
                         held - layout.bytes));
    }
    return layout;
}

std::unique_ptr<byte_source> npy_numbers(shared_source source, const npy_layout& layout) {
    if (!layout.note.empty()) input_error(layout.note, {layout.file, layout.name, {}});
    std::unique_ptr<byte_source> data = source_window(std::move(source), layout.data_start);
    if (layout.swap_width != 0) data = byte_swapped(std::move(data), layout.swap_width);
    if (layout.fortran) {
        const auto width = static_cast<std::size_t>(tensor::row_of(layout.type).bits / 8);
        data = from_fortran_order(std::move(data), layout.shape, width);
    }
    return data;
}

}  // namespace mx::io

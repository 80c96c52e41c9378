// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <istream>
#include <nlohmann/json.hpp>
#include <streambuf>

namespace mx::io {
namespace {

constexpr std::size_t json_depth_limit = 16;

class positioned_buffer : public std::streambuf {
  public:
    virtual std::uint64_t position() const = 0;  // in the file
};

// A byte range of the file as a stream, a small buffer at a time.
class range_buffer final : public positioned_buffer {
  public:
    range_buffer(const input_file& file, std::uint64_t offset, std::uint64_t length)
        : file_(file), next_(offset), end_(offset + length) {}

    std::uint64_t position() const override {
        return next_ - static_cast<std::uint64_t>(egptr() - gptr());
    }

  protected:
    int_type underflow() override {
        if (next_ == end_) return traits_type::eof();
        const std::uint64_t left = end_ - next_;
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer_.size()));
        file_.read(next_, std::as_writable_bytes(std::span(buffer_.data(), count)));
        next_ += count;
        setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
        return traits_type::to_int_type(buffer_[0]);
    }

  private:
    const input_file& file_;
    std::uint64_t next_;
    std::uint64_t end_;
    std::array<char, 32768> buffer_{};
};

// The numbers that Python's json writes and reads and JSON does not have. Outside of texts, each
// becomes a text that begins with a character that no text has.
constexpr std::array<std::string_view, 3> python_numbers{"NaN", "Infinity", "-Infinity"};
constexpr std::string_view number_mark = "\xef\xbf\xbf";  // U+FFFF

bool is_marked(std::string_view text) {
    return text.starts_with(number_mark) &&
           std::ranges::find(python_numbers, text.substr(number_mark.size())) !=
               python_numbers.end();
}

// A whole file as a stream, in which those numbers are marked.
class python_buffer final : public positioned_buffer {
  public:
    explicit python_buffer(const input_file& file)
        : stored_(static_cast<std::size_t>(file.size()), '\0') {
        file.read(0, std::as_writable_bytes(std::span(stored_)));
        bool in_text = false;
        for (std::size_t at = 0; at < stored_.size();) {
            const std::string_view rest = std::string_view(stored_).substr(at);
            const auto number = std::ranges::find_if(
                python_numbers, [&](std::string_view n) { return rest.starts_with(n); });
            if (!in_text && number != python_numbers.end()) {
                marked_ += fmt::format("\"{}{}\"", number_mark, *number);
                at += number->size();
                continue;
            }
            const std::size_t count = in_text && rest.front() == '\\' && rest.size() > 1 ? 2 : 1;
            if (rest.front() == '"') in_text = !in_text;
            marked_ += rest.substr(0, count);
            at += count;
        }
        setg(marked_.data(), marked_.data(), marked_.data() + marked_.size());
    }

    // Exact up to the first such number.
    std::uint64_t position() const override {
        return std::min<std::uint64_t>(static_cast<std::uint64_t>(gptr() - eback()),
                                       stored_.size());
    }

  private:
    std::string stored_, marked_;
};

}  // namespace

// Translates the parser's events; the parser itself keeps one bit per nesting level.
class json_events {
  public:
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    static void parse(const shared_file& file, positioned_buffer& from, std::string_view what,
                      json_listener& listener) {
        std::istream stream(&from);
        // Without this an error of the file would end the stream silently.
        stream.exceptions(std::ios::badbit);
        listener.stream_ = &from;
        listener.file_ = file.get();
        listener.keys_.clear();
        json_events events(listener, what);
        nlohmann::json::sax_parse(stream, &events);
    }

    json_events(json_listener& listener, std::string_view what)
        : listener_(listener), what_(what) {}

    bool null() { return give({}); }
    bool boolean(bool value) {
        return give({json_scalar::type::boolean, 0, value ? "true" : "false"});
    }
    bool number_integer(number_integer_t value) {
        return give({json_scalar::type::other_number, 0, std::to_string(value)});
    }
    bool number_unsigned(number_unsigned_t value) {
        return give({json_scalar::type::natural, value, std::to_string(value)});
    }
    bool number_float(number_float_t, const string_t& spelled) {
        return give({json_scalar::type::other_number, 0, spelled});
    }
    bool string(string_t& value) {
        if (is_marked(value)) {
            return give({json_scalar::type::other_number, 0, value.substr(number_mark.size())});
        }
        return give({json_scalar::type::text, 0, std::move(value)});
    }
    bool binary(binary_t&) { return false; }
    bool start_object(std::size_t) { return enter(true); }
    bool end_object() { return leave(); }
    bool start_array(std::size_t) { return enter(false); }
    bool end_array() { return leave(); }
    bool key(string_t& name) {
        if (is_marked(name)) listener_.fail(fmt::format("the {} has a number as a key", what_));
        if (!listener_.keys_.back().insert(name).second) {
            listener_.fail(fmt::format("the {} has the key '{}' twice", what_, name));
        }
        listener_.key(name);
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& problem) {
        // The library's text is "[json.exception.parse_error.101] parse error at line 1, column 7:
        // syntax error while ...": only what follows the position helps.
        std::string text = problem.what();
        const std::size_t column = text.find("column ");
        const std::size_t start =
            column == std::string::npos ? text.find("] ") + 2 : text.find(": ", column) + 2;
        listener_.fail(fmt::format("the {} is not valid JSON: {}", what_, text.substr(start)));
    }

  private:
    bool give(const json_scalar& value) {
        listener_.scalar(value);
        return true;
    }
    bool enter(bool object) {
        if (listener_.keys_.size() == json_depth_limit) {
            listener_.fail(
                fmt::format("the {} is nested more than {} deep", what_, json_depth_limit));
        }
        listener_.keys_.emplace_back();
        listener_.open(object);
        return true;
    }
    bool leave() {
        listener_.close();
        listener_.keys_.pop_back();
        return true;
    }

    json_listener& listener_;
    std::string_view what_;
};

std::uint64_t json_listener::position() const {
    return static_cast<const positioned_buffer*>(stream_)->position();
}

void json_listener::fail(const std::string& message, const std::string& tensor) const {
    input_error(message, {file_->path(), tensor, position()});
}

void parse_json(const shared_file& file, std::uint64_t offset, std::uint64_t length,
                std::string_view what, json_listener& listener) {
    file->expect(offset, length);
    range_buffer buffer(*file, offset, length);
    json_events::parse(file, buffer, what, listener);
}

void parse_config(const shared_file& file, json_listener& listener) {
    if (file->size() > largest_config) {
        input_error(fmt::format("has {} bytes; a configuration has at most {}", file->size(),
                                largest_config),
                    {file->path(), {}, {}});
    }
    python_buffer buffer(*file);
    json_events::parse(file, buffer, "configuration", listener);
}

}  // namespace mx::io

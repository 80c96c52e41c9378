// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <utility>
#include <vector>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"

namespace mx::report {
namespace {

constexpr std::size_t depth_limit = 16;
constexpr std::size_t text_limit = std::size_t{1} << 20;
constexpr std::size_t value_limit = std::size_t{1} << 25;

// The newest supported version of a schema.
int newest_schema(std::string_view kind) { return kind == "report" ? 3 : kind == "show" ? 2 : 1; }

// The source as a stream that counts the bytes the parser has read.
class source_buffer final : public std::streambuf {
  public:
    explicit source_buffer(const byte_source& source) : source_(source), buffer_(65536) {}

    std::uint64_t position() const { return end_ - static_cast<std::uint64_t>(egptr() - gptr()); }

  protected:
    int_type underflow() override {
        const std::size_t count = source_(buffer_);
        if (count == 0) return traits_type::eof();
        end_ += count;
        setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
        return traits_type::to_int_type(buffer_[0]);
    }

  private:
    const byte_source& source_;
    std::vector<char> buffer_;
    std::uint64_t end_ = 0;  // bytes of the document up to the end of the buffer
};

// An object or list that is being parsed.
struct container {
    record members;
    list items;
    bool object = false;
    std::string name;      // of the current member, in an object
    base::text_set names;  // of all its members
};

// Builds the document from the parser's events. `results` is never stored as a value: its elements
// are added to the list one by one.
class builder {
  public:
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    builder(const source_buffer& at, const std::string& path, const read_options& options)
        : at_(at), path_(path), options_(options) {}

    bool null() { return scalar({}); }
    bool boolean(bool v) { return scalar(v); }
    bool number_integer(number_integer_t v) { return scalar(static_cast<std::int64_t>(v)); }
    bool number_unsigned(number_unsigned_t v) {
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        if (v > static_cast<number_unsigned_t>(most)) return scalar(static_cast<double>(v));
        return scalar(static_cast<std::int64_t>(v));
    }
    bool number_float(number_float_t v, const string_t&) { return scalar(static_cast<double>(v)); }
    bool string(string_t& v) {
        check_length(v);
        return scalar(std::move(v));
    }
    bool binary(binary_t&) { return false; }

    bool start_object(std::size_t) { return open(true); }
    bool start_array(std::size_t) { return open(false); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(string_t& name) {
        check_length(name);
        container& into = open_.back();
        if (!into.names.insert(name).second) {
            fail(fmt::format("the member '{}' is duplicated", name));
        }
        into.name = std::move(name);
        // Members of a result that were not requested are not stored.
        if (in_result()) dropped_ = options_.keep && !options_.keep(into.name);
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& problem) {
        // "[json.exception.parse_error.101] parse error at line 1, column 7: syntax error ...":
        // keeps the part after the position.
        const std::string text = problem.what();
        if (open_.empty() && !done_) {
            refuse(fmt::format("is not JSON: give {}", options_.expected));
        }
        const std::size_t column = text.find("column ");
        const std::size_t start =
            column == std::string::npos ? text.find("] ") + 2 : text.find(": ", column) + 2;
        fail("is not valid JSON: " + text.substr(start));
    }

    record finish_object() {
        if (!done_ || after_) fail("is not an object of scalar members");
        return std::move(document_.head);
    }

    results_file finish() {
        if (!done_) fail("has no results of mx");
        const value* schema = report::find(document_.head, "schema");
        if (schema == nullptr) schema = report::find(document_.tail, "schema");
        const auto* text = schema == nullptr ? nullptr : std::get_if<std::string>(schema);
        if (text == nullptr) refuse("has no \"schema\": give results that mx wrote with --json");
        const std::size_t slash = text->rfind('/');
        const int number =
            slash == std::string::npos ? 0 : base::parsed<int>(text->substr(slash + 1)).value_or(0);
        if (!text->starts_with("mx.") || number < 1) {
            refuse(
                fmt::format("the schema '{}' is none of mx: give results that mx wrote with "
                            "--json",
                            *text));
        }
        document_.kind = text->substr(3, slash - 3);
        if (const int newest = newest_schema(document_.kind); number > newest) {
            refuse(
                fmt::format("the schema '{}' is newer than this mx, which reads up to /{}: use "
                            "the mx that wrote it",
                            *text, newest));
        }
        if (!after_) refuse("has no \"results\": give results that mx wrote with --json");
        return std::move(document_);
    }

  private:
    [[noreturn]] void fail(const std::string& message) const {
        throw base::error(base::error_kind::input, message, {path_, {}, at_.position()});
    }
    [[noreturn]] void refuse(const std::string& message) const {
        throw base::error(base::error_kind::input, message, {path_, {}, {}});
    }
    void check_length(const std::string& s) const {
        if (s.size() > text_limit) fail("a text is longer than 1 MiB");
    }
    // The nesting is document {, "results" [, result {.
    bool in_results() const { return open_.size() == 2 && results_; }
    bool in_result() const { return open_.size() == 3 && results_; }

    bool open(bool object) {
        if (open_.size() == depth_limit) {
            fail(fmt::format("is nested more than {} deep", depth_limit));
        }
        if (open_.empty() && !object) fail("is a list, not results of mx");
        if (open_.size() == 1 && open_.back().name == "results") {
            if (object) fail("\"results\" is not a list");
            results_ = true;
        } else if (in_results() && !object) {
            fail("an element of \"results\" is not an object");
        }
        open_.emplace_back();
        open_.back().object = object;
        if (in_result()) open_.back().members.reserve(last_members_);
        return true;
    }

    bool close() {
        container closed = std::move(open_.back());
        open_.pop_back();
        if (open_.empty()) {
            done_ = true;
        } else if (results_ && open_.size() == 1) {
            results_ = false;
            after_ = true;
        } else if (in_results()) {
            last_members_ = closed.members.size();
            document_.results.push_back(closed.members);
        } else if (closed.object) {
            give(std::move(closed.members));
        } else {
            give(std::move(closed.items));
        }
        return true;
    }

    bool scalar(value v) {
        if (open_.empty()) fail("is one value, not results of mx");
        if (open_.size() == 1 && open_.back().name == "results") fail("\"results\" is not a list");
        if (in_results()) fail("an element of \"results\" is not an object");
        give(std::move(v));
        return true;
    }

    // Stores a finished value in its parent.
    void give(value v) {
        const bool inside = results_;
        if (inside && dropped_) return;
        // A list of small numbers needs many times the memory of its text.
        if (!in_result() && ++values_ > value_limit) {
            fail(fmt::format("has more than {} nested values: write it without --histograms",
                             value_limit));
        }
        container& into = open_.back();
        if (open_.size() == 1) {
            record& members = after_ ? document_.tail : document_.head;
            members.emplace_back(std::move(into.name), std::move(v));
        } else if (into.object) {
            into.members.emplace_back(std::move(into.name), std::move(v));
        } else {
            into.items.push_back(std::move(v));
        }
    }

    const source_buffer& at_;
    const std::string& path_;
    const read_options& options_;
    results_file document_;
    std::vector<container> open_;
    std::size_t values_ = 0;
    std::size_t last_members_ = 0;
    bool results_ = false;  // inside "results"
    bool dropped_ = false;  // the current member of a result is not kept
    bool after_ = false;    // "results" is complete
    bool done_ = false;
};

}  // namespace

namespace {

template <typename Finish>
auto parsed(const byte_source& source, const std::string& path, const read_options& options,
            Finish finish) {
    source_buffer buffer(source);
    std::istream stream(&buffer);
    // Otherwise an error of the source would end the stream silently.
    stream.exceptions(std::ios::badbit);
    builder events(buffer, path, options);
    nlohmann::json::sax_parse(stream, &events);
    return finish(events);
}

}  // namespace

results_file read_results(const byte_source& source, const std::string& path,
                          const read_options& options) {
    return parsed(source, path, options, [](builder& events) { return events.finish(); });
}

record read_object(const byte_source& source, const std::string& path) {
    const read_options everything;
    return parsed(source, path, everything, [](builder& e) { return e.finish_object(); });
}

results_file read_results(std::string_view text, const std::string& path,
                          const read_options& options) {
    const byte_source source = [rest = text](std::span<char> out) mutable {
        const std::size_t count = std::min(rest.size(), out.size());
        std::copy_n(rest.begin(), count, out.begin());
        rest.remove_prefix(count);
        return count;
    };
    return read_results(source, path, options);
}

}  // namespace mx::report

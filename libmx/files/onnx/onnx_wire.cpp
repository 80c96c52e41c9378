// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/onnx/onnx_wire.hpp"

#include <fmt/format.h>

#include <utility>

#include "libmx/base/status.hpp"

#if defined(MX_HAS_PROTOBUF)

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>

namespace mx::io {

namespace pb = google::protobuf::io;

// Returns pieces of a range of the file; skipping reads nothing. protobuf may be built without
// exceptions, so a failed read is stored in `failure`.
class range_stream final : public pb::ZeroCopyInputStream {
  public:
    range_stream(const input_file& file, std::uint64_t begin, std::uint64_t end)
        : file_(file), begin_(begin), at_(begin), end_(end) {}

    bool Next(const void** data, int* size) override {
        const std::size_t count =
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), end_ - at_));
        if (count == 0 || failure) return false;
        try {
            file_.read(at_, std::as_writable_bytes(std::span(buffer_.data(), count)));
        } catch (...) {
            failure = std::current_exception();
            return false;
        }
        at_ += count;
        *data = buffer_.data();
        *size = static_cast<int>(count);
        return true;
    }
    void BackUp(int count) override { at_ -= static_cast<std::uint64_t>(count); }
    bool Skip(int count) override {
        const std::uint64_t left = end_ - at_;
        at_ += std::min(left, static_cast<std::uint64_t>(count));
        return left >= static_cast<std::uint64_t>(count);
    }
    std::int64_t ByteCount() const override { return static_cast<std::int64_t>(at_ - begin_); }

    std::exception_ptr failure;

  private:
    const input_file& file_;
    std::uint64_t begin_;
    std::uint64_t at_;
    std::uint64_t end_;
    std::array<char, 16 << 10> buffer_{};
};

namespace {

constexpr int tag_type_bits = 3;
enum wire_type : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

}  // namespace

struct wire_reader::stream {
    struct level {
        std::uint64_t end;
        pb::CodedInputStream::Limit limit;
    };

    stream(const input_file& file, std::uint64_t begin, std::uint64_t end)
        : range(file, begin, end), coded(&range), levels{{end, 0}} {}

    range_stream range;
    pb::CodedInputStream coded;
    std::vector<level> levels;  ///< the messages around this place, the innermost last
};

wire_reader::wire_reader(shared_file file, std::uint64_t begin, std::uint64_t end)
    : file_(std::move(file)), start_(begin) {
    if (end - begin > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
        input_error(
            "is larger than the 2 GiB of a protobuf message; keep its weights as external data",
            {file_->path(), {}, {}});
    }
    stream_ = std::make_unique<stream>(*file_, begin, end);
}

std::uint64_t wire_reader::position() const {
    return start_ + static_cast<std::uint64_t>(stream_->coded.CurrentPosition());
}

void wire_reader::fail(const std::string& message, const std::string& tensor) const {
    if (stream_->range.failure) std::rethrow_exception(stream_->range.failure);
    input_error(message, {file_->path(), tensor, position()});
}

void wire_reader::skip_to(std::uint64_t place) {
    if (!stream_->coded.Skip(static_cast<int>(place - position()))) fail("the message ends early");
}

bool wire_reader::next() {
    pb::CodedInputStream& coded = stream_->coded;
    if (is_bytes_) skip_to(begin_ + size_);
    is_bytes_ = false;
    size_ = 0;
    const std::uint64_t end = stream_->levels.back().end;
    if (position() == end) return false;
    const std::uint32_t tag = coded.ReadTag();
    field_ = tag >> tag_type_bits;
    bool fine = field_ != 0;
    switch (tag & ((1u << tag_type_bits) - 1)) {
        case varint:
            fine = fine && coded.ReadVarint64(&value_);
            break;
        case fixed64:
            size_ = 8;
            fine = fine && coded.ReadLittleEndian64(&value_);
            break;
        case fixed32: {
            std::uint32_t value = 0;
            size_ = 4;
            fine = fine && coded.ReadLittleEndian32(&value);
            value_ = value;
            break;
        }
        case bytes: {
            std::uint32_t length = 0;
            fine = fine && coded.ReadVarint32(&length) && length <= end - position();
            is_bytes_ = fine;
            begin_ = position();
            size_ = length;
            break;
        }
        default:
            fine = false;
    }
    if (!fine || position() > end) {
        is_bytes_ = false;
        fail("is not a valid ONNX file: a field is damaged or cut short");
    }
    return true;
}

std::string wire_reader::text(std::uint64_t limit) {
    if (!is_bytes_) fail(fmt::format("field {} is not a text", field_));
    if (size_ > limit) {
        fail(fmt::format("a text of {} bytes; at most {} are allowed", size_, limit));
    }
    std::string out;
    if (!stream_->coded.ReadString(&out, static_cast<int>(size_))) fail("a text ends early");
    return out;
}

void wire_reader::enter() {
    if (!is_bytes_) fail(fmt::format("field {} is not a message", field_));
    stream_->levels.push_back({begin_ + size_, stream_->coded.PushLimit(static_cast<int>(size_))});
    is_bytes_ = false;
}

void wire_reader::leave() {
    const stream::level inner = stream_->levels.back();
    skip_to(inner.end);
    stream_->coded.PopLimit(inner.limit);
    stream_->levels.pop_back();
    is_bytes_ = false;
}

bool wire_reader::packed_varint(std::uint64_t& value) {
    if (position() == stream_->levels.back().end) return false;
    if (!stream_->coded.ReadVarint64(&value)) fail("packed numbers end early");
    return true;
}

std::string protobuf_version() { return MX_PROTOBUF_VERSION; }

}  // namespace mx::io

#else

namespace mx::io {

struct wire_reader::stream {};

wire_reader::wire_reader(shared_file file, std::uint64_t, std::uint64_t)
    : file_(std::move(file)), start_(0) {
    throw base::error(base::error_kind::unavailable,
                      "looks like an ONNX model, which this build of mx does not read; install "
                      "libprotobuf-dev (Debian, Ubuntu) and build mx again",
                      {file_->path(), {}, {}});
}

// Never called: no object can exist.
std::uint64_t wire_reader::position() const { return start_; }
void wire_reader::fail(const std::string& message, const std::string& tensor) const {
    input_error(message, {file_->path(), tensor, position()});
}
void wire_reader::skip_to(std::uint64_t) {}
bool wire_reader::next() { return false; }
std::string wire_reader::text(std::uint64_t) { return {}; }
void wire_reader::enter() {}
void wire_reader::leave() {}
bool wire_reader::packed_varint(std::uint64_t&) { return false; }

std::string protobuf_version() { return {}; }

}  // namespace mx::io

#endif

namespace mx::io {

wire_reader::~wire_reader() = default;

}  // namespace mx::io

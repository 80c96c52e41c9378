// SPDX-License-Identifier: Apache-2.0
#include "libmx/files/onnx/onnx_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/files/onnx/onnx_wire.hpp"
#include "libmx/io/spool.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

constexpr std::size_t piece_bytes = 64 << 10;

bool is_signed(dtype type) {
    return type == dtype::i8 || type == dtype::i16 || type == dtype::i32 || type == dtype::i64;
}

// Takes values in order and writes them little-endian, each in as many bytes as its type has.
class collector {
  public:
    collector(const wire_reader& at, const onnx_tensor& t, dtype type, std::uint64_t bytes)
        : at_(at),
          name_(t.name),
          type_(type),
          // Two values of four bits come as one number of eight.
          bits_(std::max(8, tensor::row_of(type).bits)),
          bytes_(bytes),
          spool_(std::make_unique<spool>(bytes)) {}

    void number(std::uint64_t value) {
        check(value);
        append(value, static_cast<std::size_t>(bits_) / 8);
    }
    void append(std::uint64_t value, std::size_t count) {
        if (count > bytes_ - done_ - piece_.size()) {
            at_.fail("has more values than its shape", name_);
        }
        for (std::size_t i = 0; i < count; ++i) {
            piece_.push_back(static_cast<std::byte>(value >> 8 * i));
        }
        if (piece_.size() >= piece_bytes) flush();
    }
    void append(std::span<const std::byte> bytes) {
        if (bytes.size() > bytes_ - done_ - piece_.size()) {
            at_.fail("has more values than its shape", name_);
        }
        flush();
        spool_->write(done_, bytes);
        done_ += bytes.size();
    }
    std::unique_ptr<byte_source> finish() {
        flush();
        if (done_ != bytes_) at_.fail("has fewer values than its shape", name_);
        return std::move(spool_);
    }

  private:
    void check(std::uint64_t value) const {
        if (bits_ == 64) return;
        const auto wide = static_cast<std::int64_t>(value);
        const std::int64_t half = std::int64_t{1} << (bits_ - 1);
        const std::uint64_t top = type_ == dtype::boolean ? 2 : std::uint64_t{1} << bits_;
        const bool fits = is_signed(type_) ? wide >= -half && wide < half : value < top;
        if (!fits) {
            at_.fail(fmt::format("holds {}, which is no {}", wide, tensor::row_of(type_).name),
                     name_);
        }
    }
    void flush() {
        spool_->write(done_, piece_);
        done_ += piece_.size();
        piece_.clear();
    }

    const wire_reader& at_;
    const std::string& name_;
    dtype type_;
    int bits_;
    std::uint64_t bytes_;
    std::uint64_t done_ = 0;
    std::vector<std::byte> piece_;
    std::unique_ptr<spool> spool_;
};

// Packed floats stand in the file as they are wanted.
void copy(const input_file& file, const wire_reader& at, const std::string& name, collector& to) {
    std::vector<std::byte> buffer;
    for (std::uint64_t done = 0; done < at.size(); done += buffer.size()) {
        buffer.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, at.size() - done)));
        file.read(at.begin() + done, buffer, name);
        to.append(buffer);
    }
}

}  // namespace

std::unique_ptr<byte_source> onnx_typed_values(const shared_file& file, const onnx_tensor& t,
                                               const onnx_type& type, std::uint64_t bytes) {
    wire_reader at(file, t.message.begin, t.message.begin + t.message.size);
    collector to(at, t, *type.type, bytes);
    const bool floats =
        type.field == onnx_field::float_data || type.field == onnx_field::double_data;
    const std::uint64_t width = !floats ? 0 : type.field == onnx_field::float_data ? 4 : 8;
    while (at.next()) {
        if (at.field() != static_cast<std::uint32_t>(type.field)) continue;
        if (floats && at.is_bytes()) {
            copy(*file, at, t.name, to);
        } else if (at.is_bytes()) {
            at.enter();
            for (std::uint64_t value = 0; at.packed_varint(value);) to.number(value);
            at.leave();
        } else if (at.size() != width) {
            at.fail("a value of another kind than its field", t.name);
        } else if (floats) {
            to.append(at.value(), static_cast<std::size_t>(width));
        } else {
            to.number(at.value());
        }
    }
    return to.finish();
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "libmx/base/parsed.hpp"
#include "libmx/files/onnx/onnx_contractions.hpp"
#include "libmx/files/onnx/onnx_model.hpp"
#include "libmx/files/onnx/onnx_wire.hpp"
#include "libmx/io/dtype_names.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/read_budget.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/spool.hpp"
#include "libmx/io/storage_views.hpp"

namespace mx::io {
namespace {

namespace fs = std::filesystem;

bool holds_floats(const onnx_type& type) {
    return type.field == onnx_field::float_data || type.field == onnx_field::double_data;
}

// Where a tensor's values are: a file, and where in it.
struct onnx_place {
    std::string path;
    std::uint64_t offset = 0;
};

// Finds external data below the folder of a model.
class onnx_externals {
  public:
    explicit onnx_externals(std::string model_path) : model_path_(std::move(model_path)) {}

    // The position of the `bytes` of `t`. Throws base::error (input) if the location leaves the
    // folder, the file is missing, or the range is not in it or has another length.
    onnx_place place_of(const onnx_tensor& t, std::uint64_t bytes) {
        const auto fail = [&](const std::string& message) {
            input_error(message, {model_path_, t.name, t.message.begin});
        };
        const auto number = [&](const std::string& text, const char* what) {
            const auto value = base::parsed<std::uint64_t>(text);
            if (!value) {
                fail(fmt::format("its external data has the {} '{}', not a number", what, text));
            }
            return *value;
        };
        const auto path = path_beside(model_path_, t.external.location);
        // Nor a spelling that another system takes for a location outside the folder.
        if (!path || t.external.location.find_first_of("\\:") != std::string::npos) {
            fail(fmt::format("its external data is at '{}', outside the model's folder",
                             t.external.location));
        }
        onnx_place place;
        place.path = *path;
        if (!t.external.offset.empty()) place.offset = number(t.external.offset, "offset");
        auto known = files_.find(place.path);
        if (known == files_.end()) {
            known = files_.emplace(place.path, input_file::open(place.path)->size()).first;
        }
        const std::uint64_t size = known->second;
        if (place.offset > size || bytes > size - place.offset) {
            fail(fmt::format("its {} bytes from {} on go beyond '{}', which has {}", bytes,
                             place.offset, t.external.location, size));
        }
        const std::uint64_t length =
            t.external.length.empty() ? bytes : number(t.external.length, "length");
        if (length != bytes) {
            fail(fmt::format("its external data has {} bytes, its shape takes {}", length, bytes));
        }
        return place;
    }

    // The files opened so far and their sizes.
    const std::map<std::string, std::uint64_t>& files() const noexcept { return files_; }

  private:
    std::string model_path_;
    std::map<std::string, std::uint64_t> files_;
};

constexpr std::size_t onnx_piece_bytes = 64 << 10;

bool is_signed(tensor::dtype type) {
    return type == tensor::dtype::i8 || type == tensor::dtype::i16 || type == tensor::dtype::i32 ||
           type == tensor::dtype::i64;
}

// Writes values in order, little-endian, each in as many bytes as its type has.
class collector {
  public:
    collector(const wire_reader& at, const onnx_tensor& t, tensor::dtype type, std::uint64_t bytes)
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
        check_count(count);
        for (std::size_t i = 0; i < count; ++i) {
            piece_.push_back(static_cast<std::byte>(value >> 8 * i));
        }
        if (piece_.size() >= onnx_piece_bytes) flush();
    }
    void append(std::span<const std::byte> bytes) {
        check_count(bytes.size());
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
    void check_count(std::size_t count) const {
        if (count > bytes_ - done_ - piece_.size()) {
            at_.fail("has more values than its shape", name_);
        }
    }
    void check(std::uint64_t value) const {
        if (bits_ == 64) return;
        const auto wide = static_cast<std::int64_t>(value);
        const std::int64_t half = std::int64_t{1} << (bits_ - 1);
        const std::uint64_t top = type_ == tensor::dtype::boolean ? 2 : std::uint64_t{1} << bits_;
        const bool fits = is_signed(type_) ? wide >= -half && wide < half : value < top;
        if (!fits) {
            at_.fail(
                fmt::format("has {}, which {} does not have", wide, tensor::row_of(type_).name),
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
    tensor::dtype type_;
    int bits_;
    std::uint64_t bytes_;
    std::uint64_t done_ = 0;
    std::vector<std::byte> piece_;
    std::unique_ptr<spool> spool_;
};

// Packed floats are stored in the required order.
void copy(const input_file& file, const wire_reader& at, const std::string& name, collector& to) {
    std::vector<std::byte> buffer;
    for (std::uint64_t done = 0; done < at.size(); done += buffer.size()) {
        buffer.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(onnx_piece_bytes, at.size() - done)));
        file.read(at.begin() + done, buffer, name);
        to.append(buffer);
    }
}

// The bytes of `t` gathered from its typed fields into a spool; `bytes` were counted by the
// reader and found to fit. Throws base::error (input) when there are more or fewer values, or one
// that its type does not have.
std::unique_ptr<byte_source> onnx_typed_values(const shared_file& file, const onnx_tensor& t,
                                               const onnx_type& type, std::uint64_t bytes) {
    wire_reader at(file, t.message.begin, t.message.begin + t.message.size);
    collector to(at, t, *type.type, bytes);
    const bool floats = holds_floats(type);
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

class onnx_reader final : public file_reader {
  public:
    onnx_reader(shared_file file, const open_options& options)
        : file_reader(std::move(file)),
          model_(read_onnx_model(file_)),
          externals_(file_->path()),
          places_(model_.tensors.size()) {
        const auto as = parse_as(options.as);
        for (std::size_t i = 0; i < places_.size(); ++i) {
            tensors_.push_back(describe(model_.tensors[i], places_[i]));
            tensors_.back().type = read_as(tensors_.back().type, as);
        }
        count_external_once();
        state_contractions();
        model_.nodes = {};
        metadata_ = std::move(model_.metadata);
        files_.insert(files_.end(), externals_.files().begin(), externals_.files().end());
        limit_repetition();
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        const onnx_tensor& t = model_.tensors[index];
        if (!info.note.empty()) fail(t, info.note);
        if (t.is_external) {
            return file_window(input_file::open(info.file), places_[index].offset, info.bytes,
                               info.name);
        }
        if (t.raw) return file_window(file_, t.raw->begin, info.bytes, info.name);
        return onnx_typed_values(file_, t, *find_onnx_type(t.type_id), info.bytes);
    }

  private:
    [[noreturn]] void fail(const onnx_tensor& t, const std::string& message) const {
        input_error(message, {file_->path(), t.name, t.message.begin});
    }

    // Several tensors may name the same bytes of a file.
    void count_external_once() {
        constexpr std::uint64_t any_size = ~std::uint64_t{0};  // checked by place_of
        std::vector<storage_view> views;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const onnx_place& place = places_[i];
            if (place.path.empty() || tensors_[i].bytes == 0) continue;
            views.push_back({place.path,
                             place.offset,
                             place.offset + tensors_[i].bytes,
                             i,
                             any_size,
                             any_size,
                             {}});
        }
        read_budget budget(file_->path(), file_->size());
        count_storage_once(std::move(views), tensors_, budget);
    }

    // What the graph says about the axes of its tensors.
    void state_contractions() {
        const auto numbers = [this](std::size_t index) { return small_numbers(index); };
        std::vector<contraction> found = onnx_contractions(model_, numbers);
        for (std::size_t i = 0; i < found.size(); ++i) tensors_[i].sums_over = std::move(found[i]);
    }

    // A tensor of a few int64, the argument of a Reshape; else none.
    std::vector<std::int64_t> small_numbers(std::size_t index) const {
        constexpr std::uint64_t most = 64;
        const tensor_info& info = tensors_[index];
        if (info.type != tensor::dtype::i64 || !info.note.empty() || info.elements > most)
            return {};
        std::vector<std::int64_t> values(static_cast<std::size_t>(info.elements));
        open(index)->read(0, std::as_writable_bytes(std::span(values)));
        return values;
    }

    tensor_info describe(const onnx_tensor& t, onnx_place& place) {
        tensor_info info;
        info.name = t.name;
        info.file = file_->path();
        info.shape = t.shape;
        info.note = t.note;
        info.type = tensor::dtype::other;
        const auto elements = tensor::element_count(t.shape);
        if (!elements) fail(t, fmt::format("shape {} is too large", tensor::to_string(t.shape)));
        info.elements = *elements;
        const onnx_type* type = find_onnx_type(t.type_id);
        if (info.note.empty() && (type == nullptr || !type->type)) {
            info.note = type != nullptr ? fmt::format("ONNX's {} is not read", type->name)
                                        : fmt::format("unknown ONNX type {}", t.type_id);
        }
        if (!info.note.empty()) {
            info.bytes = t.raw ? t.raw->size : 0;
            for (const auto& [field, bytes] : t.held) info.bytes += bytes;
            return info;
        }
        info.type = *type->type;
        const auto bytes = tensor::byte_count(info.type, *elements);
        if (!bytes) fail(t, fmt::format("shape {} is too large", tensor::to_string(t.shape)));
        info.bytes = *bytes;
        if (t.is_external) {
            place = externals_.place_of(t, info.bytes);
            info.file = place.path;
        } else if (t.raw) {
            if (t.raw->size != info.bytes) {
                fail(t, fmt::format("{} of shape {} takes {} bytes, raw_data has {}", type->name,
                                    tensor::to_string(t.shape), info.bytes, t.raw->size));
            }
        } else {
            check_held(t, *type, info.bytes);
            const auto held = t.held.find(type->field);
            // Numbers of variable length.
            if (held != t.held.end() && held->second != info.bytes) {
                info.stored_bytes = held->second;
            }
        }
        return info;
    }

    // Whether the fields can contain so many values: no allocation depends on the shape alone.
    void check_held(const onnx_tensor& t, const onnx_type& type, std::uint64_t bytes) const {
        const auto at = t.held.find(type.field);
        const std::uint64_t held = at == t.held.end() ? 0 : at->second;
        const auto width = static_cast<std::uint64_t>(tensor::row_of(*type.type).bits + 7) / 8;
        if (holds_floats(type) ? held != bytes : held < bytes / width) {
            fail(t, fmt::format("{} of shape {} takes {} bytes, its data has {}", type.name,
                                tensor::to_string(t.shape), bytes, held));
        }
    }

    onnx_model model_;
    onnx_externals externals_;
    std::vector<onnx_place> places_;
};

}  // namespace

// A bare protobuf has no mark: field 1 (ir_version) as a small number, then another low field.
bool looks_like_onnx(const file_probe& probe) {
    const std::string_view head = probe.head;
    return head.size() > 4 && head[0] == '\x08' && head[1] > 0 && head[1] < 32 &&
           (head[2] == '\x12' || head[2] == '\x1a' || head[2] == '\x3a' || head[2] == '\x42');
}

std::unique_ptr<reader> open_onnx(shared_file file, const open_options& options) {
    return std::make_unique<onnx_reader>(std::move(file), options);
}

std::string onnx_support() { return protobuf_version(); }

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// Quantized checkpoints that are nearly right. The input is a series of choices: a row of THE LISTS
// of quantized/layouts.hpp, extents, the arrays of such a tensor, and what is wrong with them. The
// file is always sound safetensors, so that what pairs and decodes arrays is reached. Only
// base::error may be thrown, and a tensor read in parts must be the tensor.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/quantized/layouts.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/read_tensor.hpp"
#include "tests/fuzz/reader_target.hpp"

namespace mx::fuzz {
namespace {

using io::code_array, io::scale_array;
using tensor::dtype, tensor::shape;

constexpr std::uint64_t largest_array = 1 << 18;   // bytes
constexpr std::uint64_t largest_tensor = 1 << 21;  // bytes, decoded: what is read twice

std::uint64_t parts_of(std::uint64_t n, std::uint64_t size) { return (n + size - 1) / size; }

constexpr dtype any_dtype[] = {
    dtype::f32, dtype::u8,  dtype::i8,      dtype::i32,     dtype::u32,        dtype::bf16,
    dtype::f16, dtype::i64, dtype::f8_e4m3, dtype::f8_e5m2, dtype::f8_e8m0,    dtype::f4,
    dtype::f64, dtype::i16, dtype::f6_e2m3, dtype::boolean, dtype::f8_e4m3fnuz};
constexpr dtype real_dtype[] = {dtype::f32, dtype::bf16, dtype::f16};

// A checkpoint in the making.
class checkpoint {
  public:
    explicit checkpoint(choices& from) : from_(from) {}

    // An array, or one that differs a little, or none. `bytes`: its content; else chosen.
    void add(const std::string& name, dtype type, shape extents, std::string bytes = {}) {
        switch (from_.below(48)) {
            case 1:
                return;
            case 2:
                type = from_.of(any_dtype);
                break;
            case 3:
                if (!extents.empty()) extents[from_.below(extents.size())] = from_.extent();
                break;
            case 4:
                extents.push_back(1 + from_.below(3));
                break;
            case 5:
                extents.insert(extents.begin(), 1 + from_.below(3));
                break;
            case 6:
                if (!extents.empty()) extents.pop_back();
                break;
            case 7:
                if (extents.size() > 1) std::swap(extents.front(), extents.back());
                break;
            default:
                break;
        }
        const auto count = tensor::element_count(extents);
        const auto bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
        if (!count || *count > largest_array * 8 / bits || *count * bits % 8 != 0) return;
        const std::uint64_t size = *count * bits / 8;
        if (bytes.size() != size) bytes = content(size);
        if (header_.find(fmt::format("\"{}\":", name)) != std::string::npos) return;
        header_ += fmt::format(
            ",\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", name,
            tensor::row_of(type).name, fmt::join(extents, ","), data_.size(), data_.size() + size);
        data_ += bytes;
    }
    void state(const std::string& key, const std::string& value) {
        if (metadata_.find(fmt::format("\"{}\":", key)) != std::string::npos) return;
        metadata_ += fmt::format("{}\"{}\":\"{}\"", metadata_.empty() ? "" : ",", key, value);
    }
    std::string file() const {
        const std::string header = fmt::format("{{\"__metadata__\":{{{}}}{}}}", metadata_, header_);
        const std::uint64_t size = header.size();
        std::string bytes(sizeof size, '\0');
        std::memcpy(bytes.data(), &size, sizeof size);
        return bytes + header + data_;
    }

  private:
    std::string content(std::uint64_t size) {
        std::string bytes(static_cast<std::size_t>(size), '\0');
        const std::uint64_t how = from_.below(4), first = from_.byte();
        for (std::size_t i = 0; i < bytes.size() && how != 0; ++i) {
            bytes[i] = static_cast<char>(how == 1   ? first
                                         : how == 2 ? first + i * 73 + (i >> 4)
                                                    : from_.byte());
        }
        return bytes;
    }

    choices& from_;
    std::string header_, data_, metadata_;
};

template <typename T, typename Value>
std::string numbers(std::uint64_t count, Value value) {
    std::string bytes;
    for (std::uint64_t i = 0; i < count; ++i) {
        const T number = static_cast<T>(value(i));
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    return bytes;
}

// The arrays of one tensor in the layout and under the names of two rows.
class stored_tensor {
  public:
    stored_tensor(choices& from, checkpoint& to, const io::quantized_layout& layout,
                  const io::quantized_naming& names, std::string stem)
        : from_(from), to_(to), layout_(layout), names_(names), stem_(std::move(stem)) {
        if (from_.once_in(4)) experts_ = {1 + from_.below(3)};
        rows_ = from_.extent();
        columns_ = from_.extent();
        bits_ = from_.of(widths);
        groups_ = 1 + from_.below(9);
    }

    void put() {
        put_codes();
        put_scales();
        if (layout_.family == "gptq") put_groups_of_gptq();
        if (layout_.codes == code_array::table4) put_table();
        if (layout_.codes == code_array::int_words) {
            to_.add(name(names_.codes, io::packed_shape_ending, names_.tensor), dtype::i64, {2},
                    numbers<std::uint64_t>(
                        2, [&](std::uint64_t i) { return i == 0 ? rows_ : stated_columns(); }));
        }
        if (layout_.family == "bitsandbytes int8") {
            to_.add(stem_ + ".weight" + std::string(io::row_order_ending), dtype::u8, {});
        }
        if (layout_.tensor_scale || from_.once_in(8)) put_factors();
    }

  private:
    static constexpr std::uint64_t widths[] = {4, 8, 2, 3, 5, 6, 7};

    std::string name(std::string_view codes, std::string_view ending, std::string_view tensor) {
        // Further arrays stand beside the tensor's name, or beside that of its codes.
        const std::string base = stem_ + std::string(from_.once_in(2) ? codes : tensor);
        return base + std::string(ending);
    }
    std::uint64_t stated_columns() {
        return from_.once_in(8) ? columns_ + from_.byte() * 0x100000001ull : columns_;
    }
    shape with_experts(shape s) const {
        s.insert(s.begin(), experts_.begin(), experts_.end());
        return s;
    }
    void codes_as(dtype type, std::uint64_t rows, std::uint64_t columns) {
        to_.add(stem_ + std::string(names_.codes), type, with_experts({rows, columns}));
    }

    void put_codes() {
        const std::uint64_t how = from_.below(4);
        switch (layout_.codes) {
            case code_array::fp4_blocks:
                to_.add(stem_ + std::string(names_.codes), dtype::u8,
                        with_experts({rows_, columns_ / 32, 16}));
                break;
            case code_array::fp4:
                if (how == 0) codes_as(dtype::u8, rows_, columns_ / 2);
                if (how == 1) codes_as(dtype::f4, rows_, columns_);
                if (how == 2) codes_as(dtype::i8, rows_, columns_ / 2);
                if (how == 3) codes_as(dtype::u32, rows_, columns_ / 8);
                break;
            case code_array::fp6:
                codes_as(how % 2 == 0 ? dtype::f6_e2m3 : dtype::f6_e3m2, rows_, columns_);
                break;
            case code_array::fp8:
                if (how == 3) return codes_as(dtype::u32, rows_, columns_ / 4);
                codes_as(from_.of(std::array{dtype::f8_e4m3, dtype::f8_e5m2, dtype::f8_e4m3fnuz,
                                             dtype::f8_e5m2fnuz}),
                         rows_, columns_);
                break;
            case code_array::int8:
                codes_as(dtype::i8, rows_, columns_);
                break;
            case code_array::int_words:
                codes_as(dtype::i32, rows_, parts_of(columns_ * bits_, 32));
                break;
            case code_array::gptq_words:
                codes_as(dtype::i32, parts_of(columns_ * bits_, 32), rows_);
                break;
            case code_array::awq_words:
                codes_as(dtype::i32, columns_, rows_ / 8);
                break;
            case code_array::table4:
                codes_as(dtype::u8, parts_of(rows_ * columns_, 2), 1);
                break;
            case code_array::ggml_nvfp4:
                codes_as(dtype::f32, rows_, columns_);
                break;
        }
    }

    // Scales along an axis of `extent` under blocks of `block`.
    std::uint64_t scales_along(std::uint64_t extent, std::uint64_t block) {
        if (block == io::whole_axis || block == io::whole_matrix) return 1;
        if (block == io::equal_parts) return groups_;
        if (block == io::stated_tile) return parts_of(extent, 16u << from_.below(4));
        return parts_of(extent, block);
    }
    void put_scales() {
        dtype type = from_.of(real_dtype);
        if (layout_.scales == scale_array::e8m0) {
            type = from_.once_in(2) ? dtype::f8_e8m0 : dtype::u8;
        } else if (layout_.scales == scale_array::e4m3) {
            type = from_.once_in(4) ? dtype::u8 : dtype::f8_e4m3;
        }
        shape grid{scales_along(rows_, layout_.block_rows),
                   scales_along(columns_, layout_.block_cols)};
        if (layout_.family == "gptq") grid = {groups_, rows_};
        if (layout_.codes == code_array::table4) grid = {parts_of(rows_ * columns_, table_block())};
        const bool swizzled = from_.once_in(12);
        if (swizzled) {
            grid = {parts_of(grid.front(), 128) * 128 * parts_of(grid.back(), 4) * 4};
        } else if (from_.once_in(6)) {
            std::erase(grid, 1u);
        }
        to_.add(stem_ + std::string(names_.scales), type, with_experts(std::move(grid)));
        if (from_.once_in(3)) {
            to_.add(name(names_.codes, names_.zeros, names_.tensor),
                    from_.once_in(2) ? dtype::i8 : dtype::i32,
                    {parts_of(rows_ * (from_.once_in(2) ? 32 : bits_), 32), groups_});
        }
        if (from_.once_in(3)) put_group_index(name(names_.codes, names_.groups, names_.tensor));
    }

    void put_group_index(const std::string& name) {
        const std::uint64_t shift = from_.below(3), wrong = from_.once_in(6) ? from_.byte() : 0;
        to_.add(name, dtype::i32, {columns_}, numbers<std::uint32_t>(columns_, [&](auto i) {
                    return i + 1 == columns_ ? groups_ - 1 + wrong * 0x2000001u
                                             : (i + shift) % groups_;
                }));
    }
    void put_groups_of_gptq() {
        const bool words = layout_.codes == code_array::awq_words;
        to_.add(stem_ + ".qzeros", dtype::i32,
                {groups_, words ? rows_ / 8 : parts_of(rows_ * bits_, 32)});
        if (from_.once_in(2)) put_group_index(stem_ + ".g_idx");
    }

    std::uint64_t table_block() {
        if (!table_block_) table_block_ = std::uint64_t{16} << from_.below(6);
        return *table_block_;
    }
    // bitsandbytes: scales may be indices themselves, with tables and scales of their own.
    void put_table() {
        const std::string of = stem_ + std::string(names_.tensor) + std::string(names_.codes);
        const std::uint64_t scales = parts_of(rows_ * columns_, table_block());
        const std::uint64_t outer = std::uint64_t{1} << from_.below(9);
        const bool nested = from_.once_in(2);
        to_.add(of + std::string(io::table_ending), dtype::f32, {16});
        std::string state =
            fmt::format(R"({{"quant_type":"{}","blocksize":{},"dtype":"{}","shape":[{},{}])",
                        from_.once_in(3) ? "fp4" : "nf4", table_block(),
                        from_.once_in(3) ? "float16" : "bfloat16", rows_, stated_columns());
        if (nested) {
            state += fmt::format(R"(,"nested_blocksize":{},"nested_dtype":"float32")", outer) +
                     fmt::format(R"(,"nested_offset":{})", from_.once_in(5) ? "1e39" : "0.03");
            to_.add(of + ".absmax", dtype::u8, {scales});
            to_.add(of + std::string(io::outer_scales_ending), dtype::f32,
                    {parts_of(scales, outer)});
            to_.add(of + std::string(io::outer_table_ending), dtype::f32, {256});
        }
        state += "}";
        if (from_.once_in(9)) state.resize(static_cast<std::size_t>(from_.below(state.size())));
        to_.add(of + std::string(from_.of(io::table_state_endings)), dtype::u8, {state.size()},
                state);
    }

    void put_factors() {
        const auto beside = [&](std::string_view ending) {
            return name(names_.codes, ending, names_.tensor);
        };
        const shape one = from_.once_in(2) ? shape{1} : experts_;
        to_.add(beside(from_.of(io::tensor_scale_names).ending), dtype::f32, one);
        if (from_.once_in(4)) {
            to_.add(beside(from_.of(io::input_channel_endings)), from_.of(real_dtype), {columns_});
        }
        if (from_.once_in(4)) {
            to_.add(beside(from_.of(io::input_scale_endings)), from_.of(real_dtype), one);
        }
    }

    choices& from_;
    checkpoint& to_;
    const io::quantized_layout& layout_;
    const io::quantized_naming& names_;
    std::string stem_;
    shape experts_;
    std::uint64_t rows_, columns_, bits_, groups_;
    std::optional<std::uint64_t> table_block_;
};

// A row of the layouts, and one of the names: mostly of its family.
void put_quantized(choices& from, checkpoint& to, const std::string& stem) {
    const io::quantized_layout& layout = from.of(io::quantized_layouts);
    std::vector<const io::quantized_naming*> fitting;
    for (const io::quantized_naming& n : io::quantized_namings) {
        if (n.family == layout.family) fitting.push_back(&n);
    }
    const bool any = fitting.empty() || from.once_in(16);
    const io::quantized_naming& names = any ? from.of(io::quantized_namings) : *from.of(fitting);
    stored_tensor(from, to, layout, names, stem).put();
}

// A tensor as mx quantize --packed writes it.
void put_packed(choices& from, checkpoint& to, const std::string& stem) {
    struct packing {
        std::string_view recipe;
        std::uint64_t code_bits, block;
        dtype scales;
    };
    constexpr packing packings[] = {
        {"mxfp4", 4, 32, dtype::u8},
        {"mxfp8:scale=rceil", 8, 32, dtype::u8},
        {"mxfp6:offset=fp16", 6, 32, dtype::u8},
        {"nvfp4", 4, 16, dtype::u8},
        {"nvfp4:outer=row", 4, 16, dtype::u8},
        {"mxint8:block=32x1", 8, 32, dtype::u8},
        {"mxfp4:transform=hadamard", 4, 32, dtype::u8},
        {"fp8_1x128", 8, 128, dtype::f32},
        {"mxfp8:axis=flat", 8, 32, dtype::u8},
        {"mxfp4:scale=", 4, 32, dtype::u8},
    };
    const packing& p = from.of(packings);
    const std::uint64_t rows = from.extent(), columns = from.extent();
    to.state("mx.schema", from.once_in(8) ? "mx.packed/1" : "mx.packed/2");
    to.state(from.once_in(4) ? "mx.recipe" : "mx.recipe." + stem, std::string(p.recipe));
    to.state("mx.tensor." + stem,
             fmt::format("{} {}x{}{}", from.once_in(8) ? "F64" : "BF16", rows,
                         from.once_in(8) ? columns << 8 * from.below(8) : columns,
                         from.once_in(3)   ? " 0-1"
                         : from.once_in(8) ? " 1-0"
                                           : ""));
    const std::uint64_t blocks = rows * parts_of(columns, p.block);
    if (p.code_bits == 4 && from.once_in(2)) {
        to.add(stem + ".codes", dtype::f4, {rows, columns});
    } else {
        to.add(stem + ".codes", dtype::u8, {parts_of(rows * columns * p.code_bits, 8)});
    }
    to.add(stem + ".scales", p.scales, {blocks});
    if (from.once_in(2)) to.add(stem + ".offsets", dtype::f16, {blocks});
    to.add(stem + ".global_scale", dtype::f32, {from.once_in(2) ? rows : 1});
}

std::string configuration(choices& from) {
    constexpr const char* formats[] = {"gptq", "gptq_v2", "gptq_p", "awq", ""};
    return fmt::format(R"({{"checkpoint_format":"{}","weight_block_size":[{},{}]}})",
                       from.of(formats), from.extent(), from.extent());
}

// How a user may see the tensors.
engine::view_request any_view(choices& from) {
    engine::view_request view;
    view.swizzled = from.once_in(3);
    view.vectors = from.once_in(8);
    if (from.once_in(8)) view.transposed = {"*"};
    if (from.once_in(8)) view.experts = {"*"};
    if (from.once_in(8)) view.heads = {fmt::format("*={}", 1 + from.below(9))};
    if (from.once_in(8)) view.splits = {fmt::format("w1*=a:{},b:1", from.extent())};
    return view;
}

}  // namespace

const std::string_view format = "layouts";

bool belongs(const std::string&) { return true; }

void try_input(const std::uint8_t* data, std::size_t size) {
    choices from(data, size);
    checkpoint to(from);
    for (std::uint64_t i = 1 + from.below(3); i > 0; --i) {
        // Two tensors may have the same arrays.
        const std::string stem = from.once_in(8) ? "w0" : fmt::format("w{}", i);
        from.once_in(6) ? put_packed(from, to, stem) : put_quantized(from, to, stem);
    }
    static folder place;
    place.write("quantize_config.json", from.once_in(3) ? configuration(from) : "{}");
    try {
        std::vector<std::unique_ptr<io::reader>> files;
        const std::string path = place.write("model.safetensors", to.file());
        files.push_back(io::open_safetensors(io::input_file::open(path), {}));
        const auto view = engine::make_view(files, any_view(from));
        if (!view) return;
        check_occupied(*view);
        for (std::size_t i = 0; i < view->tensors().size(); ++i) {
            try {
                read_tensor(from, *view, i, largest_tensor);
            } catch (const base::error&) {  // refused, which is an answer
            }
        }
    } catch (const base::error&) {  // likewise
    }
}

}  // namespace mx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mx::fuzz::try_input(data, size);
    return 0;
}

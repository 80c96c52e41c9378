// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "libmx/base/status.hpp"
#include "libmx/io/staged_array_writer.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

// numpy's description of a type, "" where it has none. What numpy lacks is stored as bare bytes.
std::string_view descr(dtype type) {
    switch (type) {
        case dtype::boolean:
            return "|b1";
        case dtype::u8:
            return "|u1";
        case dtype::i8:
            return "|i1";
        case dtype::f8_e5m2:
        case dtype::f8_e4m3:
        case dtype::f8_e8m0:
        case dtype::f8_e4m3fnuz:
        case dtype::f8_e5m2fnuz:
            return "|V1";
        case dtype::i16:
            return "<i2";
        case dtype::u16:
            return "<u2";
        case dtype::f16:
            return "<f2";
        case dtype::bf16:
            return "<V2";
        case dtype::i32:
            return "<i4";
        case dtype::u32:
            return "<u4";
        case dtype::f32:
            return "<f4";
        case dtype::f64:
            return "<f8";
        case dtype::i64:
            return "<i8";
        case dtype::u64:
            return "<u8";
        case dtype::c64:
            return "<c8";
        case dtype::c128:
            return "<c16";
        case dtype::f4:
        case dtype::f6_e2m3:
        case dtype::f6_e3m2:
        case dtype::other:
            return "";
    }
    return "";
}

}  // namespace

std::unique_ptr<array_writer> create_npy(const std::string& path, const planned_array& array) {
    check_ending(path, {".npy"});
    if (descr(array.type).empty()) {
        throw base::error(
            base::error_kind::output,
            fmt::format(".npy has no dtype {}; write safetensors", tensor::row_of(array.type).name),
            {path, array.name, {}});
    }
    std::string shape;
    for (const std::uint64_t extent : array.shape) shape += fmt::format("{}, ", extent);
    // As numpy spells it: (), (5,), (2, 3).
    if (array.shape.size() == 1) {
        shape.pop_back();
    } else if (!shape.empty()) {
        shape.resize(shape.size() - 2);
    }
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                     descr(array.type), shape);
    constexpr std::size_t prefix = 10;
    const std::size_t length = (prefix + header.size() + 1 + 63) / 64 * 64 - prefix;
    if (length > 0xffff) {
        throw base::error(base::error_kind::output, "the shape has too many axes for .npy",
                          {path, array.name, {}});
    }
    header.resize(length - 1, ' ');
    std::string start = "\x93NUMPY\x01";
    start += '\0';
    start += static_cast<char>(length & 0xff);
    start += static_cast<char>(length >> 8);
    return stage_arrays(path, start + header + '\n', {{0, planned_bytes(path, array)}});
}

}  // namespace mx::io

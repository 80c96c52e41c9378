// SPDX-License-Identifier: Apache-2.0
// THE LIST of stored data types, in safetensors' spelling.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mx::tensor {

enum class dtype : std::uint8_t {
    boolean,
    f4,
    f6_e2m3,
    f6_e3m2,
    u8,
    i8,
    f8_e5m2,
    f8_e4m3,
    f8_e8m0,
    f8_e4m3fnuz,
    f8_e5m2fnuz,
    i16,
    u16,
    f16,
    bf16,
    i32,
    u32,
    f32,
    f64,
    i64,
    u64,
    c64,
    c128,
    other,  ///< a type that mx lists but cannot read as numbers (strings, records, ...)
};

/// How a dtype becomes float32.
enum class widening : std::uint8_t {
    exact,         ///< every value is a float32
    rounded_once,  ///< rounded to nearest even; the reader counts the inexact ones
    none,          ///< not a real number: listed by `mx tensors`, skipped by `analyze`
};

struct dtype_row {
    dtype id;
    std::string_view name;  ///< safetensors' spelling if it has one
    int bits;               ///< storage bits of one element; sub-byte types are packed
    widening to_f32;
    std::string_view summary;
};

inline constexpr std::array dtypes{
    dtype_row{dtype::boolean, "BOOL", 8, widening::none, "truth value, one byte"},
    dtype_row{dtype::f4, "F4", 4, widening::exact, "E2M1, two per byte, low nibble first"},
    dtype_row{dtype::f6_e2m3, "F6_E2M3", 6, widening::exact, "E2M3, four in three bytes"},
    dtype_row{dtype::f6_e3m2, "F6_E3M2", 6, widening::exact, "E3M2, four in three bytes"},
    dtype_row{dtype::u8, "U8", 8, widening::exact, "unsigned integer"},
    dtype_row{dtype::i8, "I8", 8, widening::exact, "two's complement integer"},
    dtype_row{dtype::f8_e5m2, "F8_E5M2", 8, widening::exact, "OCP FP8 E5M2"},
    dtype_row{dtype::f8_e4m3, "F8_E4M3", 8, widening::exact, "OCP FP8 E4M3 (no Inf)"},
    dtype_row{dtype::f8_e8m0, "F8_E8M0", 8, widening::exact, "power-of-two scale"},
    dtype_row{dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, widening::exact, "E4M3, bias 8, no -0"},
    dtype_row{dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, widening::exact, "E5M2, bias 16, no -0"},
    dtype_row{dtype::i16, "I16", 16, widening::exact, "two's complement integer"},
    dtype_row{dtype::u16, "U16", 16, widening::exact, "unsigned integer"},
    dtype_row{dtype::f16, "F16", 16, widening::exact, "IEEE binary16"},
    dtype_row{dtype::bf16, "BF16", 16, widening::exact, "bfloat16"},
    dtype_row{dtype::i32, "I32", 32, widening::rounded_once, "two's complement integer"},
    dtype_row{dtype::u32, "U32", 32, widening::rounded_once, "unsigned integer"},
    dtype_row{dtype::f32, "F32", 32, widening::exact, "IEEE binary32"},
    dtype_row{dtype::f64, "F64", 64, widening::rounded_once, "IEEE binary64"},
    dtype_row{dtype::i64, "I64", 64, widening::rounded_once, "two's complement integer"},
    dtype_row{dtype::u64, "U64", 64, widening::rounded_once, "unsigned integer"},
    dtype_row{dtype::c64, "C64", 64, widening::none, "complex of two binary32"},
    dtype_row{dtype::c128, "C128", 128, widening::none, "complex of two binary64"},
    dtype_row{dtype::other, "OTHER", 8, widening::none, "not a numeric array"},
};

/// The row of `id`.
constexpr const dtype_row& row_of(dtype id) { return dtypes[static_cast<std::size_t>(id)]; }

static_assert([] {
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
        if (static_cast<std::size_t>(dtypes[i].id) != i) return false;
    }
    return true;
}());

/// Bytes of `elements` consecutive elements, which fill their last byte.
constexpr std::uint64_t stored_bytes(dtype type, std::uint64_t elements) {
    return elements * static_cast<std::uint64_t>(row_of(type).bits) / 8;
}

/// The dtype spelled `name` in safetensors' spelling (case matters); none if unknown.
constexpr std::optional<dtype> find_dtype(std::string_view name) {
    for (const dtype_row& row : dtypes) {
        if (row.name == name) return row.id;
    }
    return std::nullopt;
}

}  // namespace mx::tensor

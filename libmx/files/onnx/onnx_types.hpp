// SPDX-License-Identifier: Apache-2.0
// THE LIST of ONNX's tensor types: their numbers in TensorProto.DataType, and the field that holds
// their values when they are not raw bytes (onnx/onnx, onnx/onnx.proto).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// Fields of TensorProto that hold values.
enum class onnx_field : std::uint32_t {
    float_data = 4,
    int32_data = 5,
    string_data = 6,
    int64_data = 7,
    raw_data = 9,
    double_data = 10,
    uint64_data = 11,
};

struct onnx_type {
    std::uint32_t id;
    std::string_view name;
    onnx_field field;
    std::optional<tensor::dtype> type;  ///< none for what is only named
};

inline constexpr std::array onnx_types{
    onnx_type{1, "FLOAT", onnx_field::float_data, tensor::dtype::f32},
    onnx_type{2, "UINT8", onnx_field::int32_data, tensor::dtype::u8},
    onnx_type{3, "INT8", onnx_field::int32_data, tensor::dtype::i8},
    onnx_type{4, "UINT16", onnx_field::int32_data, tensor::dtype::u16},
    onnx_type{5, "INT16", onnx_field::int32_data, tensor::dtype::i16},
    onnx_type{6, "INT32", onnx_field::int32_data, tensor::dtype::i32},
    onnx_type{7, "INT64", onnx_field::int64_data, tensor::dtype::i64},
    onnx_type{8, "STRING", onnx_field::string_data, {}},
    onnx_type{9, "BOOL", onnx_field::int32_data, tensor::dtype::boolean},
    onnx_type{10, "FLOAT16", onnx_field::int32_data, tensor::dtype::f16},
    onnx_type{11, "DOUBLE", onnx_field::double_data, tensor::dtype::f64},
    onnx_type{12, "UINT32", onnx_field::uint64_data, tensor::dtype::u32},
    onnx_type{13, "UINT64", onnx_field::uint64_data, tensor::dtype::u64},
    onnx_type{14, "COMPLEX64", onnx_field::float_data, tensor::dtype::c64},
    onnx_type{15, "COMPLEX128", onnx_field::double_data, tensor::dtype::c128},
    onnx_type{16, "BFLOAT16", onnx_field::int32_data, tensor::dtype::bf16},
    onnx_type{17, "FLOAT8E4M3FN", onnx_field::int32_data, tensor::dtype::f8_e4m3},
    onnx_type{18, "FLOAT8E4M3FNUZ", onnx_field::int32_data, tensor::dtype::f8_e4m3fnuz},
    onnx_type{19, "FLOAT8E5M2", onnx_field::int32_data, tensor::dtype::f8_e5m2},
    onnx_type{20, "FLOAT8E5M2FNUZ", onnx_field::int32_data, tensor::dtype::f8_e5m2fnuz},
    onnx_type{21, "UINT4", onnx_field::int32_data, {}},
    onnx_type{22, "INT4", onnx_field::int32_data, {}},
    onnx_type{23, "FLOAT4E2M1", onnx_field::int32_data, tensor::dtype::f4},
    onnx_type{24, "FLOAT8E8M0", onnx_field::int32_data, tensor::dtype::f8_e8m0},
    onnx_type{25, "UINT2", onnx_field::int32_data, {}},
    onnx_type{26, "INT2", onnx_field::int32_data, {}},
};

/// The row of type `id`, nullptr when it is not in the list.
constexpr const onnx_type* find_onnx_type(std::uint64_t id) {
    for (const onnx_type& type : onnx_types) {
        if (type.id == id) return &type;
    }
    return nullptr;
}

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// THE LISTS of PyTorch's dtypes and storage classes (pytorch/pytorch: torch/storage.py,
// c10/core/ScalarType.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

struct torch_dtype {
    std::string_view name;     ///< torch.NAME
    std::string_view storage;  ///< the class of its typed storage, where it has one
    tensor::dtype type = tensor::dtype::other;
    std::uint64_t width = 1;     ///< bytes of one element
    std::string_view note = {};  ///< why it cannot be read as numbers
};

inline constexpr std::string_view torch_quantized =
    "a quantized tensor of PyTorch; dequantize() it before saving";

inline constexpr std::array torch_dtypes{
    torch_dtype{"float32", "FloatStorage", tensor::dtype::f32, 4},
    torch_dtype{"float64", "DoubleStorage", tensor::dtype::f64, 8},
    torch_dtype{"float16", "HalfStorage", tensor::dtype::f16, 2},
    torch_dtype{"bfloat16", "BFloat16Storage", tensor::dtype::bf16, 2},
    torch_dtype{"uint8", "ByteStorage", tensor::dtype::u8, 1},
    torch_dtype{"int8", "CharStorage", tensor::dtype::i8, 1},
    torch_dtype{"int16", "ShortStorage", tensor::dtype::i16, 2},
    torch_dtype{"int32", "IntStorage", tensor::dtype::i32, 4},
    torch_dtype{"int64", "LongStorage", tensor::dtype::i64, 8},
    torch_dtype{"bool", "BoolStorage", tensor::dtype::boolean, 1},
    torch_dtype{"uint16", "", tensor::dtype::u16, 2},
    torch_dtype{"uint32", "", tensor::dtype::u32, 4},
    torch_dtype{"uint64", "", tensor::dtype::u64, 8},
    torch_dtype{"complex64", "ComplexFloatStorage", tensor::dtype::c64, 8},
    torch_dtype{"complex128", "ComplexDoubleStorage", tensor::dtype::c128, 16},
    torch_dtype{"complex32", "", tensor::dtype::other, 4, "complex numbers of two binary16"},
    torch_dtype{"float8_e4m3fn", "", tensor::dtype::f8_e4m3, 1},
    torch_dtype{"float8_e5m2", "", tensor::dtype::f8_e5m2, 1},
    torch_dtype{"float8_e4m3fnuz", "", tensor::dtype::f8_e4m3fnuz, 1},
    torch_dtype{"float8_e5m2fnuz", "", tensor::dtype::f8_e5m2fnuz, 1},
    torch_dtype{"float8_e8m0fnu", "", tensor::dtype::f8_e8m0, 1},
    // Two elements a byte, the first in the low half: the last extent is twice what PyTorch says.
    torch_dtype{"float4_e2m1fn_x2", "", tensor::dtype::f4, 1},
    torch_dtype{"qint8", "QInt8Storage", tensor::dtype::other, 1, torch_quantized},
    torch_dtype{"quint8", "QUInt8Storage", tensor::dtype::other, 1, torch_quantized},
    torch_dtype{"qint32", "QInt32Storage", tensor::dtype::other, 4, torch_quantized},
    torch_dtype{"quint4x2", "QUInt4x2Storage", tensor::dtype::other, 1, torch_quantized},
    torch_dtype{"quint2x4", "QUInt2x4Storage", tensor::dtype::other, 1, torch_quantized},
    // Bytes without a type of their own; the rebuilding function names one.
    torch_dtype{"", "UntypedStorage", tensor::dtype::u8, 1},
};

}  // namespace mx::io

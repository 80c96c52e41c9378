// SPDX-License-Identifier: Apache-2.0
// Stored types of up to 8 bits: the number of each code.
#pragma once

#include <array>

#include "libmx/tensor/dtypes.hpp"

namespace mx::block {

/// Numbers by code; bits above the type's width are zero.
using code_table = std::array<float, 256>;

/// Whether a type stores numbers as codes, one or two in a byte. Each of these numbers is a bf16.
constexpr bool stores_codes(tensor::dtype type) {
    const tensor::dtype_row& row = tensor::row_of(type);
    return (row.bits == 8 || row.bits == 4) && row.to_f32 == tensor::widening::exact;
}

/// The numbers of a type of up to 8 bits that is exact in float32, sign of zero and NaN included.
const code_table& numbers_of(tensor::dtype type);

}  // namespace mx::block

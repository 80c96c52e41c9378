// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/stored_precision.hpp"

#include "libmx/tensor/dtypes.hpp"

namespace mx::engine {

std::optional<int> bits_of_dtype(std::string_view name) {
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (row.name == name) return row.bits;
    }
    return {};
}

}  // namespace mx::engine

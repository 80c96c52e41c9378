// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/dtype_names.hpp"

#include <fmt/format.h>

#include "libmx/base/status.hpp"

namespace mx::io {

using tensor::dtype;

tensor::dtype parse_dtype(std::string_view option, std::string_view name) {
    std::string upper(name);
    for (char& c : upper) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    const std::optional<dtype> found = tensor::find_dtype(upper);
    if (!found || *found == dtype::other) {
        base::refuse("{}: unknown dtype '{}'; known: {}", option, name, known_dtypes());
    }
    return *found;
}

std::optional<dtype> parse_as(const std::string& as) {
    if (as.empty()) return std::nullopt;
    return parse_dtype("as", as);
}

dtype read_as(dtype stored, std::optional<dtype> as) {
    const bool bare =
        stored == dtype::u8 || stored == dtype::u16 || stored == dtype::u32 || stored == dtype::u64;
    const bool fits = as && tensor::row_of(*as).bits == tensor::row_of(stored).bits;
    return bare && fits ? *as : stored;
}

std::string known_dtypes() {
    std::string text;
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (row.id == dtype::other) continue;
        if (!text.empty()) text += ' ';
        text += row.name;
    }
    return text;
}

}  // namespace mx::io

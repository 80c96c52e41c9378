// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/stored_codes.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "libmx/format/decode.hpp"

namespace mx::block {
namespace {

using tensor::dtype;

// The element format that the safetensors dtype `name` stores.
const format::element_format& stored_format(std::string_view name) {
    for (const format::element_format& f : format::element_formats) {
        if (f.safetensors == name) return f;
    }
    assert(false);
    return format::element_formats[0];
}

code_table table_of(dtype type) {
    code_table table{};
    if (type == dtype::f8_e8m0) {
        for (std::size_t code = 0; code < table.size(); ++code) {
            table[code] = static_cast<float>(format::decode_e8m0(static_cast<int>(code)));
        }
        return table;
    }
    if (type == dtype::i8 || type == dtype::u8) {
        for (std::size_t code = 0; code < table.size(); ++code) {
            const auto byte = static_cast<std::uint8_t>(code);
            table[code] = type == dtype::u8 ? static_cast<float>(byte)
                                            : static_cast<float>(static_cast<std::int8_t>(byte));
        }
        return table;
    }
    std::string_view name = tensor::row_of(type).name;
    const bool fnuz = name.ends_with("FNUZ");
    if (fnuz) name.remove_suffix(4);
    format::element_format f = stored_format(name);
    // FNUZ: one more in the bias, no infinity, and the code of -0 is the only NaN.
    if (fnuz) {
        f.bias += 1;
        f.special = format::specials::none;
    }
    for (int code = 0; code < f.codes(); ++code) {
        table[static_cast<std::size_t>(code)] = format::decode(f, static_cast<std::uint32_t>(code));
    }
    if (fnuz) table[0x80] = std::numeric_limits<float>::quiet_NaN();
    return table;
}

}  // namespace

const code_table& numbers_of(dtype type) {
    static const auto tables = [] {
        std::array<code_table, tensor::dtypes.size()> all{};
        for (const tensor::dtype_row& row : tensor::dtypes) {
            if (row.bits > 8 || row.to_f32 != tensor::widening::exact) continue;
            all[static_cast<std::size_t>(row.id)] = table_of(row.id);
        }
        return all;
    }();
    return tables[static_cast<std::size_t>(type)];
}

}  // namespace mx::block

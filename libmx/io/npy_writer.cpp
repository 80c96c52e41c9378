// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "libmx/io/npy_header.hpp"
#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
std::unique_ptr<array_writer> create_npy(const std::string& path, const planned_array& array) {
    check_ending(path, {".npy"});
    const std::string descr = npy_descr(array.type);
    if (descr.empty()) {
        output_error(
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
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
    constexpr std::size_t prefix = 10;
    const std::size_t length = (prefix + header.size() + 1 + 63) / 64 * 64 - prefix;
    if (length > 0xffff) {
        output_error("the shape has too many axes for .npy", {path, array.name, {}});
    }
    header.resize(length - 1, ' ');
    std::string start = "\x93NUMPY\x01";
    start += '\0';
    start += static_cast<char>(length & 0xff);
    start += static_cast<char>(length >> 8);
    return stage_arrays(path, start + header + '\n', {{0, planned_bytes(path, array)}});
}

}  // namespace mx::io

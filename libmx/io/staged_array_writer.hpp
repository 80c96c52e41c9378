// SPDX-License-Identifier: Apache-2.0
// Array files whose layout is known before the first byte: a header, then plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {

/// Where an array's bytes go; `offset` counts from the end of the header.
struct array_place {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// A file that begins with `header` and holds arrays at `places`.
std::unique_ptr<array_writer> stage_arrays(const std::string& path, const std::string& header,
                                           std::vector<array_place> places);

/// The same, into a stage that has its header already; offsets count from the file's start.
std::unique_ptr<array_writer> stage_arrays(std::unique_ptr<staged_output> stage,
                                           std::vector<array_place> places);

/// Bytes of a planned array. Throws base::error (output) when the shape is too large.
std::uint64_t planned_bytes(const std::string& path, const planned_array& array);

}  // namespace mx::io

// SPDX-License-Identifier: Apache-2.0
// Rates of recipes whose values are not in main memory or are processed on a device, each with the
// bandwidth that bounds it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libmx/codec/backends.hpp"

namespace mx::bench {

/// Where the values are before a pass.
enum class values_place : std::uint8_t {
    device,  ///< in the device's memory; only its kernels are timed
    memory,  ///< in the processor's memory; the way to the device and back is timed
    files,   ///< in files that the system holds in memory; what 'mx analyze' does with them
};

/// What a pass writes besides the sums of every segment.
enum class pass_output : std::uint8_t {
    sums,   ///< nothing
    codes,  ///< codes and the facts of every scale
};

/// Upper bounds of a pass, in bytes per second.
enum class roof : std::uint8_t {
    memory_read,  ///< reads of the processor's memory
    device_read,  ///< reads of the device's memory
    device_copy,  ///< copies inside it, bytes read and bytes written together
    pinned_copy,  ///< copies of pinned memory to the device
};

/// THE LIST of bounds, with their names in records and in text.
struct roof_row {
    roof which;
    std::string_view name;
    std::string_view words;
};
inline constexpr std::array roofs{
    roof_row{roof::memory_read, "memory_read", "reads of memory"},
    roof_row{roof::device_read, "device_read", "reads of the card's memory"},
    roof_row{roof::device_copy, "device_copy", "copies in the card's memory"},
    roof_row{roof::pinned_copy, "pinned_copy", "pinned copies to the card"},
};
const roof_row& row_of(roof r);

struct placed_rate {
    std::size_t recipe;  ///< index into the request
    const codec::backend* backend;
    int threads;  ///< of the processor; 0 where only the device works
    bool histograms;
    values_place from;
    pass_output writes;
    double elements_per_second;  ///< best of all passes
    double bytes_per_second;     ///< of values read and, with codes, a byte for each code written
    roof bound;
    double fraction;  ///< bytes_per_second, of that roof; 1 is the roof
};

/// Completes a rate: `of_roof` is the bound in bytes per second, `bytes` the size of a stored
/// element.
placed_rate rate_below(double of_roof, double bytes, placed_rate r);

}  // namespace mx::bench

// SPDX-License-Identifier: Apache-2.0
// Values without blocks, many at once: what casts ask of a driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/base/notices.hpp"
#include "libmx/base/random.hpp"
#include "libmx/quantize/element_cast.hpp"
#include "libmx/quantize/segment.hpp"

namespace mx::quantize {

struct driver;

/// Consecutive elements of a tensor.
struct element_run {
    stored_values values;  ///< one row
    std::size_t count = 0;
    std::uint64_t first = 0;  ///< index of the first one in the tensor, C order: for draws
    base::random_key key;
};

/// Where the results go, one for each value; null: not wanted.
struct element_results {
    std::uint8_t* codes = nullptr;  ///< 255 where the result has no code
    float* values = nullptr;
};

/// Of one thread. Every one leaves the same bytes.
class element_batch {
  public:
    virtual ~element_batch() = default;
    /// Casts the values. Returns the place of the first result that has no code, or their count.
    /// Throws base::error (unavailable) when a device fails.
    virtual std::size_t cast(const element_cast& to, const element_run& from,
                             const element_results& results) = 0;
};

/// By the host, value by value: the reference, and what drivers without one of their own take.
std::unique_ptr<element_batch> make_host_elements();

/// The driver's own, or the host's. A device that has no room for the values leaves them to the
/// host, and `notices` (not owned) hears of it; with nobody to hear of it, that is an error.
std::unique_ptr<element_batch> make_element_batch(const driver& d, base::notices* notices);

}  // namespace mx::quantize

// SPDX-License-Identifier: Apache-2.0
// Casts of values without blocks, many at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "libmx/base/notices.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/segment.hpp"

namespace mx::codec {

/// Consecutive elements of a tensor.
struct element_run {
    stored_values values;  ///< one row
    std::size_t count = 0;
    std::uint64_t first = 0;  ///< index of the first one in the tensor, C order: for draws
    base::random_key key;
};

/// The outputs, one for each value; null: not requested.
struct element_results {
    std::uint8_t* codes = nullptr;  ///< 255 where the result has no code
    float* values = nullptr;
};

/// Used by one thread. All implementations give the same bytes.
class caster {
  public:
    virtual ~caster() = default;
    /// Casts the values. Returns the index of the first result without a code, or the number of
    /// values. Throws base::error (unavailable) if a device fails.
    virtual std::size_t cast(const element_cast& to, const element_run& from,
                             const element_results& results) = 0;
};

/// On the CPU: value by value, or by table if the input's bits allow one.
std::unique_ptr<caster> make_host_caster(base::notices* notices = nullptr);

/// Casts the first values of a run, all of which must have codes, and returns their number; 0 if it
/// does not support the first one.
using vector_cast = std::function<std::size_t(const element_run&, const element_results&)>;

/// The same with vector kernels: `kernels` returns its kernel for a cast, or nothing.
std::unique_ptr<caster> make_cpu_caster(vector_cast (*kernels)(const element_cast& to));

}  // namespace mx::codec

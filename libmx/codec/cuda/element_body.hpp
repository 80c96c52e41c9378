// SPDX-License-Identifier: Apache-2.0
// The body of the kernel for values without blocks: the reference's cast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "libmx/base/random.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec::cuda {

/// A cast with all data that it refers to. settle() must be called on a copy.
struct element_work {
    element_cast to;
    dialect by;
    base::random_key key;
};
static_assert(std::is_trivially_copyable_v<element_work>);

/// Points the cast to the copy of the dialect next to it.
MX_HD inline void settle(element_work& work) { work.to.number.by = &work.by; }

/// Values and where their results go: device memory. Null: results not requested.
struct element_launch {
    element_work work;
    const std::byte* x;
    tensor::dtype type;
    std::uint32_t count;
    std::uint64_t first;  ///< index of the first one in the tensor
    std::uint8_t* codes;
    float* values;
    std::uint32_t* without_code;  ///< lowered to the index of the first result without a code
};

/// Casts value i under `work`, a settled copy of the launch's. Returns whether the result has a
/// code.
MX_HD inline bool cast_value(const element_work& work, const element_launch& l, std::uint32_t i) {
    const bool random = work.to.number.mode.how == format::rounding::stochastic;
    const std::uint32_t draw = random ? base::random_u32(work.key, l.first + i) : 0u;
    const float x = stored_value(l.type, l.x, i);
    const converted q = cast_element(work.to, base::bits_of(x), draw);
    if (l.codes != nullptr) l.codes[i] = static_cast<std::uint8_t>(q.code);
    if (l.values != nullptr) l.values[i] = q.value;
    return q.code >= 0;
}

// The host interface of the kernel for values without blocks.

/// Queues it on `stream` (a cudaStream_t). Returns the runtime's error code, 0 when it was queued.
int enqueue(const element_launch& l, void* stream);

}  // namespace mx::codec::cuda

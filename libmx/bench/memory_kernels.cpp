// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/bench/memory_kernels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "libmx/bench/memory.hpp"

HWY_BEFORE_NAMESPACE();
namespace mx::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using tag = hn::ScalableTag<std::uint64_t>;

}  // namespace

// Sixteen accumulators allow more loads in flight than any core supports.
std::uint64_t read_words(const std::uint64_t* from, std::size_t words) {
    const tag d;
    const std::size_t lanes = hn::Lanes(d);
    auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
    auto b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0, b7 = a0;
    for (std::size_t i = 0; i < words; i += 16 * lanes) {
        const std::uint64_t* const p = from + i;
        a0 = hn::Xor(a0, hn::Load(d, p));
        a1 = hn::Xor(a1, hn::Load(d, p + 1 * lanes));
        a2 = hn::Xor(a2, hn::Load(d, p + 2 * lanes));
        a3 = hn::Xor(a3, hn::Load(d, p + 3 * lanes));
        a4 = hn::Xor(a4, hn::Load(d, p + 4 * lanes));
        a5 = hn::Xor(a5, hn::Load(d, p + 5 * lanes));
        a6 = hn::Xor(a6, hn::Load(d, p + 6 * lanes));
        a7 = hn::Xor(a7, hn::Load(d, p + 7 * lanes));
        b0 = hn::Xor(b0, hn::Load(d, p + 8 * lanes));
        b1 = hn::Xor(b1, hn::Load(d, p + 9 * lanes));
        b2 = hn::Xor(b2, hn::Load(d, p + 10 * lanes));
        b3 = hn::Xor(b3, hn::Load(d, p + 11 * lanes));
        b4 = hn::Xor(b4, hn::Load(d, p + 12 * lanes));
        b5 = hn::Xor(b5, hn::Load(d, p + 13 * lanes));
        b6 = hn::Xor(b6, hn::Load(d, p + 14 * lanes));
        b7 = hn::Xor(b7, hn::Load(d, p + 15 * lanes));
    }
    a0 = hn::Xor(hn::Xor(hn::Xor(a0, a1), hn::Xor(a2, a3)),
                 hn::Xor(hn::Xor(a4, a5), hn::Xor(a6, a7)));
    b0 = hn::Xor(hn::Xor(hn::Xor(b0, b1), hn::Xor(b2, b3)),
                 hn::Xor(hn::Xor(b4, b5), hn::Xor(b6, b7)));
    std::uint64_t lane[hn::MaxLanes(tag())], all = 0;
    hn::StoreU(hn::Xor(a0, b0), d, lane);
    for (std::size_t i = 0; i < lanes; ++i) all ^= lane[i];
    return all;
}

void copy_words(const std::uint64_t* from, std::uint64_t* to, std::size_t words) {
    const tag d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < words; i += 4 * lanes) {
        const auto v0 = hn::Load(d, from + i);
        const auto v1 = hn::Load(d, from + i + lanes);
        const auto v2 = hn::Load(d, from + i + 2 * lanes);
        const auto v3 = hn::Load(d, from + i + 3 * lanes);
        hn::Stream(v0, d, to + i);
        hn::Stream(v1, d, to + i + lanes);
        hn::Stream(v2, d, to + i + 2 * lanes);
        hn::Stream(v3, d, to + i + 3 * lanes);
    }
    hwy::FlushStream();
}

}  // namespace mx::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mx::bench {

HWY_EXPORT(read_words);
HWY_EXPORT(copy_words);

std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
    return HWY_DYNAMIC_DISPATCH(read_words)(reinterpret_cast<const std::uint64_t*>(from),
                                            bytes / sizeof(std::uint64_t));
}

void copy_all(const std::byte* from, std::byte* to, std::size_t bytes) {
    HWY_DYNAMIC_DISPATCH(copy_words)
    (reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to),
     bytes / sizeof(std::uint64_t));
}

}  // namespace mx::bench
#endif

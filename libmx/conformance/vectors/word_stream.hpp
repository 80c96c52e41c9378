// SPDX-License-Identifier: Apache-2.0
// Uniform random words in a fixed order, from which inputs are generated with integers alone.
#pragma once

#include <cstdint>

#include "libmx/base/random.hpp"

namespace mx::conformance::vectors {

class word_stream {
  public:
    explicit word_stream(const base::random_key& key) : key_(key) {}
    std::uint32_t next() { return base::random_u32(key_, index_++); }
    /// Approximately uniform in [0, n), n > 0.
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
    }
    /// Approximately uniform in [low, high].
    int between(int low, int high) {
        return low + static_cast<int>(below(static_cast<std::uint32_t>(high - low + 1)));
    }
    /// Sum of eight 16-bit words minus its mean: approximately normal, standard deviation about
    /// 2^15.7.
    std::int32_t bell() {
        std::int32_t sum = -8 * 32768;
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t w = next();
            sum += static_cast<std::int32_t>(w & 0xffffu) + static_cast<std::int32_t>(w >> 16);
        }
        return sum;
    }

  private:
    base::random_key key_;
    std::uint64_t index_ = 0;
};

}  // namespace mx::conformance::vectors

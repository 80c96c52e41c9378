// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/selftest/selftest.hpp"

#include <fmt/format.h>

#include <array>

namespace mx::app {
namespace {

constexpr std::array checks{
    selftest_check{"round trips", "every code of every format, decoded and encoded, by dialect",
                   false, check_round_trips},
    selftest_check{"thresholds",
                   "every value, midpoint and overflow point, one ulp either side, by rounding",
                   false, check_thresholds},
    selftest_check{"special values", "zeros, subnormals, the largest float32, Inf and NaN", false,
                   check_special_values},
    selftest_check{"scale rules", "closed forms at every exponent, one ulp either side", false,
                   check_scale_thresholds},
    selftest_check{"disagreements", "both sides of docs/design/dialects.md differ", false,
                   check_disagreements},
    selftest_check{"drivers", "every driver of this machine against the scalar one", false,
                   check_drivers},
    selftest_check{"recipes", "formats, rules, roundings, dialects, offsets against the oracle",
                   true, check_recipes},
};

}  // namespace

void selftest_findings::pass(std::uint64_t cases) {
    const std::lock_guard lock(guard_);
    cases_ += cases;
}

void selftest_findings::differ(selftest_difference d) {
    const std::lock_guard lock(guard_);
    ++cases_;
    ++differences_;
    if (first_.size() < kept) first_.push_back(std::move(d));
}

std::span<const selftest_check> selftest_checks() { return checks; }

std::string hex_bits(std::uint32_t bits) { return fmt::format("{:#010x}", bits); }

}  // namespace mx::app

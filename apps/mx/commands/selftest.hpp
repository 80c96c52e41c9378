// SPDX-License-Identifier: Apache-2.0
// The checks of `mx selftest` on this machine; the list is in selftest.cpp.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::app {

/// One difference, as text that reproduces it.
struct selftest_difference {
    std::string subject;  ///< a recipe, or a format and rounding
    std::string input;    ///< float32 bits in hexadecimal
    std::string expected;
    std::string got;
};

/// Counts cases and keeps the first differences. Thread-safe.
class selftest_findings {
  public:
    static constexpr std::size_t kept = 5;

    /// Counts `cases` comparisons without a difference.
    void pass(std::uint64_t cases);
    void differ(selftest_difference d);
    /// Counts one comparison; calls `describe` if it failed.
    template <typename Describe>
    void expect(bool same, Describe&& describe) {
        if (same) {
            pass(1);
        } else {
            differ(describe());
        }
    }

    std::uint64_t cases() const { return cases_; }
    std::uint64_t differences() const { return differences_; }
    const std::vector<selftest_difference>& first() const { return first_; }

    std::string note;  ///< what was left out, and why; set by one thread

  private:
    std::mutex guard_;
    std::uint64_t cases_ = 0;
    std::uint64_t differences_ = 0;
    std::vector<selftest_difference> first_;
};

struct selftest_options {
    std::uint64_t seed = 0;
    int threads = 0;
};

struct selftest_check {
    std::string_view name;
    std::string_view what;
    bool needs_oracle;
    void (*run)(selftest_findings& into, const selftest_options& options);
};

void check_round_trips(selftest_findings& into, const selftest_options& options);
void check_thresholds(selftest_findings& into, const selftest_options& options);
void check_special_values(selftest_findings& into, const selftest_options& options);
void check_scale_thresholds(selftest_findings& into, const selftest_options& options);
void check_disagreements(selftest_findings& into, const selftest_options& options);
void check_backends(selftest_findings& into, const selftest_options& options);
void check_recipes(selftest_findings& into, const selftest_options& options);

/// "0x3f800000".
std::string hex_bits(std::uint32_t bits);

/// Adds the recipe if the combination exists.
void add_if_valid(std::vector<codec::recipe>& to, const std::string& recipe);

}  // namespace mx::app

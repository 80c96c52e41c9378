// SPDX-License-Identifier: Apache-2.0
// THE LIST of what `mx selftest` checks on the machine it runs on.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mx::app {

/// One difference, in words that reproduce it.
struct selftest_difference {
    std::string subject;  ///< a recipe, or a format and rounding
    std::string input;    ///< float32 bits in hexadecimal
    std::string expected;
    std::string got;
};

/// Counts cases and keeps the first differences. May be used from several threads.
class selftest_findings {
  public:
    static constexpr std::size_t kept = 5;

    /// `cases` comparisons without a difference.
    void pass(std::uint64_t cases);
    void differ(selftest_difference d);
    /// One comparison; `describe` is called when it failed.
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

std::span<const selftest_check> selftest_checks();

void check_round_trips(selftest_findings& into, const selftest_options& options);
void check_thresholds(selftest_findings& into, const selftest_options& options);
void check_special_values(selftest_findings& into, const selftest_options& options);
void check_scale_thresholds(selftest_findings& into, const selftest_options& options);
void check_disagreements(selftest_findings& into, const selftest_options& options);
void check_drivers(selftest_findings& into, const selftest_options& options);
void check_recipes(selftest_findings& into, const selftest_options& options);

/// Whether this build holds the oracle.
bool selftest_has_oracle();

/// "0x3f800000".
std::string hex_bits(std::uint32_t bits);

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// Counts and exact sums as a text, and back: how parts of a run hand over what they found. One
// function tells the order of the figures for both ways, so that these cannot disagree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/exact_sum.hpp"

namespace mx::base {

/// Figures in hexadecimal digits with a space behind each. Writing appends what is handed over;
/// reading adds what was written to it, exactly, so that the order of several texts does not
/// matter. Reading throws base::error (input) where the text holds something else.
class tally_text {
  public:
    /// Writes.
    tally_text() = default;
    /// Reads `from`, which has to stay where it is.
    explicit tally_text(std::string_view from) : rest_(from), reads_(true) {}

    bool reads() const { return reads_; }
    const std::string& text() const { return text_; }

    void add(std::uint64_t& n);
    void add(exact_sum& s);
    /// Counts of which many are zero: the index and the count of the others.
    void add(std::span<std::uint64_t> counts);
    /// The larger one stays.
    void raise(std::uint32_t& n);
    void raise(double& x);  ///< not negative
    /// What was written takes the place of what is there.
    void set(std::uint64_t& n);
    void set(double& x);

    /// Throws base::error (input) unless all was read.
    void end() const;

  private:
    std::string_view word();
    std::uint64_t read_number();
    void write_number(std::uint64_t n);

    std::string text_;
    std::string_view rest_;
    bool reads_ = false;
};

}  // namespace mx::base

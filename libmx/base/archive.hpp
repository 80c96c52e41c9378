// SPDX-License-Identifier: Apache-2.0
// Counts and exact sums as text, and back: how parts of a run store what they measured. One
// function lists the figures for both directions, so that these cannot differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "libmx/base/exact_sum.hpp"

namespace mx::base {

/// Figures in hexadecimal digits, each followed by a space. Writing appends the values; reading
/// adds what was written, exactly, so that the order of several texts does not matter. Reading
/// throws base::error (input) if the text contains anything else.
class archive {
  public:
    /// Writes.
    archive() = default;
    /// Reads `from`, which must outlive this object.
    explicit archive(std::string_view from) : rest_(from), reads_(true) {}

    bool reads() const { return reads_; }
    const std::string& text() const { return text_; }

    void add(std::uint64_t& n);
    void add(exact_sum& s);
    /// Counts of which many are zero: the index and the value of the others.
    void add(std::span<std::uint64_t> counts);
    /// Keeps the larger one.
    void raise(std::uint32_t& n);
    void raise(double& x);  ///< not negative
    /// What was written replaces the value.
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

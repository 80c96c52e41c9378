// SPDX-License-Identifier: Apache-2.0
// What comparing one file with the emulator finds: counts, and the first differences in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/format/element_formats.hpp"

namespace mx::pipeline {

/// A number as it is stored and as it reads: "0x40c00000" and "6". Both empty where there is none.
struct shown_number {
    std::string hex;
    std::string decimal;
};

/// One place where the file and the emulator disagree.
struct difference {
    std::string tensor;  ///< of the file; "metadata KEY" for a number in the metadata
    std::string by;      ///< the recipe, or the dialect of a conversion
    std::uint64_t index = 0;
    std::optional<std::uint64_t> block;     ///< of a blocks file
    std::optional<std::uint64_t> position;  ///< in the block; none for a value of the whole block
    shown_number input;
    shown_number expected;  ///< what the file says
    shown_number got;       ///< what the emulator gives
};

/// Values of contract tensors that were not compared, and why.
struct skipped_values {
    std::string reason;
    std::uint64_t places = 0;  ///< blocks or inputs
    std::uint64_t values = 0;
};

/// The codes of an element or scale format and what they stand for.
struct code_table {
    int bits = 0;  ///< codes are below 2^bits
    std::vector<float> value;

    bool has(std::uint32_t code) const { return code < value.size(); }
};
code_table codes_of(const format::element_format& f);
code_table e8m0_codes();

/// Where a value stands in its tensor, and what it was made from.
struct vector_place {
    std::uint64_t index = 0;
    std::optional<std::uint64_t> block;
    std::optional<std::uint64_t> position;
    std::optional<std::uint32_t> input;  ///< float32 bits
};

/// Collects. Differences are counted all, kept up to `show`.
class comparison {
  public:
    explicit comparison(std::size_t show) : show_(show) {}

    /// What the following checks are about.
    void about(std::string tensor, std::string by);

    /// Float32 bits; NaNs are one class, zeros keep their sign.
    void check_f32(const vector_place& at, std::uint32_t expected, std::uint32_t got);
    /// Float32 (bits = 32) or f16 (16) results of which every bit counts, NaNs included.
    void check_bits(const vector_place& at, int bits, std::uint32_t expected, std::uint32_t got);
    /// Codes; NaN codes are one class, any other two codes differ. `got` may be -1 (no code), and
    /// `expected` a byte that is no code at all.
    void check_code(const vector_place& at, const code_table& codes, std::uint32_t expected,
                    int got);
    /// Plain integers: masks, indices, counts. No `got`: the emulator has nothing at that place.
    void check_integer(const vector_place& at, std::optional<std::uint64_t> expected,
                       std::optional<std::uint64_t> got);

    void skip(std::string_view reason, std::uint64_t places, std::uint64_t values);

    std::uint64_t compared() const { return compared_; }
    std::uint64_t differences() const { return differences_; }
    const std::vector<difference>& first() const { return first_; }
    const std::vector<skipped_values>& skipped() const { return skipped_; }

  private:
    void differ(const vector_place& at, shown_number expected, shown_number got);

    std::size_t show_;
    std::string tensor_;
    std::string by_;
    std::uint64_t compared_ = 0;
    std::uint64_t differences_ = 0;
    std::vector<difference> first_;
    std::vector<skipped_values> skipped_;
};

}  // namespace mx::pipeline

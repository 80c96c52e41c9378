// SPDX-License-Identifier: Apache-2.0
// What comparing one file with the emulator finds: counts, and the first differences in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/format/element_formats.hpp"

namespace mx::conformance::verify {

/// A number as it is stored and as it reads: "0x40c00000" and "6". Both empty where there is none.
struct shown_number {
    std::string hex;
    std::string decimal;
};

/// What one output of a matrix instruction was made from: codes along k in hex, with blanks
/// between.
struct output_operands {
    std::uint64_t tile = 0, row = 0, column = 0;
    std::string a, b;
    std::string sfa, sfb;  ///< scales, empty where there are none
    std::string c;
};

/// How the models of the list, and those with one or a few fields changed, fit recorded outputs.
struct model_fit {
    std::string model;  ///< that differs in the fewest places
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    std::vector<std::string> equally;  ///< others, one field away, that differ in no more
};

/// What was found in one tensor.
struct tensor_differences {
    std::string tensor;
    std::uint64_t compared = 0, differences = 0;
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
    std::optional<output_operands> operands;
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

/// What one file came to.
struct verification {
    std::string file;
    std::string kind;
    std::string by;  ///< the canonical recipe, or the format and the dialects compared
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    std::vector<skipped_values> skipped;
    std::vector<difference> first;  ///< at most verify_options::show
    /// Of recordings of matrix instructions.
    std::vector<tensor_differences> tensors;
    std::optional<model_fit> fit;  ///< where the model differs, or there is none
};

/// In how many places two lists of as many outputs differ.
std::size_t differences_in(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// Collects. Differences are counted all, kept up to `show`.
class comparison {
  public:
    explicit comparison(std::size_t show) : show_(show) {}

    /// What the following checks are about.
    void about(std::string tensor, std::string by);

    /// Float32 bits; NaNs are one class, zeros keep their sign.
    void check_f32(const vector_place& at, std::uint32_t expected, std::uint32_t got);
    /// Float32 (bits = 32) or f16 (16) results of which every bit counts, NaNs included. True when
    /// they differ and the difference is kept: operands() may tell what it was made from.
    bool check_bits(const vector_place& at, int bits, std::uint32_t expected, std::uint32_t got);
    /// Codes; NaN codes are one class, any other two codes differ. `got` may be -1 (no code), and
    /// `expected` a byte that is no code at all.
    void check_code(const vector_place& at, const code_table& codes, std::uint32_t expected,
                    int got);
    /// Plain integers: masks, indices, counts. No `got`: the emulator has nothing at that place.
    void check_integer(const vector_place& at, std::optional<std::uint64_t> expected,
                       std::optional<std::uint64_t> got);

    void operands(output_operands made_from) {
        found_.first.back().operands = std::move(made_from);
    }
    /// Keeps at most so many differences of one about(), so that others are seen.
    void spread(std::size_t each) { each_ = each; }
    void fit(model_fit best) { found_.fit = std::move(best); }
    void tally(tensor_differences of) { found_.tensors.push_back(std::move(of)); }

    void skip(std::string_view reason, std::uint64_t places, std::uint64_t values);

    std::uint64_t differences() const { return found_.differences; }
    /// All of it; file, kind and by are the caller's.
    verification& found() { return found_; }

  private:
    bool differ(const vector_place& at, shown_number expected, shown_number got);

    std::size_t show_;
    std::size_t each_ = std::numeric_limits<std::size_t>::max();
    std::size_t kept_ = 0;  // since about()
    std::string tensor_;
    std::string by_;
    verification found_;
};

}  // namespace mx::conformance::verify

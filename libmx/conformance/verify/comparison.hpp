// SPDX-License-Identifier: Apache-2.0
// The result of comparing one file with the emulator: counts, and the first differences in full.
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

/// A number as stored and as text: "0x40c00000" and "6". Both are empty if there is none.
struct shown_number {
    std::string hex;
    std::string decimal;
};

/// The operands of one output of a matrix instruction: codes along k in hexadecimal, separated by
/// blanks.
struct output_operands {
    std::uint64_t tile = 0, row = 0, column = 0;
    std::string a, b;
    std::string sfa, sfb;  ///< scales, empty where there are none
    std::string c;
};

/// How well the models of the list, and variants with one or a few fields changed, fit recorded
/// outputs.
struct model_fit {
    std::string model;  ///< that differs in the fewest places
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    std::vector<std::string> equally;  ///< others, one field away, that differ in no more
};

/// The differences in one tensor.
struct tensor_differences {
    std::string tensor;
    std::uint64_t compared = 0, differences = 0;
};

/// One position at which the file and the emulator differ.
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

/// Number of contract values that were not compared, and the reason.
struct skipped_values {
    std::string reason;
    std::uint64_t places = 0;  ///< blocks or inputs
    std::uint64_t values = 0;
};

/// The codes of an element or scale format and their values.
struct code_table {
    int bits = 0;  ///< codes are below 2^bits
    std::vector<float> value;

    bool has(std::uint32_t code) const { return code < value.size(); }
};
code_table codes_of(const format::element_format& f);
code_table e8m0_codes();

/// The position of a value in its tensor, and its inputs.
struct vector_place {
    std::uint64_t index = 0;
    std::optional<std::uint64_t> block;
    std::optional<std::uint64_t> position;
    std::optional<std::uint32_t> input;  ///< float32 bits
};

/// The result of verifying one file.
struct verification {
    std::string file;
    std::string kind;
    std::string by;  ///< the canonical recipe, or the format and the dialects compared
    std::uint64_t compared = 0;
    std::uint64_t differences = 0;
    std::vector<skipped_values> skipped;
    std::vector<difference> first;  ///< at most verify_options::show
    /// For recordings of matrix instructions.
    std::vector<tensor_differences> tensors;
    std::optional<model_fit> fit;  ///< where the model differs, or there is none
};

/// The number of positions at which two lists of equal length differ.
std::size_t differences_in(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// Collects differences. All are counted; the first `show` are kept.
class comparison {
  public:
    explicit comparison(std::size_t show) : show_(show) {}

    /// Sets the tensor and implementation of the following checks.
    void about(std::string tensor, std::string by);

    /// Counts values that are known to be equal.
    void agree(std::uint64_t values) { found_.compared += values; }
    /// Compares float32 bits. All NaNs are equal; zeros of different sign differ.
    void check_f32(const vector_place& at, std::uint32_t expected, std::uint32_t got);
    /// Compares float32 (bits = 32) or f16 (16) results bit for bit, NaNs included. Returns true if
    /// they differ and the difference was kept; operands() may then add the inputs.
    bool check_bits(const vector_place& at, int bits, std::uint32_t expected, std::uint32_t got);
    /// Compares codes. All NaN codes are equal; any other two codes differ. `got` may be -1 (no
    /// code), and `expected` a byte that is not a code.
    void check_code(const vector_place& at, const code_table& codes, std::uint32_t expected,
                    int got);
    /// Compares plain integers: masks, indices, counts. `got` is nullopt if the emulator has no
    /// value there.
    void check_integer(const vector_place& at, std::optional<std::uint64_t> expected,
                       std::optional<std::uint64_t> got);

    void operands(output_operands made_from) {
        found_.first.back().operands = std::move(made_from);
    }
    /// Keeps at most `each` differences per about(), so that the first tensor does not use up the
    /// limit.
    void spread(std::size_t each) { each_ = each; }
    void fit(model_fit best) { found_.fit = std::move(best); }
    void tally(tensor_differences of) { found_.tensors.push_back(std::move(of)); }

    void skip(std::string_view reason, std::uint64_t places, std::uint64_t values);

    std::uint64_t differences() const { return found_.differences; }
    /// The result so far; the caller sets file, kind and by.
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

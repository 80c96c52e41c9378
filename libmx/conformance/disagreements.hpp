// SPDX-License-Identifier: Apache-2.0
// THE LIST of disagreements: inputs for which two implementations of a format give different
// results. docs/design/dialects.md prints the results; tests/conformance compares them with
// observed results of the implementations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mx::conformance {

/// The operation that is applied to the input.
enum class probe : std::uint8_t {
    row,      ///< a row of a tensor of its own, in blocks of a recipe; the last block answers
    element,  ///< the saturating conversion of one value to an element format
    e8m0,     ///< the conversion of one value to E8M0
};

/// One of the two implementations that are compared.
struct respondent {
    std::string_view dialect;
    std::string_view question;  ///< a recipe, or element format and rounding ("e2m1 rtne")
};

struct disagreement {
    int number;
    std::string_view title;
    std::string_view story;  ///< who else does what
    probe kind;
    std::span<const std::uint32_t> input;  ///< float32 bits
    respondent a, b;
};

/// The result of an implementation. For a row: the last block's scale and its first element.
struct response {
    int scale_code;  ///< -1 where there is no scale, or it is a float32
    float scale;
    int code;  ///< of the element; -1 where it has none
    float value;
};

/// Every disagreement, by number.
std::span<const disagreement> disagreements();

/// The result of `who`; stochastic rounding draws zero. Throws base::error (usage) for an operation
/// that the dialect does not have.
response ask(const disagreement& d, const respondent& who);

/// "scale 0x7f = 1, element 0x7 = 6".
std::string to_string(const response& r);

/// The input as numbers: "6144.0005 (0x45c00001)"; zeros in a row are counted.
std::string input_text(const disagreement& d);

}  // namespace mx::conformance

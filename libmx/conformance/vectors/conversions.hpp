// SPDX-License-Identifier: Apache-2.0
// THE LIST of conversion instructions that can be recorded, and the emulator's results for each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/format/element_formats.hpp"

namespace mx::conformance::vectors {

/// The chips that have an instruction.
enum class conversion_since : std::uint8_t {
    sm89,   ///< Ada, Hopper and what followed
    sm100,  ///< Blackwell by its architecture's own target (sm_100a, sm_103a, sm_120a)
};

enum class conversion_input : std::uint8_t { f32, bf16x2, f16x2 };
enum class conversion_rounding : std::uint8_t { nearest, up, zero };

/// cvt to codes of at most one byte. Both halves of a pair are recorded.
struct narrowing {
    std::string name;         ///< of the file
    std::string instruction;  ///< PTX
    std::string_view format;  ///< an element format, or "e8m0"
    conversion_input from = conversion_input::f32;
    conversion_rounding how = conversion_rounding::nearest;
    bool relu = false;
    bool saturate = true;
    conversion_since since = conversion_since::sm100;
};

/// THE LIST: fp8, fp6 and fp4 from float32, fp8 and fp4 also from binary16, with and without .relu;
/// scales from float32 and bfloat16, rounded up or down, with and without saturation.
const std::vector<narrowing>& narrowings();

/// cvt from all codes of a format to f16 or bf16.
struct widening {
    std::string_view name;
    std::string_view instruction;
    std::string_view format;
    bool relu = false;
    conversion_since since = conversion_since::sm100;

    /// Number of codes of the format.
    std::size_t codes() const;
};
inline constexpr std::array widenings{
    widening{"e4m3.f16", "cvt.rn.f16x2.e4m3x2", "e4m3", false, conversion_since::sm89},
    widening{"e5m2.f16", "cvt.rn.f16x2.e5m2x2", "e5m2", false, conversion_since::sm89},
    widening{"e2m1.f16", "cvt.rn.f16x2.e2m1x2", "e2m1"},
    widening{"e2m3.f16", "cvt.rn.f16x2.e2m3x2", "e2m3"},
    widening{"e3m2.f16", "cvt.rn.f16x2.e3m2x2", "e3m2"},
    widening{"ue8m0.bf16", "cvt.rn.bf16x2.ue8m0x2", "e8m0"},
    widening{"e4m3.relu.f16", "cvt.rn.relu.f16x2.e4m3x2", "e4m3", true, conversion_since::sm89},
    widening{"e5m2.relu.f16", "cvt.rn.relu.f16x2.e5m2x2", "e5m2", true, conversion_since::sm89},
    widening{"e2m1.relu.f16", "cvt.rn.relu.f16x2.e2m1x2", "e2m1", true},
    widening{"e2m3.relu.f16", "cvt.rn.relu.f16x2.e2m3x2", "e2m3", true},
    widening{"e3m2.relu.f16", "cvt.rn.relu.f16x2.e3m2x2", "e3m2", true},
};

/// cvt.rs: stochastic rounding of two (f16, bf16) or four values with one word of random bits. Only
/// on sm_100a and sm_103a.
struct stochastic_narrowing {
    std::string_view name;
    std::string_view instruction;
    std::string_view format;  ///< an element format, "f16" or "bf16"
    int values = 4;
    int code_bits = 8;  ///< that a value takes in the result
    bool relu = false;
    bool saturate = true;
};
inline constexpr std::array stochastic_narrowings{
    stochastic_narrowing{"f16.rs", "cvt.rs.f16x2.f32", "f16", 2, 16, false, false},
    stochastic_narrowing{"f16.rs.relu", "cvt.rs.relu.f16x2.f32", "f16", 2, 16, true, false},
    stochastic_narrowing{"f16.rs.sat", "cvt.rs.satfinite.f16x2.f32", "f16", 2, 16},
    stochastic_narrowing{"bf16.rs", "cvt.rs.bf16x2.f32", "bf16", 2, 16, false, false},
    stochastic_narrowing{"bf16.rs.relu", "cvt.rs.relu.bf16x2.f32", "bf16", 2, 16, true, false},
    stochastic_narrowing{"bf16.rs.sat", "cvt.rs.satfinite.bf16x2.f32", "bf16", 2, 16},
    stochastic_narrowing{"e4m3.rs", "cvt.rs.satfinite.e4m3x4.f32", "e4m3", 4, 8},
    stochastic_narrowing{"e5m2.rs", "cvt.rs.satfinite.e5m2x4.f32", "e5m2", 4, 8},
    stochastic_narrowing{"e3m2.rs", "cvt.rs.satfinite.e3m2x4.f32", "e3m2", 4, 8},
    stochastic_narrowing{"e2m3.rs", "cvt.rs.satfinite.e2m3x4.f32", "e2m3", 4, 8},
    stochastic_narrowing{"e2m1.rs", "cvt.rs.satfinite.e2m1x4.f32", "e2m1", 4, 4},
    stochastic_narrowing{"e4m3.rs.relu", "cvt.rs.relu.satfinite.e4m3x4.f32", "e4m3", 4, 8, true},
    stochastic_narrowing{"e5m2.rs.relu", "cvt.rs.relu.satfinite.e5m2x4.f32", "e5m2", 4, 8, true},
    stochastic_narrowing{"e3m2.rs.relu", "cvt.rs.relu.satfinite.e3m2x4.f32", "e3m2", 4, 8, true},
    stochastic_narrowing{"e2m3.rs.relu", "cvt.rs.relu.satfinite.e2m3x4.f32", "e2m3", 4, 8, true},
    stochastic_narrowing{"e2m1.rs.relu", "cvt.rs.relu.satfinite.e2m1x4.f32", "e2m1", 4, 4, true},
};

/// The byte of the random word that each value uses, the lowest value of the result first.
struct random_byte_order {
    std::string_view name;
    std::array<int, 4> byte;
    std::array<bool, 4> reversed;  ///< its bits from the other end
    /// The byte that supplies the lower bits, in the same order, for 16 random bits; -1 for eight
    /// bits.
    std::array<int, 4> below{-1, -1, -1, -1};
};
/// Published orders: the first for fp8 on sm_100a, the next two for sm_103a (all three from
/// Dao-AILab/quack, quack/rounding.py), the fourth from the PTX ISA's text on e2m1x4. The last two
/// are sm_103a's, extended to the 16 bits per two values in the PTX ISA's figures.
inline constexpr std::array random_byte_orders{
    random_byte_order{"straight", {0, 1, 2, 3}, {false, false, false, false}},
    random_byte_order{"halves interleaved, fp8", {1, 0, 3, 2}, {false, true, false, true}},
    random_byte_order{"halves interleaved, fp4", {2, 0, 3, 1}, {false, true, false, true}},
    random_byte_order{"low bytes, then high bytes", {0, 2, 1, 3}, {false, false, false, false}},
    random_byte_order{
        "16 bits of a half, fp8", {1, 0, 3, 2}, {false, true, false, true}, {0, 1, 2, 3}},
    random_byte_order{
        "16 bits of both halves, fp4", {2, 0, 3, 1}, {false, true, false, true}, {0, 2, 1, 3}},
};

/// The row of this name, or nullptr.
const narrowing* find_narrowing(std::string_view name);
const widening* find_widening(std::string_view name);
const stochastic_narrowing* find_stochastic_narrowing(std::string_view name);

/// The emulator's result for the float32 with bits `x` (bf16 and f16 sources: widened).
class narrower {
  public:
    explicit narrower(const narrowing& row);
    std::uint32_t operator()(std::uint32_t x) const;

  private:
    const narrowing* row_;
    const format::element_format* element_;  ///< nullptr: e8m0
};

/// The emulator's f16 or bf16 bits of `code`; NaN is 0x7fff.
std::uint32_t widened(const widening& row, std::uint32_t code);

/// The emulator's result word for the values `x` (lowest part of the result first).
std::uint32_t stochastic_result(const stochastic_narrowing& row, const random_byte_order& order,
                                const std::uint32_t* x, std::uint32_t random);

}  // namespace mx::conformance::vectors

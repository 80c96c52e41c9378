// SPDX-License-Identifier: Apache-2.0
// THE LIST of kinds of blocks that `mx vectors` generates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/scale/rule_input.hpp"

namespace mx::conformance::vectors {

/// Uniform words in a fixed order.
class word_stream {
  public:
    explicit word_stream(const base::random_key& key) : key_(key) {}
    std::uint32_t next() { return base::random_u32(key_, index_++); }
    /// Uniform enough in [0, n), n > 0.
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>((std::uint64_t{next()} * n) >> 32);
    }
    /// In [low, high].
    int between(int low, int high) {
        return low + static_cast<int>(below(static_cast<std::uint32_t>(high - low + 1)));
    }

  private:
    base::random_key key_;
    std::uint64_t index_ = 0;
};

/// What a generator knows about the recipe.
struct input_facts {
    std::vector<float> magnitudes;  ///< finite magnitudes of the element format, ascending
    std::vector<float> values;      ///< finite values of all codes
    int emax = 0;
    int mantissa_bits = 0;
    std::uint32_t max_mantissa = 0;  ///< float32 mantissa field of the largest magnitude
    int low = 30, high = 220;        ///< exponent fields of ordinary block maxima
};

using fill_function = void (*)(const input_facts& f, word_stream& words, std::span<float> block);

struct input_category {
    std::string_view name;
    fill_function fill;
    bool extreme;  ///< far beyond ordinary magnitudes: left out where a tensor scale is shared
};

void fill_gaussian(const input_facts& f, word_stream& words, std::span<float> block);
void fill_heavy(const input_facts& f, word_stream& words, std::span<float> block);
void fill_below_power(const input_facts& f, word_stream& words, std::span<float> block);
void fill_at_power(const input_facts& f, word_stream& words, std::span<float> block);
void fill_wide(const input_facts& f, word_stream& words, std::span<float> block);
void fill_thresholds(const input_facts& f, word_stream& words, std::span<float> block);
void fill_tiny(const input_facts& f, word_stream& words, std::span<float> block);
void fill_huge(const input_facts& f, word_stream& words, std::span<float> block);
void fill_zeros(const input_facts& f, word_stream& words, std::span<float> block);
void fill_sparse(const input_facts& f, word_stream& words, std::span<float> block);
void fill_non_finite(const input_facts& f, word_stream& words, std::span<float> block);
void fill_codes(const input_facts& f, word_stream& words, std::span<float> block);

inline constexpr std::array input_categories{
    input_category{"gaussian", fill_gaussian, false},
    input_category{"heavy-tailed", fill_heavy, false},
    input_category{"clustered below 2^k", fill_below_power, false},
    input_category{"clustered at 2^k", fill_at_power, false},
    input_category{"wide range", fill_wide, false},
    input_category{"maximum at a rounding threshold +-1 ulp, elements at ties +-1 ulp",
                   fill_thresholds, false},
    input_category{"tiny and subnormal", fill_tiny, true},
    input_category{"huge", fill_huge, true},
    input_category{"signed zeros", fill_zeros, false},
    input_category{"sparse", fill_sparse, false},
    input_category{"non-finite", fill_non_finite, false},
    input_category{"values of codes", fill_codes, false},
};

}  // namespace mx::conformance::vectors

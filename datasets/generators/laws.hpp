// SPDX-License-Identifier: Apache-2.0
// THE LIST of distributions that synthetic tensors are drawn from. All are symmetric about zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mx::synth {

enum class family : std::uint8_t {
    uniform,     ///< on (-1, 1)
    normal,      ///< standard normal
    student_t,   ///< `parameter` (even, at least 4) degrees of freedom, scaled to unit variance
    log_normal,  ///< random sign times exp(`parameter` * standard normal); median magnitude 1
};

enum class law : std::uint8_t { uniform, normal, student_t14, student_t6, student_t4, log_normal2 };

struct law_row {
    law id;
    std::string_view name;
    family kind;
    int parameter;
    std::string_view summary;
};

inline constexpr std::array laws{
    law_row{law::uniform, "uniform", family::uniform, 0, "tight clusters"},
    law_row{law::normal, "normal", family::normal, 0, "biases, centred gains"},
    law_row{law::student_t14, "student_t14", family::student_t, 14, "most weights, kurtosis 3.6"},
    law_row{law::student_t6, "student_t6", family::student_t, 6,
            "query and key weights, kurtosis 6"},
    law_row{law::student_t4, "student_t4", family::student_t, 4, "activations, infinite kurtosis"},
    law_row{law::log_normal2, "log_normal2", family::log_normal, 2, "gradients"},
};

/// The row of `id`.
constexpr const law_row& row_of(law id) { return laws[static_cast<std::size_t>(id)]; }

static_assert([] {
    for (std::size_t i = 0; i < laws.size(); ++i) {
        if (static_cast<std::size_t>(laws[i].id) != i) return false;
    }
    return true;
}());

/// Which end of the distribution of the magnitude a probability is counted from.
enum class tail : std::uint8_t { upper, lower };

/// The magnitude m >= 0 with P(|X| > m) = p (upper) or P(|X| < m) = p (lower), for X of `row` and
/// 2^-40 <= p <= 1/2. Only +, -, *, / and sqrt are used: the result is the same on every IEEE
/// machine. Relative error below 1e-12.
double magnitude_quantile(const law_row& row, tail end, double p);

}  // namespace mx::synth

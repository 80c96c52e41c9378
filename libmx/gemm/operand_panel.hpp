// SPDX-License-Identifier: Apache-2.0
// Rows of an operand, decoded once and laid out for the vector kernels: the same k of adjacent rows
// is contiguous. Portable; the layout is the same for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/gemm/factor.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// Columns of the product in one group: rows of B interleaved, a whole number of vectors.
inline constexpr std::size_t panel_lanes = 32;

/// The exponent of terms that do not take part in alignment: two of them plus every scale stay
/// below every floor, and within 16 bits.
inline constexpr std::int16_t no_exponent = -4096;

/// The properties of an element that kernels read.
enum class panel_values : std::uint8_t {
    narrow,    ///< float32 and alignment exponent
    wide,      ///< float64 and alignment exponent
    integers,  ///< e2m1 in halves; alignment is by block scales alone
};

/// What is packed, and how it is cut.
struct panel_shape {
    panel_values values = panel_values::narrow;
    std::size_t length = 0;  ///< elements of a step
    std::size_t part = 0;  ///< those of a step that share a scale: length, or a group's (integers)
    std::size_t lanes = panel_lanes;  ///< rows side by side: panel_lanes, or 1
};

/// A packed operand. NaN and infinite elements, and those beyond the end of k or of the rows, are
/// packed as zeros; `special` tells where NaN and infinities are.
class operand_panel {
  public:
    /// Packs `o`, which must outlive the panel, with this many threads (base::thread_count).
    operand_panel(const operand& o, const panel_shape& shape, int threads);

    const panel_shape& shape() const { return shape_; }
    const operand& source() const { return source_; }

    /// Address of the first element of a step: element k of lane i is at k * lanes + i.
    const float* narrow(std::size_t group, std::size_t step) const {
        return narrow_.data() + element(group, step);
    }
    const double* wide(std::size_t group, std::size_t step) const {
        return wide_.data() + element(group, step);
    }
    const std::int16_t* integers(std::size_t group, std::size_t step) const {
        return integers_.data() + element(group, step);
    }
    /// no_exponent if the element is zero.
    const std::int16_t* exponents(std::size_t group, std::size_t step) const {
        return exponents_.data() + element(group, step);
    }

    /// Address of the first part of a step: part p of lane i is at p * lanes + i. Without scales,
    /// exponents are 0 and factors 1.
    const std::int16_t* scale_exponents(std::size_t group, std::size_t step) const {
        return scale_exponents_.data() + part(group, step);
    }
    /// The scales themselves (integers only); 0 if they are NaN.
    const double* scale_values(std::size_t group, std::size_t step) const {
        return scale_values_.data() + part(group, step);
    }
    /// Bit k is set if element k of the part and its scale are not zero (integers only).
    const std::uint16_t* nonzero(std::size_t group, std::size_t step) const {
        return nonzero_.data() + part(group, step);
    }

    /// Whether an element or a scale of the step is NaN or infinity in any lane.
    bool special(std::size_t group, std::size_t step) const {
        return special_.data()[group * steps_ + step] != 0;
    }

  private:
    std::size_t element(std::size_t group, std::size_t step) const {
        return (group * steps_ + step) * shape_.length * shape_.lanes;
    }
    std::size_t part(std::size_t group, std::size_t step) const {
        return (group * steps_ + step) * (shape_.length / shape_.part) * shape_.lanes;
    }
    factor unpacked(std::uint32_t code) const;
    void reserve();
    void pack_group(std::size_t group);
    bool pack_elements(std::size_t row, std::size_t group, std::size_t step, std::size_t lane);
    bool pack_scales(std::size_t row, std::size_t group, std::size_t step, std::size_t lane);

    panel_shape shape_;
    const operand& source_;
    std::size_t groups_, steps_;
    std::vector<factor> table_;  // of all codes, if there are few
    base::aligned_buffer<float> narrow_;
    base::aligned_buffer<double> wide_;
    base::aligned_buffer<std::int16_t> integers_, exponents_, scale_exponents_;
    base::aligned_buffer<double> scale_values_;
    base::aligned_buffer<std::uint16_t> nonzero_;
    base::aligned_buffer<std::uint8_t> special_;
};

}  // namespace mx::gemm

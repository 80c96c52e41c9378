// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/operand_panel.hpp"

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/base/parallel.hpp"

namespace mx::gemm {
namespace {

constexpr int most_table_bits = 8;

}  // namespace

operand_panel::operand_panel(const operand& o, const panel_shape& shape, int threads)
    : shape_(shape),
      source_(o),
      groups_((o.rows + shape.lanes - 1) / shape.lanes),
      steps_((o.depth + shape.length - 1) / shape.length) {
    if (o.format->code_bits() <= most_table_bits) {
        for (std::uint32_t code = 0; code < 1u << o.format->code_bits(); ++code) {
            table_.push_back(unpack(*o.format, subnormal_alignment::least_exponent, code));
        }
    }
    reserve();
    const std::size_t at_once = panel_lanes / shape.lanes;  // groups per task
    base::parallel_for((groups_ + at_once - 1) / at_once, threads, nullptr,
                       [&](std::uint64_t task, int) {
                           const std::size_t last = std::min(groups_, (task + 1) * at_once);
                           for (std::size_t g = task * at_once; g < last; ++g) pack_group(g);
                       });
}

void operand_panel::reserve() {
    const std::size_t elements = groups_ * steps_ * shape_.length * shape_.lanes;
    const std::size_t parts = elements / shape_.part;
    special_.reserve(groups_ * steps_);
    scale_exponents_.reserve(parts);
    if (shape_.values == panel_values::integers) {
        integers_.reserve(elements);
        scale_values_.reserve(parts);
        nonzero_.reserve(parts);
        return;
    }
    exponents_.reserve(elements);
    if (shape_.values == panel_values::wide) {
        wide_.reserve(elements);
    } else {
        narrow_.reserve(elements);
    }
}

void operand_panel::pack_group(std::size_t group) {
    for (std::size_t step = 0; step < steps_; ++step) {
        bool special = false;
        for (std::size_t lane = 0; lane < shape_.lanes; ++lane) {
            const std::size_t row = group * shape_.lanes + lane;
            special = pack_elements(row, group, step, lane) || special;
            // After the elements: a part with a zero scale has no non-zero elements.
            special = pack_scales(row, group, step, lane) || special;
        }
        special_.data()[group * steps_ + step] = special ? 1 : 0;
    }
}

factor operand_panel::unpacked(std::uint32_t code) const {
    if (table_.empty()) return unpack(*source_.format, subnormal_alignment::least_exponent, code);
    return table_[code & (table_.size() - 1)];
}

// Packs the elements of a step; returns whether one is NaN or infinite.
bool operand_panel::pack_elements(std::size_t row, std::size_t group, std::size_t step,
                                  std::size_t lane) {
    const std::size_t from = step * shape_.length;
    const std::size_t to =
        row < source_.rows ? std::min(from + shape_.length, source_.depth) : from;
    const std::uint32_t* const codes = source_.codes.data() + row * source_.depth;
    const int mantissa_bits = source_.format->mantissa_bits;
    std::size_t at = element(group, step) + lane;
    bool special = false;
    for (std::size_t k = from; k < from + shape_.length; ++k, at += shape_.lanes) {
        factor x;
        if (k < to) x = unpacked(codes[k]);
        if (x.what != value_class::finite) {
            special = true;
            x = {};
        }
        if (shape_.values == panel_values::integers) {
            const int halves = x.significand * (1 << x.exponent);
            integers_.data()[at] = static_cast<std::int16_t>(halves);
            continue;
        }
        exponents_.data()[at] = x.significand == 0 ? no_exponent : x.exponent;
        const double value = x.significand * base::exact_pow2(x.exponent - mantissa_bits);
        if (shape_.values == panel_values::wide) {
            wide_.data()[at] = value;
        } else {
            narrow_.data()[at] = static_cast<float>(value);
        }
    }
    return special;
}

// Packs the scales of a step; returns whether one is NaN.
bool operand_panel::pack_scales(std::size_t row, std::size_t group, std::size_t step,
                                std::size_t lane) {
    const operand& o = source_;
    const std::size_t per_row = o.scaling == 0 ? 0 : (o.depth + o.scale_block - 1) / o.scale_block;
    bool special = false;
    std::size_t at = part(group, step) + lane;
    std::size_t k = step * shape_.length;
    for (std::size_t p = 0; p < shape_.length / shape_.part; ++p, at += shape_.lanes) {
        scale_factor s;
        if (row < o.rows && k < o.depth && o.scaling != 0) {
            const std::size_t block = k / o.scale_block;
            s = unpack_scale(o.scaling, o.scales[row * per_row + block]);
        }
        k += shape_.part;
        if (s.nan) {
            special = true;
            s = {0, 0, true};
        }
        scale_exponents_.data()[at] = s.exponent;
        if (shape_.values != panel_values::integers) continue;
        const int fraction_bits = scale_fraction_bits(o.scaling);
        scale_values_.data()[at] = s.significand * base::exact_pow2(s.exponent - fraction_bits);
        std::uint32_t nonzero = 0;
        const std::int16_t* const elements = integers_.data() + element(group, step) + lane;
        for (std::size_t i = 0; i < shape_.part && s.significand != 0; ++i) {
            const bool is = elements[(p * shape_.part + i) * shape_.lanes] != 0;
            nonzero |= (is ? 1u : 0u) << i;
        }
        nonzero_.data()[at] = static_cast<std::uint16_t>(nonzero);
    }
    return special;
}

}  // namespace mx::gemm

// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/simd/software_vectors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/exact_dot.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm::simd {
namespace {

// Rows of B side by side in groups: k of lane i of a group at k * panel_lanes + i.
template <typename T>
std::vector<T> in_groups(const std::vector<T>& rows, std::size_t count, std::size_t depth) {
    const std::size_t groups = (count + panel_lanes - 1) / panel_lanes;
    std::vector<T> out(groups * depth * panel_lanes);
    for (std::size_t r = 0; r < count; ++r) {
        T* const to = out.data() + r / panel_lanes * depth * panel_lanes + r % panel_lanes;
        for (std::size_t k = 0; k < depth; ++k) to[k * panel_lanes] = rows[r * depth + k];
    }
    return out;
}

using lanes = std::array<float, panel_lanes>;

// Calls change(row, group, first lane, last lane, accumulators) for every row of the tile and every
// group of columns it touches.
template <typename Change>
void each_group(const tile& where, std::uint32_t* acc, Change change) {
    const std::size_t end = where.col + where.cols;
    for (std::size_t r = 0; r < where.rows; ++r) {
        for (std::size_t col = where.col; col < end;) {
            const std::size_t group = col / panel_lanes;
            const std::size_t next = std::min(end, (group + 1) * panel_lanes);
            std::uint32_t* const at = acc + r * where.cols + (col - where.col);
            const std::size_t first = col % panel_lanes;
            lanes c{};
            for (std::size_t i = 0; i < next - col; ++i) {
                c[first + i] = base::float_from_bits(at[i]);
            }
            change(where.row + r, group, first, first + (next - col), c);
            for (std::size_t i = 0; i < next - col; ++i) at[i] = base::bits_of(c[first + i]);
            col = next;
        }
    }
}

class exact_vectors final : public engine {
  public:
    exact_vectors(const kernels& k, const operand& a, const operand& b)
        : kernels_(k),
          depth_(a.depth),
          a_(exact_values(a)),
          b_(in_groups(exact_values(b), b.rows, b.depth)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_group(
            where, acc,
            [&](std::size_t row, std::size_t group, std::size_t first, std::size_t last, lanes& c) {
                const double* const a = a_.data() + row * depth_ + steps.first;
                const double* const b = b_.data() + (group * depth_ + steps.first) * panel_lanes;
                lanes least, most;
                kernels_.exact_ends(a, b, steps.count, c.data(), least.data(), most.data());
                for (std::size_t i = first; i < last; ++i) {
                    // Where both ends round alike, so does all that is between them.
                    const bool sure = least[i] == most[i] && least[i] != 0;
                    c[i] = sure ? least[i] : alone(a, b + i, steps.count, c[i]);
                }
            });
    }

  private:
    static float alone(const double* a, const double* b, std::size_t count, float c) {
        std::vector<double> column(count);
        for (std::size_t k = 0; k < count; ++k) column[k] = b[k * panel_lanes];
        return exact_dot(a, column.data(), count, c);
    }

    const kernels& kernels_;
    std::size_t depth_;
    std::vector<double> a_, b_;
};

class chain_vectors final : public engine {
  public:
    chain_vectors(const kernels& k, const operand& a, const operand& b, intake how)
        : kernels_(k),
          depth_(a.depth),
          a_(dequantized(a, how)),
          b_(in_groups(dequantized(b, how), b.rows, b.depth)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_group(where, acc,
                   [&](std::size_t row, std::size_t group, std::size_t, std::size_t, lanes& c) {
                       kernels_.chain(a_.data() + row * depth_ + steps.first,
                                      b_.data() + (group * depth_ + steps.first) * panel_lanes,
                                      steps.count, steps.descending, c.data());
                   });
    }

  private:
    const kernels& kernels_;
    std::size_t depth_;
    std::vector<float> a_, b_;
};

}  // namespace

bool has_software_kernels(target t, const accumulator& m) {
    return m.how == algorithm::exact || (m.how == algorithm::fma_chain && t != target::sse4);
}

std::unique_ptr<engine> make_software_vectors(const kernels& k, const operand& a, const operand& b,
                                              const accumulator& m) {
    if (m.how == algorithm::exact) return std::make_unique<exact_vectors>(k, a, b);
    return std::make_unique<chain_vectors>(k, a, b, m.enters);
}

}  // namespace mx::gemm::simd

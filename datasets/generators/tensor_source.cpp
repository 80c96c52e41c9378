// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/tensor_source.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "datasets/generators/exact_math.hpp"
#include "datasets/generators/quantile_table.hpp"
#include "datasets/generators/words.hpp"
#include "libmx/base/half.hpp"

namespace mx::synth {

static_assert(std::endian::native == std::endian::little, "bytes are copied as they lie in memory");

namespace {

constexpr std::size_t block_size = 1024;

std::vector<float> column_factors(const outlier_columns& outliers, std::uint64_t columns,
                                  std::uint64_t seed) {
    if (outliers.share <= 0.0 || columns == 0) return {};
    std::vector<float> factors(columns, 1.0f);
    const auto wanted = static_cast<std::uint64_t>(outliers.share * static_cast<double>(columns));
    const base::random_key key{seed, base::tensor_id(outliers.key + ".outlier_columns")};
    for (std::uint64_t k = 0; k < std::max<std::uint64_t>(wanted, 1); ++k) {
        const std::uint64_t column = base::random_u32(key, 2 * k) % columns;
        const double u = base::random_u32(key, 2 * k + 1) * 0x1p-32;
        factors[column] = static_cast<float>(outliers.factor * (0.5 + u));
    }
    return factors;
}

template <typename T>
void store(std::span<std::byte> out, std::size_t index, T value) {
    std::memcpy(out.data() + index * sizeof(T), &value, sizeof(T));
}

/// bfloat16 bits of a finite x, to nearest even.
std::uint16_t bf16_of(float x) {
    const std::uint32_t u = base::bits_of(x);
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

void narrow(tensor::dtype type, std::span<const float> values, std::span<std::byte> out) {
    if (type == tensor::dtype::bf16) {
        for (std::size_t i = 0; i < values.size(); ++i) store(out, i, bf16_of(values[i]));
    } else if (type == tensor::dtype::f16) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            store(out, i, base::half_saturated(values[i]));
        }
    } else {
        std::memcpy(out.data(), values.data(), out.size());
    }
}

}  // namespace

std::uint64_t byte_count(const tensor_spec& spec) {
    return tensor::byte_count(spec.type, tensor::element_count(spec.shape).value()).value();
}

tensor_source::tensor_source(const tensor_spec& spec, std::uint64_t seed)
    : spec_(spec),
      elements_(tensor::element_count(spec.shape).value()),
      element_bytes_(static_cast<std::uint64_t>(tensor::row_of(spec.type).bits) / 8),
      columns_(spec.shape.empty() ? 1 : spec.shape.back()),
      rows_(spec.shape.size() < 2 ? 1 : spec.shape[spec.shape.size() - 2]),
      // Not the bare name: stochastic rounding draws by that, and its draws of the same seed would
      // follow the values.
      key_{seed, base::tensor_id(spec.name + ".values")},
      row_key_{seed, base::tensor_id(spec.name + ".row_factors")},
      column_factors_(column_factors(spec.outliers, columns_, seed)) {}

float tensor_source::row_factor(std::uint64_t row) const {
    if (row < spec_.zero_rows) return 0.0f;
    if (spec_.row_spread == 0.0) return static_cast<float>(spec_.scale);
    const double z = table_of(law::normal)(base::random_u32(row_key_, row));
    return static_cast<float>(spec_.scale * exact_exp(spec_.row_spread * z));
}

void tensor_source::fill_f32(std::uint64_t first, std::span<float> out) const {
    const quantile_table& table = table_of(spec_.draw);
    const auto centre = static_cast<float>(spec_.centre);
    std::array<std::uint32_t, block_size> words;
    for (std::size_t done = 0; done < out.size();) {
        const std::size_t count = std::min(block_size, out.size() - done);
        fill_words(key_, first + done, std::span(words).first(count));
        for (std::size_t i = 0; i < count;) {
            const std::uint64_t row = (first + done + i) / columns_;
            const std::uint64_t column = (first + done + i) % columns_;
            const std::size_t run =
                static_cast<std::size_t>(std::min<std::uint64_t>(count - i, columns_ - column));
            const float factor = row_factor(row);
            float* to = out.data() + done + i;
            const std::uint32_t* from = words.data() + i;
            if (column_factors_.empty()) {
                for (std::size_t k = 0; k < run; ++k) to[k] = centre + factor * table(from[k]);
            } else {
                const float* factors = column_factors_.data() + column;
                for (std::size_t k = 0; k < run; ++k) {
                    to[k] = centre + factor * factors[k] * table(from[k]);
                }
            }
            i += run;
        }
        done += count;
    }
}

void tensor_source::fill(std::uint64_t first, std::span<std::byte> out) const {
    const std::size_t count = out.size() / element_bytes_;
    switch (spec_.kind) {
        case content::random: {
            std::array<float, block_size> values;
            for (std::size_t done = 0; done < count; done += block_size) {
                const auto part = std::span(values).first(std::min(block_size, count - done));
                fill_f32(first + done, part);
                narrow(spec_.type, part,
                       out.subspan(done * element_bytes_, part.size() * element_bytes_));
            }
            break;
        }
        case content::causal_mask:
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t row = (first + i) / columns_ % rows_;
                store(out, i, static_cast<std::uint8_t>((first + i) % columns_ <= row ? 1 : 0));
            }
            break;
        case content::positions:
            for (std::size_t i = 0; i < count; ++i) {
                store(out, i, static_cast<std::int64_t>(first + i));
            }
            break;
        case content::frequencies:
            for (std::size_t i = 0; i < count; ++i) {
                const double at = static_cast<double>(first + i) / static_cast<double>(elements_);
                store(out, i, static_cast<float>(exact_exp(-at * exact_log(10000.0))));
            }
            break;
    }
}

}  // namespace mx::synth

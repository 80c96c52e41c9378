// SPDX-License-Identifier: Apache-2.0
#include "datasets/generators/words.hpp"

#include <cstddef>

namespace mx::synth {

void fill_words(const base::random_key& key, std::uint64_t first, std::span<std::uint32_t> out) {
    std::size_t i = 0;
    while (i < out.size() && (first + i) % 4 != 0) {
        out[i] = base::random_u32(key, first + i);
        ++i;
    }
    const auto key0 = static_cast<std::uint32_t>(key.seed);
    const auto key1 = static_cast<std::uint32_t>(key.seed >> 32);
    const auto tensor0 = static_cast<std::uint32_t>(key.tensor);
    const auto tensor1 = static_cast<std::uint32_t>(key.tensor >> 32);
    for (; i + 4 <= out.size(); i += 4) {
        const std::uint64_t block = (first + i) / 4;
        const base::philox_words words =
            base::philox4x32_10({{static_cast<std::uint32_t>(block),
                                  static_cast<std::uint32_t>(block >> 32), tensor0, tensor1}},
                                key0, key1);
        for (std::size_t k = 0; k < 4; ++k) out[i + k] = words.word[k];
    }
    for (; i < out.size(); ++i) out[i] = base::random_u32(key, first + i);
}

}  // namespace mx::synth

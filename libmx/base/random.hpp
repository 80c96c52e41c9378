// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: a draw depends on (seed, tensor, element index) alone, never on
// the order in which elements are visited, so any number of threads or devices agrees.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/macros.hpp"

namespace mx::base {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// SC 2011): four 32-bit words from a 128-bit counter and a 64-bit key.
struct philox_words {
    std::uint32_t word[4];
};

MX_HD inline philox_words philox4x32_10(philox_words counter, std::uint32_t key0,
                                        std::uint32_t key1) {
    std::uint32_t* c = counter.word;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
        const std::uint32_t next[4] = {
            static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0, static_cast<std::uint32_t>(p1),
            static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1, static_cast<std::uint32_t>(p0)};
        for (int i = 0; i < 4; ++i) c[i] = next[i];
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/// What identifies a stream of draws: a seed and a tensor.
struct random_key {
    std::uint64_t seed = 0;
    std::uint64_t tensor = 0;
};

/// 32 uniform bits for element `index`; four neighbours share one Philox block.
MX_HD inline std::uint32_t random_u32(const random_key& key, std::uint64_t index) {
    const std::uint64_t block = index >> 2;
    const philox_words out = philox4x32_10(
        {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
          static_cast<std::uint32_t>(key.tensor), static_cast<std::uint32_t>(key.tensor >> 32)}},
        static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32));
    return out.word[index & 3];
}

/// Identity of a tensor in random_key: FNV-1a (64 bit) of its name, so that a draw does not depend
/// on which other tensors or files are read.
constexpr std::uint64_t tensor_id(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

}  // namespace mx::base

// SPDX-License-Identifier: Apache-2.0
// The parts of a recording, one file each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mx_capture/device.hpp"
#include "libmx/io/writer.hpp"

namespace mx::capture {

/// The extent of a recording.
struct amounts {
    std::uint64_t seed = 1;
    std::size_t tiles = 16;        ///< per distribution, outputs in full
    std::size_t hash_groups = 14;  ///< per distribution, of hash_tiles tiles: 10^6 dot products
    std::size_t chain_tiles = 4;   ///< the same of chains
    std::size_t chain_groups = 2;
    std::uint32_t cell_stride = 1;  ///< every so many float32 enter the hashes
    std::size_t stochastic = std::size_t{1} << 20;
    std::size_t largest_product = 4096;  ///< k of a library's products
};
/// A reduced extent, for a quick check and for tests.
amounts quick_amounts();

/// Tiles per group of hashes.
inline constexpr std::size_t hash_tiles = 64;
/// Instructions per chain.
inline constexpr std::size_t chain_steps = 8;

/// Opens the device; called once per process.
using open_device = std::function<std::unique_ptr<device>()>;

/// The vector file that a part fills.
struct recording {
    io::metadata_map metadata;
    std::vector<io::planned_array> plan = {};
    std::vector<std::vector<std::byte>> data = {};

    /// A tensor of `words` in the width of `type` (U8, U16 or U32).
    void add(std::string name, tensor::dtype type, tensor::shape shape,
             std::span<const std::uint32_t> words);
    /// 64-bit words as U32 of n x 2, low half first.
    void add_words64(std::string name, std::span<const std::uint64_t> words);
    /// Adds a number to the metadata.
    void note(const std::string& key, std::uint64_t n) { metadata[key] = std::to_string(n); }
    /// Adds the metadata of generated inputs.
    void note_generator(std::string_view version, std::uint64_t seed);
    /// Adds the operands of `what`, in instruction order along k.
    void note_operands(const vectors::mma_case& what);
    /// Throws base::error (output).
    void write(const std::string& path) const;
};

struct part {
    std::string file;         ///< "mma/tcgen05.f16.bf16.bf16.f32.single.safetensors"
    std::uint64_t bytes = 0;  ///< of its tensors
    /// Queries the device; the metadata common to all parts are already set.
    std::function<void(device& d, recording& to)> record;
};

/// The parts for a chip: conversions, matrix instructions, products of the library.
void append_conversions(std::vector<part>& parts, const chip& c, const amounts& a);
void append_instructions(std::vector<part>& parts, const chip& c, const amounts& a);
void append_products(std::vector<part>& parts, const chip& c, const amounts& a);
/// Parts for the vector files of matrix instructions in `folder` that `c` supports.
void append_replays(std::vector<part>& parts, const chip& c, const std::string& folder);

}  // namespace mx::capture

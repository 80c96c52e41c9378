// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_inputs.hpp"

#include <fmt/format.h>

#include "libmx/base/named.hpp"
#include "libmx/conformance/vectors/mma_fills.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"

namespace mx::conformance::vectors {
namespace {

std::string stream_name(const mma_case& what, const mma_distribution& d, std::uint64_t index) {
    const std::string scale = what.scale == nullptr
                                  ? "none"
                                  : fmt::format("{}/{}", what.scale->format, what.scale->block);
    return fmt::format("{} {} {} {} {} {}x{} {} {}", mma_inputs_version, what.a->name, what.b->name,
                       scale, what.f16 ? "f16" : "f32", what.steps, what.instruction_k, d.name,
                       index);
}

}  // namespace

const gemm::operand_format& mma_case::accumulator() const {
    static const gemm::operand_format* const half = gemm::find_operand_format("f16");
    static const gemm::operand_format* const single = gemm::find_operand_format("f32");
    // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): both are in the list
    return f16 ? *half : *single;
}

std::span<const mma_distribution> mma_distributions() {
    static const std::vector<mma_distribution> all = [] {
        std::vector<mma_distribution> list;
        for (const auto& part : {random_distributions(), directed_probes()}) {
            list.insert(list.end(), part.begin(), part.end());
        }
        return list;
    }();
    return all;
}

const mma_distribution* find_mma_distribution(std::string_view name) {
    return base::find_named(mma_distributions(), name);
}

mma_tile generate_mma_tile(const mma_case& what, const mma_distribution& d, std::uint64_t seed,
                           std::uint64_t index) {
    word_stream words({seed, base::tensor_id(stream_name(what, d, index))});
    mma_tile tile;
    mma_tile_maker maker(what, words, index, tile);
    d.fill(maker);
    return tile;
}

std::uint64_t hash_of(const mma_tile& tile, std::uint64_t index) {
    std::uint64_t place = index << 32;
    std::uint64_t sum = 0;
    const auto add = [&](const auto& values) {
        for (const auto value : values) sum += hash_term(place++, value);
    };
    add(tile.a);
    add(tile.b);
    add(tile.sfa);
    add(tile.sfb);
    add(tile.c);
    return sum;
}

}  // namespace mx::conformance::vectors

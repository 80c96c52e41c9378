// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "apps/mx_capture/known_products.hpp"
#include "apps/mx_capture/parts.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"
#include "libmx/conformance/verify/mma_file.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;
using namespace conformance::verify;

// Tiles generated and multiplied at a time.
constexpr std::size_t pairs_per_batch = 1024;

struct plan {
    instruction i;
    mma_case what;  // with the steps
    std::size_t tiles = 0, groups = 0;
    std::uint64_t seed = 0;
};

std::vector<mma_distribution> distributions_of(const plan& p) {
    std::vector<mma_distribution> list;
    for (const mma_distribution& dist : mma_distributions()) {
        if (!dist.accumulate && !p.i.can_discard()) continue;
        if (dist.probes != nullptr && dist.probes(p.what) == 0) continue;
        list.push_back(dist);
    }
    return list;
}

// Tiles of a distribution whose outputs are recorded, and groups of those that are hashed.
struct extent {
    std::size_t whole, groups;
};
extent extent_of(const plan& p, const mma_distribution& dist) {
    if (dist.probes != nullptr) return {dist.probes(p.what), 0};
    return {p.tiles, p.groups};
}

std::uint64_t bytes_of(const plan& p) {
    std::uint64_t bytes = 0;
    for (const mma_distribution& dist : distributions_of(p)) {
        const extent e = extent_of(p, dist);
        bytes += e.whole * mma_tile_outputs * (p.what.f16 ? 2 : 4);
        bytes += e.groups * sizeof(std::uint64_t);
    }
    return bytes;
}

// Records a distribution; returns the hash of its inputs.
std::uint64_t record_distribution(const plan& p, const mma_distribution& dist, device& d,
                                  recording& to) {
    const auto [whole, groups] = extent_of(p, dist);
    const std::size_t count = whole + groups * hash_tiles;
    std::vector<std::uint32_t> outputs;
    std::vector<std::uint64_t> hashes(groups);
    std::uint64_t inputs = 0;
    for (std::size_t first = 0; first < count; first += pairs_per_batch) {
        std::vector<mma_tile> tiles(std::min(pairs_per_batch, count - first));
        std::vector<std::uint64_t> made(tiles.size());
        base::parallel_for(tiles.size(), 0, nullptr, [&](std::uint64_t t, int) {
            tiles[t] = generate_mma_tile(p.what, dist, p.seed, first + t);
            made[t] = hash_of(tiles[t], first + t);
        });
        for (const std::uint64_t hash : made) inputs += hash;
        const auto got = d.multiply(p.i, p.what.steps, dist.accumulate, tiles);
        for (std::size_t j = 0; j < got.size(); ++j) {
            const std::size_t tile = first + j / mma_tile_outputs;
            if (tile < whole) {
                outputs.push_back(got[j]);
                continue;
            }
            const std::size_t beyond = tile - whole;
            const std::uint64_t place =
                beyond % hash_tiles * mma_tile_outputs + j % mma_tile_outputs;
            hashes[beyond / hash_tiles] += hash_term(place, got[j]);
        }
    }
    to.add(fmt::format("{}.D", dist.name), p.what.f16 ? tensor::dtype::u16 : tensor::dtype::u32,
           {whole, mma_tile_rows, mma_tile_cols}, outputs);
    if (groups != 0) to.add_words64(fmt::format("{}.H", dist.name), hashes);
    return inputs;
}

void record(plan p, device& d, recording& to) {
    note_placement(p.i, p.what, d, to);
    std::uint64_t inputs = 0;
    for (const mma_distribution& dist : distributions_of(p)) {
        inputs += mixed(record_distribution(p, dist, d, to));
    }
    to.note_operands(p.what);
    to.note_generator(mma_inputs_version, p.seed);
    to.note("hash_tiles", hash_tiles);
    to.metadata["kind"] = "mma";
    to.metadata["mode"] = p.what.steps == 1 ? "single" : "chain";
    to.metadata["inputs_hash"] = hash_text(inputs);
    if (p.i.by == unit::tcgen05) {
        to.metadata["instruction_descriptor"] = fmt::format("{:#010x}", p.i.descriptor);
    }
}

}  // namespace

void append_instructions(std::vector<part>& parts, const chip& c, const amounts& a) {
    for (const instruction& i : instructions_of(c)) {
        for (const std::size_t steps : {std::size_t{1}, chain_steps}) {
            const bool chain = steps != 1;
            plan p{i, i.what, chain ? a.chain_tiles : a.tiles,
                   chain ? a.chain_groups : a.hash_groups, a.seed};
            p.what.steps = steps;
            parts.push_back(
                {fmt::format("mma/{}.{}.safetensors", i.name, chain ? "chain" : "single"),
                 bytes_of(p), [p](device& d, recording& to) { record(p, d, to); }});
        }
    }
}

}  // namespace mx::capture

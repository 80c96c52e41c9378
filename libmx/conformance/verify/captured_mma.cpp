// SPDX-License-Identifier: Apache-2.0
// Files of kind `mma` with generated inputs: DIST.D contains the outputs of the first tiles of a
// distribution, DIST.H hashes of further tiles, `hash_tiles` tiles each.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"
#include "libmx/conformance/verify/best_fit.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/accumulators.hpp"

namespace mx::conformance::verify {
namespace {

constexpr std::size_t most_tiles = 1u << 20;
constexpr std::size_t most_terms = std::size_t{1} << 27;  // tiles x k, per distribution
constexpr std::size_t most_fitted = 512;                  // per distribution

// The outputs of a distribution that are recorded in full.
struct recorded_outputs {
    const vectors::mma_distribution* distribution;
    std::vector<std::uint32_t> bits;
};

struct capture {
    const vector_file& file;
    comparison& found;
    vectors::mma_case what;
    std::uint64_t seed = 0;
    std::optional<gemm::accumulator> model = {};
    std::string_view without_model = no_model;  // the reason if there is none
    std::size_t hash_tiles = 0;
    std::vector<recorded_outputs> outputs = {};
};

// Hashes of the inputs of tiles [0, count), and the model's outputs for them.
struct tile_results {
    std::uint64_t inputs = 0;
    std::vector<std::uint32_t> outputs;  // of tiles below `whole`
    std::vector<std::uint64_t> hashes;   // of groups of the remaining tiles
};

tile_results results_of(const capture& c, const vectors::mma_distribution& d, std::size_t whole,
                        std::size_t groups) {
    const std::size_t count = whole + groups * c.hash_tiles;
    std::vector<std::uint64_t> inputs(count);
    std::vector<std::uint64_t> terms(count);
    tile_results r;
    r.outputs.resize(whole * vectors::mma_tile_outputs);
    base::parallel_for(count, 0, nullptr, [&](std::uint64_t i, int) {
        const vectors::mma_tile tile = vectors::generate_mma_tile(c.what, d, c.seed, i);
        inputs[i] = vectors::hash_of(tile, i);
        if (!c.model) return;
        const auto outputs = vectors::multiply_tile(c.what, tile, d.accumulate, *c.model);
        if (i < whole) {
            std::ranges::copy(outputs, r.outputs.begin() + static_cast<std::ptrdiff_t>(
                                                               i * vectors::mma_tile_outputs));
            return;
        }
        const std::uint64_t first = (i - whole) % c.hash_tiles * vectors::mma_tile_outputs;
        for (std::size_t j = 0; j < outputs.size(); ++j) {
            terms[i] += vectors::hash_term(first + j, outputs[j]);
        }
    });
    for (const std::uint64_t hash : inputs) r.inputs += hash;
    r.hashes.assign(groups, 0);
    for (std::size_t i = whole; i < count; ++i) r.hashes[(i - whole) / c.hash_tiles] += terms[i];
    return r;
}

// The number of tiles in DIST.D; rejects malformed shapes.
std::size_t whole_tiles(const vector_file& file, const std::string& tensor) {
    const tensor::shape& shape = file.info(tensor).shape;
    if (shape.size() != 3 || shape[1] != vectors::mma_tile_rows ||
        shape[2] != vectors::mma_tile_cols) {
        file.fail_in(tensor, "is {}; tiles x {} x {} is expected", tensor::to_string(shape),
                     vectors::mma_tile_rows, vectors::mma_tile_cols);
    }
    return static_cast<std::size_t>(shape[0]);
}

std::size_t hash_groups(const vector_file& file, const std::string& tensor) {
    if (!file.has(tensor)) return 0;
    const tensor::shape& shape = file.info(tensor).shape;
    if (shape.size() != 2 || shape[1] != 2) {
        file.fail_in(tensor, "is {}; groups x 2 is expected", tensor::to_string(shape));
    }
    return static_cast<std::size_t>(shape[0]);
}

std::string hex_of(std::span<const std::uint32_t> codes, int bits) {
    std::string text;
    for (const std::uint32_t code : codes) {
        text += fmt::format("{}{:0{}x}", text.empty() ? "" : " ", code, (bits + 3) / 4);
    }
    return text;
}

output_operands operands_of(const capture& c, const vectors::mma_distribution& d,
                            std::uint64_t index) {
    output_operands o;
    o.tile = index / vectors::mma_tile_outputs;
    o.row = index % vectors::mma_tile_outputs / vectors::mma_tile_cols;
    o.column = index % vectors::mma_tile_cols;
    const vectors::mma_tile tile = vectors::generate_mma_tile(c.what, d, c.seed, o.tile);
    const auto part = [](const auto& all, std::uint64_t row, std::size_t width) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * width);
        return std::vector<std::uint32_t>(begin, begin + static_cast<std::ptrdiff_t>(width));
    };
    const std::size_t depth = c.what.depth();
    o.a = hex_of(part(tile.a, o.row, depth), c.what.a->code_bits());
    o.b = hex_of(part(tile.b, o.column, depth), c.what.b->code_bits());
    if (c.what.scale != nullptr) {
        o.sfa = hex_of(part(tile.sfa, o.row, c.what.blocks()), 8);
        o.sfb = hex_of(part(tile.sfb, o.column, c.what.blocks()), 8);
    }
    const std::uint32_t bits = tile.c[index % vectors::mma_tile_outputs];
    o.c = d.accumulate ? hex_of({&bits, 1}, c.what.f16 ? 16 : 32) : "not read";
    return o;
}

// Rejects tile counts that the case does not define or that exceed the maximum.
void require_tiles(const capture& c, const vectors::mma_distribution& d, std::size_t whole,
                   std::size_t groups) {
    const std::string outputs = fmt::format("{}.D", d.name);
    if (d.probes != nullptr && (whole != d.probes(c.what) || groups != 0)) {
        c.file.fail_in(outputs, "holds {} tiles; of {} x {}, k_total={}, there are {}", whole,
                       c.what.a->name, c.what.b->name, c.what.depth(), d.probes(c.what));
    }
    const std::size_t most = std::min(most_tiles, most_terms / c.what.depth());
    if (whole > most || groups > (most - whole) / c.hash_tiles) {
        c.file.fail_in(outputs, "calls for {} tiles and {} groups of {}; at most {} tiles are made",
                       whole, groups, c.hash_tiles, most);
    }
}

// Compares one distribution; returns the hash of its inputs.
std::uint64_t compare_distribution(capture& c, const vectors::mma_distribution& d) {
    const std::string outputs = fmt::format("{}.D", d.name);
    const std::string hashes = fmt::format("{}.H", d.name);
    const std::size_t whole = whole_tiles(c.file, outputs);
    const std::size_t groups = hash_groups(c.file, hashes);
    require_tiles(c, d, whole, groups);
    auto recorded = c.file.words(outputs, c.what.f16 ? 16 : 32, whole * vectors::mma_tile_outputs);
    const auto recorded_hashes =
        groups == 0 ? std::vector<std::uint64_t>{} : words64(c.file, hashes, groups);
    const tile_results r = results_of(c, d, whole, groups);
    if (!c.model) {
        c.found.skip(c.without_model, whole + groups, recorded.size() + groups);
        if (is_placed(c.file)) c.outputs.push_back({&d, std::move(recorded)});
        return r.inputs;
    }
    const std::uint64_t before = c.found.differences();
    c.found.about(outputs, to_string(*c.model));
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        const bool kept =
            c.found.check_bits({i, {}, {}, {}}, c.what.f16 ? 16 : 32, recorded[i], r.outputs[i]);
        if (kept) c.found.operands(operands_of(c, d, i));
    }
    c.found.tally({outputs, recorded.size(), c.found.differences() - before});
    c.found.about(hashes, to_string(*c.model));
    for (std::size_t i = 0; i < groups; ++i) {
        c.found.check_integer({i, {}, {}, {}}, recorded_hashes[i], r.hashes[i]);
    }
    c.outputs.push_back({&d, std::move(recorded)});
    return r.inputs;
}

std::optional<model_fit> fit_of(const capture& c) {
    std::vector<recorded_tile> tiles;
    for (const recorded_outputs& o : c.outputs) {
        const std::size_t count = std::min(o.bits.size() / vectors::mma_tile_outputs, most_fitted);
        for (std::size_t t = 0; t < count; ++t) {
            tiles.push_back({vectors::generate_mma_tile(c.what, *o.distribution, c.seed, t),
                             o.distribution->accumulate,
                             std::span(o.bits).subspan(t * vectors::mma_tile_outputs,
                                                       vectors::mma_tile_outputs)});
        }
    }
    return best_fit(c.what, tiles, c.model);
}

void require_known_tensors(const vector_file& file) {
    for (const io::tensor_info& t : file.tensors()) {
        const std::size_t dot = t.name.rfind('.');
        const std::string dist = t.name.substr(0, dot == std::string::npos ? 0 : dot);
        const bool known = t.name == dist + ".D" || t.name == dist + ".H";
        if (!known || vectors::find_mma_distribution(dist) == nullptr || !file.has(dist + ".D")) {
            file.fail_in(
                t.name,
                "is not a tensor that this version knows in a recording of generated inputs");
        }
    }
}

}  // namespace

std::string verify_captured_mma(const vector_file& file, const verify_options& options,
                                comparison& found) {
    capture c{file, found, mma_case_of(file)};
    c.what.f16 = file.at("acc_format") == "f16";
    c.what.instruction_k = size_of(file, "instruction_k", 1, 256);
    c.seed = generator_seed(file, vectors::mma_inputs_version);
    const std::size_t total = size_of(file, "k_total", 1, 1 << 16);
    c.what.steps = total / c.what.instruction_k;
    if (c.what.depth() != total || c.what.instruction_k % 4 != 0 ||
        (c.what.scale != nullptr && c.what.instruction_k % c.what.scale->block != 0)) {
        file.fail("its metadata says k_total={} of instructions of {}", total,
                  c.what.instruction_k);
    }
    c.hash_tiles = size_of(file, "hash_tiles", 1, 256);
    c.model = options.accumulator ? options.accumulator : captured_model_of(file, c.what);
    if (!is_placed(file)) {
        c.model.reset();
        c.without_model = not_placed;
    }
    if (c.model) require_result(file, *c.model, c.what.f16);
    require_known_tensors(file);
    found.spread(std::max<std::size_t>(2, options.show / 8));
    std::uint64_t inputs = 0;
    for (const vectors::mma_distribution& d : vectors::mma_distributions()) {
        if (file.has(fmt::format("{}.D", d.name)))
            inputs += vectors::mixed(compare_distribution(c, d));
    }
    if (const std::string& stated = file.at("inputs_hash"); stated != hash_text(inputs)) {
        file.fail("was recorded of other inputs: their hash is {}, those of the seed have {}",
                  stated, hash_text(inputs));
    }
    const bool wanting = !c.model || found.differences() != 0;
    if (wanting && !options.accumulator && is_placed(file)) {
        if (auto fit = fit_of(c)) found.fit(std::move(*fit));
    }
    const std::string* known = file.find("known_products");
    return fmt::format("{}: {} x {}{}", c.model ? to_string(*c.model) : "no model", c.what.a->name,
                       c.what.b->name,
                       known != nullptr && *known == known_products_missed
                           ? ", small whole numbers do not come out"
                           : "");
}

}  // namespace mx::conformance::verify

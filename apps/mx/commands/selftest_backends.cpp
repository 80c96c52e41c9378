// SPDX-License-Identifier: Apache-2.0
// Backends use the instructions of this CPU; all must give the same bytes as the scalar one.
#include <fmt/format.h>

#include <cstring>

#include "apps/mx/commands/selftest.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/vector_inputs.hpp"
#include "libmx/format/block_formats.hpp"

namespace mx::app {
namespace {

constexpr std::size_t blocks_per_segment = 60;  // five of every category

using codec::recipe;

// Every preset whose blocks are rows, under every rule and rounding, and with an offset.
std::vector<recipe> row_recipes() {
    std::vector<recipe> all;
    for (const format::block_format& preset : format::block_formats) {
        if (preset.block_rows != 1) continue;
        for (const scale::scale_rule& rule : scale::scale_rules) {
            for (const format::rounding_row& rounding : format::roundings) {
                for (const char* offset : {"", ",offset=fp16"}) {
                    add_if_valid(all, fmt::format("{}:scale={},round={}{}", preset.name, rule.name,
                                                  rounding.name, offset));
                }
            }
        }
    }
    return all;
}

struct outcome {
    std::vector<std::uint8_t> codes, scale_codes;  // codes in blocks of `stride`
    std::vector<std::uint16_t> offsets;
    std::size_t stride = 0;
    block::segment_stats stats{};
};

outcome quantize_with(const codec::backend& backend, const codec::block_params& p,
                      const std::vector<float>& x, std::size_t block) {
    codec::value_rectangle values{{}, 1, x.size()};
    values.values.data = reinterpret_cast<const std::byte*>(x.data());
    values.values.stride = x.size();
    codec::placed_segment segment;
    segment.place.tensor_id = base::tensor_id("selftest");
    segment.place.row_stride = x.size();
    segment.place.rows = 1;
    segment.place.cols = x.size();
    segment.place.block_cols = block;
    const codec::recipe_request request{&p, codec::detail::codes};
    outcome to;
    backend.make_quantizer()->run(values, {&segment, 1}, {&request, 1},
                                  [&](std::size_t, std::span<const codec::segment_result> results) {
                                      const codec::block_results& d = results.front().of_blocks;
                                      to.stride = d.stride;
                                      to.codes.assign(d.codes, d.codes + d.blocks * d.stride);
                                      to.scale_codes.assign(d.scale_code, d.scale_code + d.blocks);
                                      to.offsets.assign(d.offset, d.offset + d.blocks);
                                      to.stats = *results.front().stats;
                                  });
    return to;
}

// The first block that differs, or blocks_per_segment.
std::size_t first_difference(const outcome& a, const outcome& b, std::size_t block,
                             std::size_t elements) {
    for (std::size_t i = 0; i < a.scale_codes.size(); ++i) {
        const std::size_t size = std::min(block, elements - i * block);
        const bool same =
            a.scale_codes[i] == b.scale_codes[i] && a.offsets[i] == b.offsets[i] &&
            std::memcmp(a.codes.data() + i * a.stride, b.codes.data() + i * b.stride, size) == 0;
        if (!same) return i;
    }
    return blocks_per_segment;
}

void compare(const codec::backend& backend, const recipe& r, const codec::block_params& p,
             const std::vector<float>& x, const outcome& reference, selftest_findings& into) {
    const auto block = static_cast<std::size_t>(r.block.cols);
    const outcome own = quantize_with(backend, p, x, block);
    const std::size_t at = first_difference(reference, own, block, x.size());
    const auto describe = [&](std::string_view what) {
        return selftest_difference{fmt::format("{} by {}", codec::to_string(r), backend.name),
                                   fmt::format("block {} of the sample", at),
                                   fmt::format("the {} of backend scalar", what), "others"};
    };
    into.expect(at == blocks_per_segment, [&] { return describe("codes and scale"); });
    const bool same_sums =
        own.stats.sum == reference.stats.sum && own.stats.max_error == reference.stats.max_error &&
        std::memcmp(&own.stats.count, &reference.stats.count, sizeof own.stats.count) == 0;
    into.expect(same_sums, [&] { return describe("counts and sums"); });
}

}  // namespace

void check_backends(selftest_findings& into, const selftest_options& options) {
    const codec::backend& scalar = codec::backend_named("scalar");
    std::string used;
    for (const codec::backend& d : codec::backends()) {
        if (d.available()) used += fmt::format("{}{}", used.empty() ? "" : ", ", d.name);
    }
    into.note = "backends of this machine: " + used;
    for (const recipe& r : row_recipes()) {
        const conformance::vectors::vector_inputs in =
            conformance::vectors::generate_inputs(r, blocks_per_segment, options.seed);
        // The last block is shorter.
        const std::vector<float> x(in.values.begin(), in.values.end() - 3);
        const codec::block_params p = codec::params_of(r, conformance::vectors::facts_of(x));
        const outcome reference =
            quantize_with(scalar, p, x, static_cast<std::size_t>(r.block.cols));
        for (const codec::backend& d : codec::backends()) {
            if (d.available() && &d != &scalar) compare(d, r, p, x, reference, into);
        }
    }
}

}  // namespace mx::app

// SPDX-License-Identifier: Apache-2.0
// The data kept of a panel's blocks at a time, for tensors of any shape.
#include <algorithm>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::engine::segment_in_panel;

std::size_t launches = 0;

void counted_start(const cuda::launch& l, mx::base::cuda::stream& on) {
    ++launches;
    cuda::start_on_host(l, on);
}

// A panel under two recipes, one of which leaves 32 codes and 15 bytes a block.
struct work {
    mx::tests::stored_matrix matrix;
    std::vector<codec::block_params> params;
    std::vector<codec::placed_segment> segments;
    std::vector<codec::recipe_request> recipes;
    std::uint64_t bytes = 0;  // of all segments

    work() {
        const auto r = codec::parse_recipe("mxfp4");
        matrix = mx::tests::make_matrix(
            mx::tensor::dtype::bf16, 37, 4096 + 64,
            {mx::tests::block_kinds.begin(), mx::tests::block_kinds.end()}, *r.element, 9);
        params.assign(2, codec::params_of(r));
        recipes = {{&params[0], codec::detail::codes}, {&params[1], codec::detail::none}};
        const mx::block::grid g{{1, matrix.rows, matrix.cols}, 1, 32};
        const mx::engine::panel all{0, 1, 0, matrix.rows, 0, matrix.cols};
        mx::engine::for_each_segment(g, all, [&](const segment_in_panel& s) {
            segments.push_back({mx::engine::place_of(s, g, 5), s.row, s.col});
            bytes += segments.back().place.blocks() * (32 + 15) + sizeof(cuda::segment_tally);
        });
    }

    // The exact sums under each recipe.
    std::vector<mx::block::exact_totals> by(codec::quantizer& q) const {
        std::vector<mx::block::exact_totals> sums(recipes.size());
        std::size_t next = 0;
        const codec::value_rectangle values{
            {matrix.type, matrix.bytes.data(), matrix.cols}, matrix.rows, matrix.cols};
        q.run(values, segments, recipes,
              [&](std::size_t s, std::span<const codec::segment_result> results) {
                  CHECK(s == next++);
                  CHECK(results[0].of_blocks.blocks == segments[s].place.blocks());
                  for (std::size_t r = 0; r < sums.size(); ++r) {
                      sums[r].merge(results[r].stats->sum);
                  }
              });
        CHECK(next == segments.size());
        return sums;
    }
};

}  // namespace

TEST_CASE("a device's results wait on the host in parts that have room") {
    const work w;
    REQUIRE(w.segments.size() == 74);
    const auto expected = w.by(*codec::backend_named("scalar").make_quantizer());
    mx::base::cuda::host_device device;
    const auto launches_with = [&](std::uint64_t kept) {
        const auto q = cuda::make_device_quantizer(
            device, counted_start, {std::size_t{1} << 30, std::uint64_t{1} << 30, kept});
        launches = 0;
        CHECK(w.by(*q) == expected);
        return launches;
    };
    CHECK(launches_with(w.bytes) == 1);
    CHECK(launches_with(w.bytes - 1) == 2);
    CHECK(launches_with(w.bytes / 2) >= 2);
    CHECK(launches_with(1) == 74);
}

TEST_CASE("blocks that are larger than their matrix have room for what they hold") {
    const segment_in_panel s{0, 0, 0, 0, 0, 8, 3};
    const auto wide = mx::engine::place_of(s, {{1, 8, 3}, 1, 1024}, 1);
    CHECK(wide.block_size() == 3);
    CHECK(wide.blocks() == 8);
    const auto tall = mx::engine::place_of(s, {{1, 8, 3}, 1024, 1}, 1);
    CHECK(tall.block_size() == 8);
    CHECK(tall.blocks() == 3);
    const auto small = mx::engine::place_of(s, {{1, 8, 3}, 4, 2}, 1);
    CHECK(small.block_size() == 8);
    CHECK(small.blocks() == 4);
}

TEST_CASE("room for no more than a block holds changes no figure, whoever quantizes") {
    const auto recipes = codec::parse_recipes({"mxfp4:block=1x64", "mxfp8:block=4x32,scale=even"});
    const auto m = mx::tests::make_matrix(
        mx::tensor::dtype::f32, 999, 5,
        {mx::tests::block_kinds.begin(), mx::tests::block_kinds.end()}, *recipes[0].element, 4);
    const mx::analysis::matrix values{m.type, m.bytes.data(), m.rows, m.cols, "w"};
    const codec::backend& scalar = *mx::tests::backends_here().front();
    for (const codec::recipe& r : recipes) {
        // Segment by segment, with room for whole blocks.
        std::string reason;
        const mx::block::grid g = mx::engine::lay_out({m.rows, m.cols}, r, reason)->grid;
        const auto params = codec::params_of(r);
        mx::block::exact_totals sums;
        std::uint64_t clamp = 0, blocks = 0;
        mx::engine::for_each_segment(
            g, {0, 1, 0, m.rows, 0, m.cols}, [&](const segment_in_panel& s) {
                const codec::segment_place place{mx::base::tensor_id("w"),
                                                 s.first,
                                                 m.cols,
                                                 s.rows,
                                                 s.cols,
                                                 g.block_rows,
                                                 g.block_cols};
                const codec::stored_values all{m.type, m.bytes.data(), m.cols};
                const codec::placed_segment segment{place, s.row, s.col};
                const codec::recipe_request request{&params};
                scalar.make_quantizer()->run(
                    {all, m.rows, m.cols}, {&segment, 1}, {&request, 1},
                    [&](std::size_t, std::span<const codec::segment_result> results) {
                        const mx::block::segment_stats& stats = *results.front().stats;
                        sums.merge(stats.sum);
                        clamp += stats.count.clamp;
                        blocks += stats.block.blocks;
                    });
            });
        CHECK(blocks == (g.block_rows == 1 ? 999u : 250u));
        for (const codec::backend* d : mx::tests::backends_here()) {
            CAPTURE(d->name, codec::to_string(r));
            mx::engine::run_control control;
            control.backend = d;
            const auto all = analyze_matrix(values, {&r, 1}, true, control);
            const auto& got = all.front();
            CHECK(got.totals.sum == sums);
            CHECK(got.totals.count.clamp == clamp);
            CHECK(got.totals.block.blocks == blocks);
        }
    }
}

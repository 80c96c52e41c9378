// SPDX-License-Identifier: Apache-2.0
// What is kept of a panel's blocks at a time, however its tensor is shaped.
#include <algorithm>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/random.hpp"
#include "libmx/pipeline/analyze_matrix.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/segment_places.hpp"
#include "libmx/quantize/driver_batch.hpp"
#include "libmx/quantize/drivers.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace quantize = mx::quantize;
using mx::pipeline::segment_in_panel;

// Passes everything on, and remembers how many segments it was given at a time.
class watched_batch final : public quantize::segment_batch {
  public:
    void run(const quantize::value_rectangle& values,
             std::span<const quantize::batch_segment> segments,
             std::span<const quantize::batch_recipe> recipes) override {
        counts.push_back(segments.size());
        inner_.run(values, segments, recipes);
    }
    quantize::batch_result result(std::size_t segment, std::size_t recipe) const override {
        return inner_.result(segment, recipe);
    }
    std::vector<std::size_t> counts;

  private:
    quantize::driver_batch inner_{quantize::driver_named("scalar")};
};

// A panel under two recipes, one of which leaves 32 codes and 15 bytes a block.
struct work {
    mx::tests::stored_matrix matrix;
    std::vector<quantize::block_params> params;
    std::vector<quantize::batch_segment> segments;
    std::vector<quantize::batch_recipe> recipes;
    std::uint64_t bytes = 0;  // of all segments

    work() {
        const auto r = quantize::parse_recipe("mxfp4");
        matrix = mx::tests::make_matrix(
            mx::tensor::dtype::bf16, 37, 4096 + 64,
            {mx::tests::block_kinds.begin(), mx::tests::block_kinds.end()}, *r.element, 9);
        params.assign(2, quantize::params_of(r));
        recipes = {{&params[0], quantize::detail::codes}, {&params[1], quantize::detail::none}};
        const mx::block::grid g{{1, matrix.rows, matrix.cols}, 1, 32};
        const mx::pipeline::panel all{0, 1, 0, matrix.rows, 0, matrix.cols};
        mx::pipeline::for_each_segment(g, all, [&](const segment_in_panel& s) {
            segments.push_back(mx::pipeline::batch_segment_of(s, g, all, 5));
            bytes += segments.back().place.blocks() * (32 + 15) + sizeof(mx::block::segment_stats);
        });
    }

    // The squared errors of all segments, in their order.
    std::vector<double> by(watched_batch& batch, std::uint64_t most) const {
        std::vector<double> errors;
        std::size_t next = 0;
        const quantize::value_rectangle values{
            {matrix.type, matrix.bytes.data(), matrix.cols}, matrix.rows, matrix.cols};
        quantize::run_in_parts(
            batch, values, segments, recipes,
            [&](std::size_t s, std::size_t in_run) {
                CHECK(s == next++);
                const quantize::batch_result coded = batch.result(in_run, 0);
                CHECK(coded.details.blocks == segments[s].place.blocks());
                errors.push_back(coded.stats->sum.error2);
                errors.push_back(batch.result(in_run, 1).stats->sum.error2);
            },
            most);
        CHECK(next == segments.size());
        return errors;
    }
};

}  // namespace

TEST_CASE("a panel runs in parts whose results have room") {
    const work w;
    REQUIRE(w.segments.size() == 74);
    watched_batch whole;
    const std::vector<double> expected = w.by(whole, w.bytes);
    CHECK(whole.counts == std::vector<std::size_t>{74});
    for (const std::uint64_t most :
         {w.bytes - 1, w.bytes / 2, w.bytes / 20, std::uint64_t{7000}, std::uint64_t{1}}) {
        CAPTURE(most);
        watched_batch batch;
        CHECK(w.by(batch, most) == expected);
        CHECK(batch.counts.size() > 1);
        if (most == w.bytes - 1) CHECK(batch.counts == std::vector<std::size_t>{73, 1});
        if (most == 1) CHECK(batch.counts == std::vector<std::size_t>(74, 1));
    }
}

TEST_CASE("blocks that are larger than their matrix have room for what they hold") {
    const segment_in_panel s{0, 0, 0, 0, 0, 8, 3};
    const auto wide = mx::pipeline::place_of(s, {{1, 8, 3}, 1, 1024}, 1);
    CHECK(wide.block_size() == 3);
    CHECK(wide.blocks() == 8);
    const auto tall = mx::pipeline::place_of(s, {{1, 8, 3}, 1024, 1}, 1);
    CHECK(tall.block_size() == 8);
    CHECK(tall.blocks() == 3);
    const auto small = mx::pipeline::place_of(s, {{1, 8, 3}, 4, 2}, 1);
    CHECK(small.block_size() == 8);
    CHECK(small.blocks() == 4);
}

TEST_CASE("room for no more than a block holds changes no figure, whoever quantizes") {
    const auto recipes =
        quantize::parse_recipes({"mxfp4:block=1x64", "mxfp8:block=4x32,scale=even"});
    const auto m = mx::tests::make_matrix(
        mx::tensor::dtype::f32, 999, 5,
        {mx::tests::block_kinds.begin(), mx::tests::block_kinds.end()}, *recipes[0].element, 4);
    const mx::pipeline::matrix values{m.type, m.bytes.data(), m.rows, m.cols, "w"};
    const quantize::driver& scalar = *mx::tests::drivers_here().front();
    for (const quantize::recipe& r : recipes) {
        // Segment by segment, with room for whole blocks.
        std::string reason;
        const mx::block::grid g = mx::pipeline::lay_out({m.rows, m.cols}, r, reason)->grid;
        const auto params = quantize::params_of(r);
        mx::base::exact_sum error2, x2;
        std::uint64_t clamp = 0, blocks = 0;
        mx::pipeline::for_each_segment(
            g, {0, 1, 0, m.rows, 0, m.cols}, [&](const segment_in_panel& s) {
                const quantize::segment_place place{mx::base::tensor_id("w"),
                                                    s.first,
                                                    m.cols,
                                                    s.rows,
                                                    s.cols,
                                                    g.block_rows,
                                                    g.block_cols};
                const quantize::stored_values all{m.type, m.bytes.data(), m.cols};
                quantize::block_run run;
                quantize::block_details details;
                scalar.load(all.from(s.row * m.cols + s.col), place, run);
                const auto stats = scalar.quantize(params, run, details);
                error2.add(stats.sum.error2);
                x2.add(stats.sum.x2);
                clamp += stats.count.clamp;
                blocks += stats.block.blocks;
            });
        CHECK(blocks == (g.block_rows == 1 ? 999u : 250u));
        for (const quantize::driver* d : mx::tests::drivers_here()) {
            CAPTURE(d->name, quantize::to_string(r));
            mx::pipeline::run_control control;
            control.driver = d;
            const auto all = analyze_matrix(values, {&r, 1}, true, control);
            const auto& got = all.front();
            CHECK(got.totals.sum.error2.value() == error2.value());
            CHECK(got.totals.sum.x2.value() == x2.value());
            CHECK(got.totals.count.clamp == clamp);
            CHECK(got.totals.block.blocks == blocks);
        }
    }
}

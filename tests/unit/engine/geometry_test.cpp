// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/engine/sweep.hpp"
#include "tests/catch.hpp"

using namespace mx;
using engine::geometry;

namespace {

geometry layout(const tensor::shape& s, const std::string& recipe) {
    std::string reason;
    const auto g = engine::lay_out(s, codec::parse_recipe(recipe), reason);
    REQUIRE(g.has_value());
    return *g;
}

}  // namespace

TEST_CASE("blocks lie along the axes the design names") {
    CHECK(layout({4, 6, 100}, "mxfp4").grid_shape == tensor::shape{4, 6, 4});
    CHECK(layout({4, 6, 100}, "mxfp4").grid.over == block::view{1, 24, 100});
    CHECK(layout({4, 6, 100}, "mxfp4:block=32x1").grid_shape == tensor::shape{4, 1, 100});
    CHECK(layout({4, 6, 100}, "mxfp4:block=32x1").grid.over == block::view{4, 6, 100});
    CHECK(layout({4, 6, 100}, "mxfp4:block=4x16").grid_shape == tensor::shape{4, 2, 7});
    CHECK(layout({4, 6, 100}, "mxfp4:axis=0").grid.over == block::view{1, 4, 600});
    CHECK(layout({4, 6, 100}, "mxfp4:axis=0").grid_shape == tensor::shape{1, 6, 100});
    CHECK(layout({4, 64, 1}, "mxfp4:axis=1").grid.over == block::view{1, 4, 64});
    CHECK(layout({4, 6, 100}, "mxfp4:axis=flat").grid_shape == tensor::shape{75});
    CHECK(layout({100}, "mxfp4").grid_shape == tensor::shape{4});
    // One row has no second axis: every element is a (short) column block.
    CHECK(layout({100}, "mxfp4:block=32x1").grid_shape == tensor::shape{100});
    CHECK(layout({}, "mxfp4").grid.blocks() == 1);
    CHECK(layout({}, "mxfp4").grid_shape.empty());
    CHECK(layout({0, 5}, "mxfp4").grid.blocks() == 0);
    std::string reason;
    CHECK_FALSE(engine::lay_out({5}, codec::parse_recipe("mxfp4:axis=1"), reason));
    CHECK(reason.find("1 axis") != std::string::npos);
}

namespace {

geometry along(const tensor::shape& s, engine::axis_range sums, const std::string& recipe) {
    std::string reason;
    const auto g = engine::lay_out(s, sums, codec::parse_recipe(recipe), reason);
    REQUIRE(g.has_value());
    return *g;
}

}  // namespace

TEST_CASE("blocks lie along the axes that a product sums over") {
    // [in, out]: the rows of the recipe's blocks are columns of the matrix.
    CHECK(along({64, 172}, {0, 1}, "mxfp4").grid == block::grid{{1, 64, 172}, 32, 1});
    CHECK(along({64, 172}, {0, 1}, "mxfp4").grid_shape == tensor::shape{2, 172});
    CHECK(along({64, 172}, {0, 1}, "mxfp4:block=4x16").grid == block::grid{{1, 64, 172}, 16, 4});
    CHECK(along({64, 172}, {0, 1}, "mxfp4:block=4x16").grid_shape == tensor::shape{4, 43});
    CHECK(along({64, 172}, {0, 1}, "mxfp4:block=32x1").grid == block::grid{{1, 64, 172}, 1, 32});
    // An axis that the recipe names is the stored one.
    CHECK(along({64, 172}, {0, 1}, "mxfp4:axis=-1").grid == block::grid{{1, 64, 172}, 1, 32});
    CHECK(along({64, 172}, {0, 1}, "mxfp4:axis=1").grid_shape == tensor::shape{64, 6});
    CHECK(along({64, 172}, {1, 2}, "mxfp4:axis=0").grid_shape == tensor::shape{2, 172});
    CHECK(along({64, 172}, {0, 1}, "mxfp4:block=4x16,axis=-1").grid ==
          block::grid{{1, 64, 172}, 4, 16});
    // Experts [E, in, out].
    CHECK(along({8, 64, 48}, {1, 2}, "mxfp4").grid == block::grid{{8, 64, 48}, 32, 1});
    CHECK(along({8, 64, 48}, {1, 2}, "mxfp4").grid_shape == tensor::shape{8, 2, 48});
    // Kernels of convolutions: [out, in, 3, 3], [3, 3, in, out], depthwise [3, 3, in, 1].
    CHECK(along({16, 32, 3, 3}, {1, 4}, "mxfp4").grid == block::grid{{1, 16, 288}, 1, 32});
    CHECK(along({16, 32, 3, 3}, {1, 4}, "mxfp4").grid_shape == tensor::shape{16, 9});
    CHECK(along({16, 32, 3, 3}, {1, 4}, "mxfp4:block=4x16").grid ==
          block::grid{{1, 16, 288}, 4, 16});
    CHECK(along({3, 3, 32, 16}, {0, 3}, "mxfp4").grid == block::grid{{1, 288, 16}, 32, 1});
    CHECK(along({3, 3, 32, 16}, {0, 3}, "mxfp4").grid_shape == tensor::shape{9, 16});
    CHECK(along({3, 3, 32, 1}, {0, 2}, "mxfp4").grid == block::grid{{1, 9, 32}, 32, 1});
    // Heads: [in, heads, columns], [heads, columns, out].
    CHECK(along({64, 4, 16}, {0, 1}, "mxfp4").grid == block::grid{{1, 64, 64}, 32, 1});
    CHECK(along({64, 4, 16}, {0, 1}, "mxfp4").grid_shape == tensor::shape{2, 4, 16});
    CHECK(along({4, 16, 64}, {0, 2}, "mxfp4").grid == block::grid{{1, 64, 64}, 32, 1});
}

TEST_CASE("areas and rotations follow the axes that a product sums over") {
    const geometry rows = along({64, 48}, {0, 1}, "nvfp4:outer=row");
    CHECK(rows.grid.outer_rows == 64);
    CHECK(rows.grid.outer_cols == 1);
    CHECK(rows.area_shape == tensor::shape{1, 48});
    const geometry tiles = along({64, 48}, {0, 1}, "nvfp4:outer=16x32");
    CHECK(tiles.grid.outer_rows == 32);
    CHECK(tiles.grid.outer_cols == 16);
    CHECK(tiles.area_shape == tensor::shape{2, 3});
    CHECK(along({16, 32, 3, 3}, {1, 4}, "nvfp4:outer=row").area_shape == tensor::shape{16, 1});
    const char* rotated = "mxfp4:transform=hadamard,transform_size=16";
    CHECK(along({64, 48}, {0, 1}, rotated).grid.joint_rows == 16);
    CHECK(along({64, 48}, {1, 2}, rotated).grid.joint_cols == 16);
    const char* tile = "mxfp4:block=16x16,transform=hadamard,transform_size=16";
    CHECK(along({64, 48}, {0, 1}, tile).grid.joint_rows == 16);
    CHECK(along({64, 48}, {1, 2}, tile).grid.joint_cols == 16);
}

TEST_CASE("panels cover every block once and never cut a segment") {
    struct example {
        tensor::shape shape;
        std::vector<std::string> recipes;
    };
    const std::vector<example> examples{
        {{300, 500}, {"mxfp4", "mxfp4:block=32x1", "mxfp4:block=128x128"}},
        {{7, 33, 65}, {"mxfp4:block=4x4", "mxfp4:block=32x1"}},
        {{3, 200000}, {"mxfp4", "mxfp4:block=1x48", "mxfp4:block=1x2"}},
        {{100000, 3}, {"mxfp4", "mxfp4:block=3x2", "mxfp4:block=1x4"}},
        {{5, 1, 20000}, {"mxfp4:axis=1", "mxfp4:axis=0"}},
        {{40000}, {"mxfp4:block=1x30000", "mxfp4"}},
        {{20000, 70}, {"mxfp4:block=9000x1"}},
    };
    for (const example& e : examples) {
        std::vector<engine::grid_job> jobs;
        for (const std::string& r : e.recipes)
            jobs.push_back({jobs.size(), layout(e.shape, r).grid});
        const std::vector<engine::pass> passes = engine::plan_passes(0, jobs);
        std::size_t placed = 0;
        for (const engine::pass& p : passes) {
            placed += p.jobs.size();
            for (const engine::grid_job& job : p.jobs) {
                const block::grid& g = job.grid;
                const block::segmentation s = block::segments_of(g);
                std::vector<int> seen(g.blocks(), 0);
                std::set<std::uint64_t> finished;
                std::uint64_t covered = 0;
                bool whole = true;
                for (std::uint64_t i = 0; i < p.panels.count(); ++i) {
                    engine::for_each_segment(
                        g, p.panels.at(i), [&](const engine::segment_in_panel& at) {
                            const codec::segment_place place = engine::place_of(at, g, 0);
                            const engine::quantized_segment q{at, place, g, {}};
                            for (std::size_t b = 0; b < place.blocks(); ++b) {
                                ++seen[q.index_of(b)];
                                covered += codec::extent_of(place, b).size();
                            }
                            // A segment starts at multiples of its extents and ends there or at
                            // the end of the grid.
                            const std::uint64_t first = at.index;
                            const std::uint64_t row = first / g.cols() % g.rows();
                            const std::uint64_t col = first % g.cols();
                            const auto rows = std::min(s.rows, g.rows() - row);
                            const auto cols = std::min(s.cols, g.cols() - col);
                            whole = whole && row % s.rows == 0 && col % s.cols == 0 &&
                                    place.blocks() == rows * cols && finished.insert(first).second;
                        });
                }
                CHECK(whole);
                CHECK(std::count(seen.begin(), seen.end(), 1) ==
                      static_cast<std::ptrdiff_t>(seen.size()));
                CHECK(covered == g.over.elements());
            }
        }
        CHECK(placed == jobs.size());
    }
}

TEST_CASE("row, column and tile blocks of a matrix share one pass") {
    std::vector<engine::grid_job> jobs;
    for (const char* r :
         {"mxfp4", "mxfp4:block=32x1", "mxfp4:block=128x128", "mxfp8:block=16x16"}) {
        jobs.push_back({jobs.size(), layout({4096, 14336}, r).grid});
    }
    CHECK(engine::plan_passes(0, jobs).size() == 1);
}

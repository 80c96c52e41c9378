// SPDX-License-Identifier: Apache-2.0
// Whole matrices: the same totals from every backend and any number of threads, alone or with other
// recipes, and from the requested backend.
#include <atomic>
#include <cstring>

#include "libmx/analysis/analyze.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

using namespace mx::tests;
using mx::analysis::matrix_totals;

std::vector<mx::codec::recipe> recipes() {
    std::vector<mx::codec::recipe> out;
    for (const char* text :
         {"mxfp4", "mxfp8:scale=even", "mxfp4:block=32x1", "mxint8:block=4x4",
          "mxfp6:round=stochastic,seed=3", "mxfp4:block=32x1,round=stochastic,seed=3",
          "mxfp4:block=1x16", "mxfp4:offset=fp16", "mxfp8:block=64x64", "mxfp4:axis=flat",
          "mxfp4:transform=hadamard", "mxfp8:transform=hadamard,round=stochastic",
          "mxfp4:block=32x1,transform=random-hadamard,transform_size=64",
          "mxint8:block=4x4,transform=hadamard", "mxfp4:axis=flat,transform=random-hadamard"}) {
        out.push_back(mx::codec::parse_recipe(text));
    }
    return out;
}

bool same(const matrix_totals& a, const matrix_totals& b) {
    return std::memcmp(&a.totals.count, &b.totals.count, sizeof a.totals.count) == 0 &&
           std::memcmp(&a.totals.block, &b.totals.block, sizeof a.totals.block) == 0 &&
           a.totals.sum == b.totals.sum && a.totals.max_error == b.totals.max_error &&
           a.totals.max_x == b.totals.max_x;
}

bool same_histograms(const matrix_totals& a, const matrix_totals& b) {
    return std::memcmp(a.histograms.get(), b.histograms.get(), sizeof *a.histograms) == 0;
}

mx::analysis::matrix view_of(const stored_matrix& m) {
    return {m.type, m.bytes.data(), m.rows, m.cols, "w"};
}

std::atomic<int> segments_seen{0};

// Passes everything on to the best backend, and counts segments.
class spy final : public mx::codec::quantizer {
  public:
    void run(const mx::codec::value_rectangle& values,
             std::span<const mx::codec::placed_segment> segments,
             std::span<const mx::codec::recipe_request> recipes,
             const mx::codec::segment_visitor& visit) override {
        segments_seen += static_cast<int>(segments.size());
        inner_->run(values, segments, recipes, visit);
    }

  private:
    std::unique_ptr<quantizer> inner_ = mx::codec::best_backend().make_quantizer();
};

std::unique_ptr<mx::codec::quantizer> make_spy() { return std::make_unique<spy>(); }

}  // namespace

TEST_CASE("backends and threads agree on the totals and histograms of a matrix") {
    const auto m =
        make_matrix(mx::tensor::dtype::bf16, 700, 1000, {block_kinds.begin(), block_kinds.end()},
                    *mx::format::find_element_format("e2m1"), 3);
    const auto wanted = recipes();
    mx::engine::run_control control;
    control.backend = &mx::codec::backend_named("scalar");
    control.threads = 1;
    const auto expected = mx::analysis::analyze_matrix(view_of(m), wanted, true, control, true);
    for (const mx::codec::backend* d : backends_here()) {
        for (const int threads : {1, 2, 7}) {
            control.backend = d;
            control.threads = threads;
            const auto got = mx::analysis::analyze_matrix(view_of(m), wanted, true, control, true);
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                CAPTURE(d->name, threads, mx::codec::to_string(wanted[i]));
                CHECK(same(got[i], expected[i]));
                CHECK(same_histograms(got[i], expected[i]));
                if (threads != 2) continue;
                const auto alone = mx::analysis::analyze_matrix(
                    view_of(m), std::span(wanted).subspan(i, 1), true, control, true);
                CHECK(same(alone.front(), expected[i]));
            }
        }
    }
}

TEST_CASE("what recipes have in common is that of each alone") {
    // Without blocks for the reference, and without per-block results, vector kernels share sums.
    const auto m = make_matrix(mx::tensor::dtype::bf16, 300, 1056, {block_kind::gaussian},
                               *mx::format::find_element_format("e2m1"), 9);
    const auto wanted = recipes();
    mx::engine::run_control control;
    for (const mx::codec::backend* d : backends_here()) {
        control.backend = d;
        const auto got = mx::analysis::analyze_matrix(view_of(m), wanted, false, control);
        control.backend = &mx::codec::backend_named("scalar");
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const auto alone = mx::analysis::analyze_matrix(
                view_of(m), std::span(wanted).subspan(i, 1), false, control);
            CAPTURE(d->name, mx::codec::to_string(wanted[i]));
            CHECK(same(got[i], alone.front()));
        }
    }
}

TEST_CASE("the backend that was asked for is the one that runs") {
    const auto m = make_matrix(mx::tensor::dtype::f32, 64, 256, {block_kind::gaussian},
                               *mx::format::find_element_format("e2m1"), 3);
    mx::codec::backend spied = mx::codec::best_backend();
    spied.make_quantizer = make_spy;
    mx::engine::run_control control;
    control.backend = &spied;
    segments_seen = 0;
    const std::vector<mx::codec::recipe> one{mx::codec::parse_recipe("mxfp4")};
    mx::analysis::analyze_matrix(view_of(m), one, false, control);
    CHECK(segments_seen == 64 * 256 / 4096);
}

TEST_CASE("a backend is found by its name, or the nearest is named") {
    CHECK(mx::codec::backend_named("scalar").name == "scalar");
    CHECK_THROWS_WITH(mx::codec::backend_named("avx215"),
                      Catch::Matchers::Contains("avx512") || Catch::Matchers::Contains("avx2"));
    for (const auto& d : mx::codec::backends()) {
        if (!d.available()) CHECK_THROWS(mx::codec::backend_named(d.name));
    }
}

// SPDX-License-Identifier: Apache-2.0
// Whole tensors: compares the report of `mx analyze` with the oracle's metrics, for shapes, axes
// and blocks of every layout.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/analysis/analyze.hpp"
#include "libmx/base/random.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/oracle/metrics.hpp"
#include "libmx/oracle/value_list.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_inputs.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/memory_model.hpp"
#include "tests/naive_rotation.hpp"

namespace {

using mx::tensor::shape;
using mx::tests::block_kind;

// A layout stated from the design: leading dimensions are batch; 1xN along the last axis, Nx1 along
// the one before it; axis=K along K; flat is one row.
mx::oracle::tensor laid_out(const std::vector<float>& x, const shape& s, const mx::codec::recipe& r,
                            mx::oracle::recipe& stated) {
    const auto product = [&](std::size_t from, std::size_t to) {
        std::uint64_t p = 1;
        for (std::size_t i = from; i < to; ++i) p *= s[i];
        return p;
    };
    using kind = mx::codec::axis_choice::kind;
    const std::size_t rank = s.size();
    if (r.axis.what == kind::flat) return {x, 1, 1, x.size(), 0};
    if (r.axis.what == kind::index) {
        const auto k = static_cast<std::size_t>(r.axis.value +
                                                (r.axis.value < 0 ? static_cast<int>(rank) : 0));
        std::swap(stated.block_rows, stated.block_cols);
        return {x, product(0, k), s[k], product(k + 1, rank), 0};
    }
    const std::uint64_t cols = rank < 1 ? 1 : s[rank - 1];
    const std::uint64_t rows = rank < 2 ? 1 : s[rank - 2];
    return {x, rank < 3 ? 1 : product(0, rank - 2), rows, cols, 0};
}

// The values under the recipe's transform: along the axis of 1-D blocks, and along the last axis
// for tiles.
std::vector<float> rotated(const mx::oracle::tensor& t, const mx::codec::recipe& r) {
    std::vector<float> x(t.values.begin(), t.values.end());
    if (r.rotate.what == mx::transform::kind::none) return x;
    using kind = mx::codec::axis_choice::kind;
    const bool down =
        r.axis.what == kind::index || (r.axis.what == kind::last && r.block.cols == 1);
    return mx::tests::naive_rotation(r.rotate, x, t.batch, t.rows, t.cols, down);
}

// Values that change character along the tensor.
std::vector<float> values_for(const shape& s, const mx::format::element_format& f, bool finite,
                              std::uint64_t seed) {
    const std::uint64_t n = *mx::tensor::element_count(s);
    std::vector<float> x;
    while (x.size() < n) {
        const block_kind kind = mx::tests::block_kinds[++seed % mx::tests::block_kinds.size()];
        if (finite && kind == block_kind::non_finite) continue;
        const auto part = mx::tests::make_block(kind, f, 48, seed);
        x.insert(x.end(), part.begin(), part.end());
    }
    x.resize(n);
    return x;
}

const mx::report::value& member(const mx::report::record& r, const std::string& name) {
    const mx::report::value* v = mx::report::find(r, name);
    REQUIRE(v != nullptr);
    return *v;
}

std::uint64_t count(const mx::report::value& v) {
    return static_cast<std::uint64_t>(std::get<std::int64_t>(v));
}

double number(const mx::report::value& v) {
    if (std::holds_alternative<std::int64_t>(v))
        return static_cast<double>(std::get<std::int64_t>(v));
    return std::get<double>(v);
}

void compare_metrics(const mx::report::record& got, const mx::oracle::measurement& m) {
    const auto want = mx::oracle::metrics_of(m);
    for (const auto& [name, expected] : want) {
        CAPTURE(name);
        const std::size_t dot = name.find('.');
        const mx::report::value& outer = member(got, name.substr(0, dot));
        // If nothing is counted, the whole object is null.
        const auto* nested = std::get_if<mx::report::record>(&outer);
        const mx::report::value& ours =
            nested == nullptr ? outer : member(*nested, name.substr(dot + 1));
        CHECK(std::holds_alternative<std::monostate>(ours) == !expected.has_value());
        if (!expected || std::holds_alternative<std::monostate>(ours)) continue;
        CAPTURE(number(ours), *expected);
        // Several roundings: a sum over codes, and of bits per element and per block.
        const bool close = name == "code_entropy_bits" || name == "bits_per_element";
        const double tolerance = close ? 1e-14 * std::abs(*expected) : 0;
        CHECK(std::abs(number(ours) - *expected) <= tolerance);
    }
    const mx::report::value& exact = member(got, "exact");
    if (want.at("max_abs_error")) CHECK(std::get<bool>(exact) == (m.sum.max_error == 0));
}

void compare_histograms(const mx::report::record& got, const mx::oracle::measurement& m) {
    const auto& codes = std::get<mx::report::list>(member(got, "code_histogram"));
    CHECK(codes.size() == std::size_t{1} << mx::oracle::code_bits(*m.under.element));
    for (std::size_t i = 0; i < codes.size(); ++i) CHECK(count(codes[i]) == m.code_histogram[i]);

    std::uint64_t blocks = 0;
    for (const auto& [code, uses] : std::get<mx::report::record>(member(got, "scale_histogram"))) {
        CHECK(count(uses) == m.scale_histogram[std::stoul(code)]);
        blocks += count(uses);
    }
    CHECK(blocks == m.block.blocks);

    const auto& mantissas = std::get<mx::report::record>(member(got, "amax_mantissa_histogram"));
    const auto& bins = std::get<mx::report::list>(member(mantissas, "bins"));
    REQUIRE(bins.size() == m.amax_mantissa_histogram.size());
    for (std::size_t i = 0; i < bins.size(); ++i) {
        CHECK(count(bins[i]) == m.amax_mantissa_histogram[i]);
    }

    const auto& spread = std::get<mx::report::record>(member(got, "block_spread"));
    const auto& spread_bins = std::get<mx::report::list>(member(spread, "bins"));
    REQUIRE(spread_bins.size() == m.spread_histogram.size());
    std::size_t at = 0;
    for (const auto& [bin, uses] : m.spread_histogram) {
        const auto& pair = std::get<mx::report::list>(spread_bins[at++]);
        CHECK(std::get<double>(pair.at(0)) == Approx(std::exp2(-bin / 16.0)).epsilon(1e-14));
        CHECK(count(pair.at(1)) == uses);
    }
}

void compare_tensor(const shape& s, const std::string& recipe_text, std::uint64_t seed) {
    const mx::codec::recipe r = mx::codec::parse_recipe(recipe_text);
    std::string dimensions = mx::tensor::to_string(s);
    CAPTURE(recipe_text, dimensions, seed);
    const std::vector<float> x = values_for(s, *r.element, seed % 2 == 0, seed * 1000);
    mx::tests::memory_model model;
    const std::string name = "layer." + std::to_string(seed);
    model.add(name, mx::tensor::dtype::f32, s, x);
    mx::analysis::analysis_request request;
    request.recipes = {r};
    request.histograms = true;
    request.decompose = true;
    const auto result = mx::analysis::analyze(model.all(), request, {});
    REQUIRE(result.results.size() == 1);
    const mx::report::record got = mx::analysis::record_of(result.results[0]);

    mx::oracle::recipe stated = mx::app::oracle_recipe(r);
    mx::oracle::tensor t = laid_out(x, s, r, stated);
    t.id = mx::base::tensor_id(name);
    const std::vector<float> ready = rotated(t, r);
    t.values = ready;
    const mx::oracle::measurement m = mx::oracle::measure(t, stated);
    CHECK(count(member(got, "elements")) == m.count.elements);
    CHECK(count(member(got, "blocks")) == m.block.blocks);
    CHECK(count(member(got, "nan")) == m.count.nan);
    CHECK(count(member(got, "inf")) == m.count.inf);
    CHECK(count(member(got, "poisoned")) == m.count.poisoned);
    compare_metrics(got, m);
    compare_histograms(got, m);
}

}  // namespace

TEST_CASE("tensors of every shape and layout report the oracle's metrics") {
    const std::vector<shape> shapes{{},         {1},       {31},         {0},          {96},
                                    {3, 40},    {40, 3},   {64, 1},      {5, 0, 7},    {2, 3, 33},
                                    {1, 64, 1}, {7, 5, 9}, {2, 2, 5, 7}, {3, 1, 1, 34}};
    const std::vector<std::string> recipes{
        "mxfp4",
        "mxfp8:block=32x1",
        "mxfp8_e5m2:block=4x4,scale=rceil",
        "mxfp6:block=3x5,scale=even",
        "mxfp6_e3m2:axis=flat,block=1x16",
        "mxfp4_e3m0:round=stochastic,seed=3",
        "mxint8:offset=fp16,block=2x8",
        "mxint4:offset=fp16,range=half,scale=ceil,block=1x16",
        "mxfp4:round=stochastic,block=16x2,seed=11",
        "mxint4:int_emax=log2max,scale=rceil",
        "mxfp4:transform=hadamard",
        "mxfp8:block=32x1,transform=random-hadamard,transform_size=16",
        "mxint8:block=4x4,transform=hadamard,transform_size=64,offset=fp16",
        "mxfp6:axis=flat,transform=random-hadamard,transform_seed=5",
    };
    std::uint64_t seed = 0;
    for (const shape& s : shapes) {
        for (const std::string& r : recipes) compare_tensor(s, r, ++seed);
        for (int axis = 0; axis < static_cast<int>(s.size()); ++axis) {
            compare_tensor(s, "mxfp4:block=1x8,axis=" + std::to_string(axis), ++seed);
            compare_tensor(
                s, "mxfp4:block=1x16,transform=random-hadamard,axis=" + std::to_string(axis),
                ++seed);
            compare_tensor(s,
                           "mxfp8:block=1x5,round=stochastic,axis=" +
                               std::to_string(axis - static_cast<int>(s.size())),
                           ++seed);
        }
    }
}

TEST_CASE("tensors of many panels report the oracle's metrics") {
    for (const char* recipe :
         {"mxfp8:scale=floor", "mxfp4:block=32x1,round=stochastic", "mxfp6:block=16x16,scale=ceil",
          "mxint8:axis=flat,offset=fp16", "mxfp4:block=32x1,transform=hadamard,transform_size=128",
          "mxfp8:block=1x48,transform=random-hadamard"}) {
        compare_tensor({3, 150, 401}, recipe, 2);
        compare_tensor({40, 5003}, recipe, 3);
    }
}

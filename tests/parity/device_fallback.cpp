// SPDX-License-Identifier: Apache-2.0
// Runs of the pipeline on a device with too little memory; the host is the device.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "libmx/studies/cluster/block_survey.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "libmx/studies/diff/diff.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/memory_model.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t any_room = std::size_t{1} << 30;

// The device for runs through the pipeline, which makes quantizers without an argument.
host_device* pipeline_device = nullptr;
cuda::slice_limits pipeline_limits;
std::string nothing_missing() { return {}; }
// A device with large panels; it is never measured.
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }
std::unique_ptr<codec::quantizer> pipeline_quantizer() {
    return cuda::make_device_quantizer(*pipeline_device, cuda::start_on_host, pipeline_limits);
}
const codec::backend small_device{{"small", "a device with little room", nothing_missing, true},
                                  pipeline_quantizer,
                                  codec::make_host_caster,
                                  no_meter};

}  // namespace

TEST_CASE("threads share a card, and a run of many threads says once that it is too small") {
    const auto recipes = codec::parse_recipes({"mxfp4", "mxfp8:scale=even", "mxfp4:block=32x1"});
    const std::vector<mx::tests::block_kind> kinds(mx::tests::block_kinds.begin(),
                                                   mx::tests::block_kinds.end());
    const auto values = mx::tests::make_matrix(mx::tensor::dtype::bf16, 300, 3000, kinds,
                                               *recipes.front().element, 5);
    const mx::analysis::matrix m{values.type, values.bytes.data(), values.rows, values.cols, "w"};
    const auto squares = [&](const codec::backend& d, const std::shared_ptr<mx::base::notices>& n) {
        mx::engine::run_control control;
        control.threads = 4;
        control.backend = &d;
        control.notices = n;
        std::vector<double> out;
        for (const auto& r : analyze_matrix(m, recipes, true, control)) {
            out.push_back(r.totals.sum.error2().value());
        }
        return out;
    };
    const auto expected = squares(codec::backend_named("scalar"), nullptr);
    pipeline_limits = {20000, any_room};
    for (const std::size_t room : {std::size_t{0}, std::size_t{25000}, any_room}) {
        CAPTURE(room);
        host_device device({room, no_limit});
        pipeline_device = &device;
        std::vector<std::string> lines;
        const auto listener = std::make_shared<mx::base::notices>(
            [&](const std::string& line) { lines.push_back(line); });
        CHECK(squares(small_device, listener) == expected);
        CHECK(device.peak(memory_kind::device) <= std::min(room, 4 * 2 * pipeline_limits.bytes));
        CHECK(device.held(memory_kind::device) == 0);
        CHECK(lines.size() <= 1);
        if (room == 0) CHECK(lines.size() == 1);
        if (room == any_room) CHECK(lines.empty());
    }
    host_device none({0, 0});
    pipeline_device = &none;
    CHECK_THROWS_AS(squares(small_device, nullptr), mx::base::error);
}

TEST_CASE("files, dumps and surveys of blocks go on with the CPU, too") {
    mx::tests::memory_model model, other;
    std::vector<float> values(64 * 200);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1000) * 0.013f;
    }
    model.add("w", mx::tensor::dtype::f32, {64, 200}, values);
    for (float& x : values) x *= 1.25f;
    other.add("w", mx::tensor::dtype::f32, {64, 200}, values);
    host_device none({0, 0});
    pipeline_device = &none;
    pipeline_limits = {};
    std::vector<std::string> lines;
    mx::engine::run_control control;
    control.threads = 2;
    control.backend = &small_device;
    const auto listen = [&] {
        lines.clear();
        control.notices = std::make_shared<mx::base::notices>(
            [&](const std::string& line) { lines.push_back(line); });
    };

    const mx::test::scratch_dir folder;
    const std::string path = folder / "w.safetensors";
    const auto quantized = [&] {
        mx::convert::quantize_model(model.all(), codec::parse_recipe("mxfp4"), true, path, control);
    };
    CHECK_THROWS_AS(quantized(), mx::base::error);
    CHECK_FALSE(std::filesystem::exists(path));
    listen();
    CHECK_NOTHROW(quantized());
    CHECK(lines.size() == 1);
    CHECK(std::filesystem::exists(path));
    // Values that codes do not determine: negative zeros of integers.
    const auto values_by = [&](const codec::backend* d) {
        control.backend = d;
        mx::convert::quantize_model(model.all(), codec::parse_recipe("mxint4:dialect=microxcaling"),
                                    false, path, control);
        return mx::test::slurp(path);
    };
    const std::string expected = values_by(nullptr);
    listen();
    CHECK(values_by(&small_device) == expected);
    CHECK(lines.size() == 1);

    mx::diff::diff_request request;
    request.paths = {"a", "b"};
    request.labels = mx::diff::label_dumps(request.paths, {});
    request.recipes = codec::parse_recipes({"mxfp4"});
    const mx::io::reader* const dumps[] = {&model, &other};
    listen();
    const auto found = mx::diff::diff(dumps, model.all(), request, control);
    CHECK(found.tensors == 1);
    CHECK(lines.size() == 1);

    mx::analysis::analysis_request survey;
    survey.recipes = request.recipes;
    listen();
    CHECK(mx::cluster::survey_blocks(model.all(), survey, control).size() == 1);
    CHECK(lines.size() == 1);
}

TEST_CASE("a run with outer scales of areas says once that the CPU quantizes it") {
    const auto recipes = codec::parse_recipes({"nvfp4:outer=row", "mxfp4"});
    const std::vector<mx::tests::block_kind> kinds(mx::tests::block_kinds.begin(),
                                                   mx::tests::block_kinds.end());
    const auto values = mx::tests::make_matrix(mx::tensor::dtype::bf16, 300, 3000, kinds,
                                               *recipes.front().element, 5);
    const mx::analysis::matrix m{values.type, values.bytes.data(), values.rows, values.cols, "w"};
    host_device device({any_room, no_limit});
    pipeline_device = &device;
    pipeline_limits = {20000, any_room};
    std::vector<std::string> lines;
    mx::engine::run_control control;
    control.threads = 4;
    control.notices = std::make_shared<mx::base::notices>(
        [&](const std::string& line) { lines.push_back(line); });
    std::vector<double> squares;
    for (const codec::backend* by : {&small_device, &codec::backend_named("scalar")}) {
        control.backend = by;
        for (const auto& r : analyze_matrix(m, recipes, true, control)) {
            squares.push_back(r.totals.sum.error2().value());
        }
    }
    REQUIRE(squares.size() == 4);
    CHECK(squares[0] == squares[2]);
    CHECK(squares[1] == squares[3]);
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().find("no outer scales of rows") != std::string::npos);
}

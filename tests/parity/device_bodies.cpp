// SPDX-License-Identifier: Apache-2.0
// The bodies of the CUDA kernels on the host: the lanes of a warp as a loop.
#include <cstdio>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/memory_model.hpp"
#include "tests/parity/device_cases.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;

std::string nothing_missing() { return {}; }
// A device with large panels; it is never measured.
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }

const codec::backend lanes{{"lanes", "the kernels' bodies", nothing_missing, true},
                           cuda::make_host_quantizer,
                           codec::make_host_caster,
                           no_meter};

const codec::backend& row_of_cuda() {
    for (const codec::backend& d : codec::backends()) {
        if (d.name == "cuda") return d;
    }
    FAIL("no row");
    return lanes;
}

}  // namespace

TEST_CASE("lanes in lockstep leave the bytes of the reference, segment by segment") {
    std::size_t compared = 0;
    mx::tests::compare_segments(lanes, [&](const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++compared;
    });
    CHECK(compared > 1000);
}

TEST_CASE("lanes under other recipes leave the bytes of the reference, segment by segment") {
    std::size_t compared = 0;
    mx::tests::compare_dialect_segments(
        lanes, [&](const std::string& what, const std::string& difference) {
            CAPTURE(what);
            CHECK(difference == "");
            ++compared;
        });
    CHECK(compared > 1000);
}

TEST_CASE("kernels on the host leave the bytes of the reference, panel by panel") {
    std::size_t compared = 0;
    mx::tests::compare_matrices(lanes, [&](const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++compared;
    });
    CHECK(compared == 90);
}

TEST_CASE("bodies leave the bytes of the reference for values stored as codes") {
    std::size_t compared = 0;
    mx::tests::compare_codes(lanes, [&](const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++compared;
    });
    CHECK(compared == 64);
}

TEST_CASE("files quantized by kernels on the host are those of the reference") {
    mx::tests::memory_model model;
    std::vector<float> values(70 * 333);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int>(i * 7919 % 2003) - 1000) * 0.013f;
    }
    values[40] = std::numeric_limits<float>::quiet_NaN();
    values[900] = -std::numeric_limits<float>::infinity();
    values[1700] = std::numeric_limits<float>::max();
    values[1800] = -values[40];
    model.add("w", mx::tensor::dtype::f32, {2, 35, 333}, values);
    const mx::test::scratch_dir folder;
    const std::string path = folder / "w.safetensors";
    const auto file_by = [&](const codec::backend* d, const char* recipe, bool packed) {
        mx::engine::run_control control;
        control.backend = d;
        control.threads = 2;
        mx::convert::quantize_model(model.all(), codec::parse_recipe(recipe), packed, path,
                                    control);
        return mx::test::slurp(path);
    };
    for (const char* recipe :
         {"mxfp4", "mxfp6:offset=fp16", "mxfp8:block=32x1,round=stochastic", "mxint8:block=4x4",
          "mxfp4:transform=hadamard", "nvfp4", "nvfp4:dialect=modelopt", "fp8_128x128:dialect=te",
          "mxfp4:dialect=quark,scale=floor", "mxint4:dialect=microxcaling", "mxfp4:dialect=ggml",
          "mxfp8:dialect=microxcaling-bf16", "mxfp8:dialect=systems-scaling,scale=floor-bump"}) {
        for (const bool packed : {false, true}) {
            const bool bumps = codec::bumps_positions(codec::parse_recipe(recipe));
            if (bumps && packed) continue;  // it has no packed scales
            CAPTURE(recipe, packed);
            CHECK(file_by(&lanes, recipe, packed) == file_by(nullptr, recipe, packed));
        }
    }
}

TEST_CASE("the row of the device says what is missing") {
    const codec::backend& d = row_of_cuda();
    CHECK(&codec::best_backend() != &d);
    if (!d.available()) {
        CHECK_FALSE(d.missing().empty());
        try {
            codec::backend_named("cuda");
            FAIL("was taken");
        } catch (const mx::base::error& e) {
            CHECK(e.kind() == mx::base::error_kind::unavailable);
            CHECK(e.message().find(d.missing()) != std::string::npos);
        }
    }
}
